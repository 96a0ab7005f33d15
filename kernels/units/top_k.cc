// TopK: the K largest or smallest elements along one axis, in the order of one lane. By direct
// authoring from A13, by conversion from A14, never for K of 3 or 4 (conflicts.md C-topk-m1).
// Facts: validators.json TopK; hidden_layers.json TopK; numerics.json st-index.
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/node_inputs.h"
#include "kernels/units/input_view.h"
#include "kernels/units/sort.h"
#include "math/reduce/sort.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class TopKType : uint8_t { kMax, kMin };

absl::Span<const char* const> NamesOf(TopKType) {
  static constexpr const char* kNames[] = {"Max", "Min"};
  return kNames;
}

struct TopKParams {
  TopKType type = TopKType::kMax;
  int64_t k = 1;
  Axis sort = Axis::kW, vector = Axis::kC;
  std::vector<int64_t> lanes;
  bool indices = false;  // where the elements stood
  ElementFormat output = ElementFormat::kFloat16;
};

absl::StatusOr<Dims> Shape(const TopKParams& p, Bottoms in) {
  ANEMONE_ASSIGN_OR_RETURN(Dims out,
                           SortedDims(in[0].dims, {p.sort, p.vector}, p.lanes, p.indices));
  out[p.sort] = p.k;
  return out;
}

Verdict Validate(const TopKParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.k < 1 || p.k > in[0].dims[p.sort]) return judge.Reject(rule::kTopKCount);
  if (p.output != ElementFormat::kFloat16 && p.output != ElementFormat::kUInt16) {
    return judge.Reject(rule::kTopKOutput);
  }
  return judge.Accept();
}

Verdict Codegen(const TopKParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (route == Route::kMil && !judge.FamilyAtLeast(3)) return judge.Reject(rule::kTopKConversion);
  if (p.k == 3 || p.k == 4) return judge.Reject(rule::kTopK3Or4);
  return judge.Accept();
}

bool IsOtherFormat(const TopKParams& p) { return p.output != ElementFormat::kFloat16; }

constexpr Field<TopKParams> kFields[] = {
    Required<&TopKParams::type>("Type"),
    Required<&TopKParams::k>("K"),
    Required<&TopKParams::sort>("SortDimension"),
    Required<&TopKParams::vector>("VectorDimension"),
    Required<&TopKParams::lanes>("SortIndices"),
    Key<&TopKParams::indices>("Indices"),
    Key<&TopKParams::output, Plain, IsOtherFormat>("OutputType"),
};

// The order of the results and of equal elements is not stated: the most extreme comes first, and
// of equal elements the one with the lower index, as ONNX has it (and st-index). Several lanes: as
// in Sort.
void Choose(const TopKParams& p, bool takes_last, absl::Span<const ConstView> in, View out) {
  math::Sort({.sort_axis = static_cast<int>(p.sort),
              .vector_axis = static_cast<int>(p.vector),
              .lanes = p.lanes,
              .descending = p.type == TopKType::kMax,
              .count = p.k,
              .indices = p.indices,
              .last_first = takes_last},
             in[0].dims.extent, in[0].span(), out.span());
}

void Compute(const TopKParams& p, const void*, absl::Span<const ConstView> in, View out) {
  Choose(p, /*takes_last=*/false, in, out);
}

void Exact(const TopKParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  Choose(p, unit.numerics.st_index == math::StIndex::kLast, in, out);
}

absl::Status WriteMil(const TopKParams& p, const Unit& unit, MilEmitter& e) {
  if (!SortsLines(e.DimsOf(0), {p.sort, p.vector}, p.lanes)) {
    return absl::UnimplementedError("MIL's topk follows no other lane's order");
  }
  ANEMONE_ASSIGN_OR_RETURN(
      std::string y, WriteTopK(e, p.sort, p.k, p.type == TopKType::kMax, p.indices, unit.dims));
  e.Result(std::move(y));
  return absl::OkStatus();
}

const UnitKindOf<TopKParams>& Kind() {
  static const UnitKindOf<TopKParams> kind({
      .type = "TopK",
      .min_family = kFamilyA13,
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// What ONNX's TopK asks for. Its `sorted` = 0 wants no order: ours serves both.
struct Request {
  Operand x;
  SortAxes axes;
  int64_t k = 1;
  bool largest = true;
};

absl::StatusOr<Request> ReadRequest(LowerContext& c, const Node& node) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t largest, a.Int("largest", 1));
  a.Ignore("sorted");
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  const int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> k, ConstantIntegers(c, node, 1, {}));
  if (k.size() != 1) return c.NotLowered("a count that is not one number");
  // The output's shape is made before the unit is judged.
  if (k[0] < 1 || k[0] > shape[at]) return c.Refuse(rule::kTopKCount);
  Request request{.k = k[0], .largest = largest != 0};
  request.x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(request.axes, LinesAlong(c.DimsOf(request.x), ToEngineAxis(rank, at)));
  return request;
}

// make(indices) is one output's operand; both outputs are made of units of their own.
template <class Make>
absl::Status OutBoth(LowerContext& c, const Node& node, const Request& request, const Make& make) {
  if (IsRead(c.view(), node, 0)) {
    Operand values = make(false);
    ANEMONE_RETURN_IF_ERROR(c.Out(node.outputs[0], values));
  }
  if (!IsRead(c.view(), node, 1)) return absl::OkStatus();
  Operand places = make(true);
  return c.OutIndex(node.outputs[1], places, c.DimsOf(request.x)[request.axes.sort]);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request request, ReadRequest(c, node));
  // A planner should refuse it there, says C-topk-m1: the unit's own verdict follows one source.
  Judge judge(c.target(), c.route());
  if (c.route() == Route::kNetplist && judge.FamilyAtLeast(kFamilyA13) && !judge.FamilyAtLeast(3)) {
    return c.NotLowered("TopK on A13, where the sources contradict each other (C-topk-m1)");
  }
  return OutBoth(c, node, request, [&](bool indices) {
    return c.Add(Kind(),
                 TopKParams{request.largest ? TopKType::kMax : TopKType::kMin,
                            request.k,
                            request.axes.sort,
                            request.axes.vector,
                            {0},
                            indices},
                 {request.x});
  });
}

// For a K of 3 or 4, which no target has: the first K of all, sorted. The order of a Sort's results
// is stated, that of a larger TopK's is not.
absl::Status LowerSorted(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request request, ReadRequest(c, node));
  return OutBoth(c, node, request, [&](bool indices) -> Operand {
    Operand y = Sorted(c, request.x, request.axes, request.largest, indices);
    return Sliced(c, y, request.axes.sort, 0, request.k);
  });
}

// Values, then their indices.
absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t k, c.Int("k", 1));
  ANEMONE_ASSIGN_OR_RETURN(int at, c.AxisAt("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(bool ascending, c.Bool("ascending", false));
  ANEMONE_ASSIGN_OR_RETURN(bool indices, c.Bool("return_indices", true));
  ANEMONE_ASSIGN_OR_RETURN(std::string dtype, c.Text("output_indices_dtype", "uint16"));
  c.Ignore("sort");  // the engine's results are in order
  if (dtype != "uint16" && c.route() == Route::kMil) return c.Refuse(rule::kTopKIndices);
  if (dtype != "uint16" && dtype != "fp16") return c.Refuse(rule::kTopKOutput);
  Operand x = c.In(0);
  ANEMONE_ASSIGN_OR_RETURN(SortAxes axes, LinesAlong(c.DimsOf(x), ToEngineAxis(c.rank(0), at)));
  if (k == -1) k = c.ShapeOf(0)[at];  // MIL: all of them
  TopKParams p{ascending ? TopKType::kMin : TopKType::kMax, k, axes.sort, axes.vector, {0}};
  // The output's shape is made before the unit is judged; a count that fits no axis is refused
  // here.
  if (k < 1 || k > c.ShapeOf(0)[at]) return c.Refuse(rule::kTopKCount);
  Operand values = c.Add(Kind(), p, {x});
  std::vector<int64_t> shape = c.ShapeOf(0);
  shape[at] = k;
  ANEMONE_RETURN_IF_ERROR(c.Out(values, shape));
  if (!indices) return absl::OkStatus();
  p.indices = true;
  Operand places = c.Add(Kind(), p, {x});
  c.AddOutput("indices", places);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"topk", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "TopK", .lower = Lower},
    {.op = "TopK", .rewritten = true, .lower = LowerSorted},
};

}  // namespace

absl::StatusOr<std::string> WriteTopK(MilEmitter& e, Axis axis, int64_t k, bool descending,
                                      bool indices, const Dims& to) {
  if (e.ToMilAxis(axis) < 0) return absl::UnimplementedError("an order of one element");
  if (k == 3 || k == 4) return absl::UnimplementedError("topk of 3 or 4, which no target takes");
  std::vector<MilArgument> arguments = {{"x", {e.In(0)}},
                                        {"k", {e.Int(k)}},
                                        {"axis", {e.Int(e.ToMilAxis(axis))}},
                                        {"ascending", {e.Bool(!descending)}},
                                        {"sort", {e.Bool(true)}},
                                        {"return_indices", {e.Bool(indices)}}};
  if (!indices) return e.Emit("topk", std::move(arguments), to);
  arguments.push_back({"output_indices_dtype", {e.Text("uint16")}});
  const MilType values{"fp16", e.ShapeOf(to)};
  return e.Numbers(e.EmitAll("topk", std::move(arguments), {values, e.IndexType(to)})[1], to);
}

KernelRows TopKRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
