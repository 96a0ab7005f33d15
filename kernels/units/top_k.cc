// TopK: the K largest or smallest elements along one axis, by the order of one lane. Direct
// authoring needs A13, conversion A14. K of 3 or 4 is always refused. Whether A13 runs the other K
// is in doubt (conflicts.md C-topk-m1). Facts: validators.json TopK; hidden_layers.json TopK;
// numerics.json st-index.
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
  bool indices = false;  // outputs the indices of the elements instead of the elements
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
  if (route == Route::kMil && !judge.Reaches(rule::kTopKConversion)) {
    return judge.Reject(rule::kTopKConversion);
  }
  if (rule::kTopK3Or4.Lists(p.k)) return judge.Reject(rule::kTopK3Or4);
  if (!judge.Reaches(rule::kTopKA13)) judge.Doubt(rule::kTopKA13);
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

// The sources do not state the order of the results and of equal elements. Here the most extreme
// element comes first, and among equal elements the one with the lower index, as in ONNX (and
// st-index). Several lanes mean the same as in Sort.
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
    return absl::UnimplementedError("MIL's topk cannot order one lane by another");
  }
  ANEMONE_ASSIGN_OR_RETURN(
      std::string y, WriteTopK(e, p.sort, p.k, p.type == TopKType::kMax, p.indices, unit.dims));
  e.Result(std::move(y));
  return absl::OkStatus();
}

const UnitKindOf<TopKParams>& Kind() {
  static const UnitKindOf<TopKParams> kind({
      .type = "TopK",
      .family = &rule::kUnitFamily,
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// The parameters of ONNX's TopK. `sorted` = 0 allows any order, so it is ignored.
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
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  const int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> k, ConstantIntegers(c, node, 1, {}));
  if (k.size() != 1) return c.NotLowered("TopK whose K is not one number");
  // The unit's output dims are needed before the unit can be validated.
  if (k[0] < 1 || k[0] > shape[at]) return c.Refuse(rule::kTopKCount);
  Request request{.k = k[0], .largest = largest != 0};
  request.x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(request.axes,
                           LinesAlong(c, c.DimsOf(request.x), ToEngineAxis(rank, at)));
  return request;
}

// make(indices) returns the operand of one output. Each output has a separate unit.
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

// For K of 3 or 4, which every target refuses: the first K elements of a Sort. A larger TopK is not
// used, because the order of its results is not stated; that of a Sort is.
absl::Status LowerSorted(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request request, ReadRequest(c, node));
  return OutBoth(c, node, request, [&](bool indices) -> Operand {
    Operand y = Sorted(c, request.x, request.axes, request.largest, indices);
    return Sliced(c, y, request.axes.sort, 0, request.k);
  });
}

// The outputs are the values, then their indices.
absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t k, c.Int("k", 1));
  ANEMONE_ASSIGN_OR_RETURN(int at, c.AxisAt("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(bool ascending, c.Bool("ascending", false));
  ANEMONE_ASSIGN_OR_RETURN(bool indices, c.Bool("return_indices", true));
  ANEMONE_ASSIGN_OR_RETURN(std::string dtype, c.Text("output_indices_dtype", "uint16"));
  c.Ignore("sort");  // the engine's results are always sorted
  if (dtype != "uint16" && c.route() == Route::kMil) return c.Refuse(rule::kTopKIndices);
  if (dtype != "uint16" && dtype != "fp16") return c.Refuse(rule::kTopKOutput);
  Operand x = c.In(0);
  ANEMONE_ASSIGN_OR_RETURN(SortAxes axes, LinesAlong(c, c.DimsOf(x), ToEngineAxis(c.rank(0), at)));
  if (k == -1) k = c.ShapeOf(0)[at];  // MIL: all of them
  TopKParams p{ascending ? TopKType::kMin : TopKType::kMax, k, axes.sort, axes.vector, {0}};
  // The unit's output dims are needed before the unit can be validated, so a bad count is refused
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
  if (e.ToMilAxis(axis) < 0)
    return absl::UnimplementedError("MIL has no axis for a topk of one element");
  if (rule::kTopK3Or4.Lists(k))
    return absl::UnimplementedError("topk with k of 3 or 4, which every target refuses");
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
