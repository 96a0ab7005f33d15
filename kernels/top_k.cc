// TopK: the K largest or smallest elements along one axis, in the order of one lane. By direct
// authoring from A13, by conversion from A14, never for K of 3 or 4 (conflicts.md C-topk-m1).
// Facts: validators.json TopK; hidden_layers.json TopK.
#include <string>

#include "anemone/status_macros.h"
#include "kernels/mil.h"
#include "kernels/sort.h"
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

const UnitKindOf<TopKParams>& Kind() {
  static const UnitKindOf<TopKParams>& kind = *new UnitKindOf<TopKParams>({.type = "TopK",
                                                                           .min_family = kFamilyA13,
                                                                           .shape = Shape,
                                                                           .validate = Validate,
                                                                           .codegen = Codegen,
                                                                           .fields = kFields});
  return kind;
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
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  ANEMONE_ASSIGN_OR_RETURN(SortAxes axes, LinesAlong(c.DimsOf(x), AxisOf(c.rank(0), at)));
  if (k == -1) k = c.ShapeOf(0)[at];  // MIL: all of them
  TopKParams p{ascending ? TopKType::kMin : TopKType::kMax, k, axes.sort, axes.vector, {0}};
  // The output's shape is made before the unit is judged; a count that fits no axis is refused
  // here.
  if (k < 1 || k > c.ShapeOf(0)[at]) return c.Refuse(rule::kTopKCount);
  ANEMONE_ASSIGN_OR_RETURN(Operand values, c.Add(Kind(), p, {x}));
  std::vector<int64_t> shape = c.ShapeOf(0);
  shape[at] = k;
  ANEMONE_RETURN_IF_ERROR(c.Out(values, shape));
  if (!indices) return absl::OkStatus();
  p.indices = true;
  ANEMONE_ASSIGN_OR_RETURN(Operand places, c.Add(Kind(), p, {x}));
  c.AddOutput("indices", places);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"topk", Build}};

}  // namespace

KernelRows TopKRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
