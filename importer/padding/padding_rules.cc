#include "importer/padding/padding_rules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/padding/padding_elementwise.h"
#include "importer/padding/padding_moves.h"

namespace anemone {
namespace {

// What padding holds after elements were joined into others: numbers, and no more is known.
void Forget(Flow& flow, Bounds bounds = {}) {
  flow.used = bounds;
  flow.holes = false;
  for (FlowAxis& axis : flow.axes) {
    for (FlowStretch& s : axis) {
      s.padding = {.beside = bounds, .everywhere = bounds, .even = true};
    }
  }
}

// Before one axis is joined: what is beside the others' padding is padding of this one, too.
void LookEverywhere(Flow& flow) {
  for (FlowAxis& axis : flow.axes) {
    for (FlowStretch& s : axis) s.padding = {s.padding.everywhere, s.padding.everywhere};
  }
}

bool HoldsZeros(const FlowAxis& axis) {
  return std::all_of(axis.begin(), axis.end(),
                     [](const FlowStretch& s) { return !s.padded() || s.padding.beside.is(0); });
}

Flows CarryElementwise(const PaddingStep& step) {
  const Node& node = step.bucket;
  const Elementwise* op = FindElementwise(node.op_type);
  std::vector<Flow> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(inputs.emplace_back(), step.flow(i));
  }
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(*op, inputs));
  if (node.op_type == "Mul" && node.inputs[0] == node.inputs[1]) {  // a square
    ANEMONE_ASSIGN_OR_RETURN(made,
                             Apply(*FindElementwise("Pow"), {inputs[0], Flow{.used = {2, 2}}}));
  }
  return One(std::move(made));
}

Flows CarryUnary(const PaddingStep& step, const Elementwise& op) {
  ANEMONE_ASSIGN_OR_RETURN(Flow input, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(op, {std::move(input)}));
  return One(std::move(made));
}

Flows CarryCast(const PaddingStep& step) {
  const DataType to = step.bucket_graph.values[step.bucket.outputs[0]].type;
  return CarryUnary(step, {.bounds = [to](auto x) { return BoundsOfCast(to, x[0]); },
                           .holes = Elementwise::kHolesStay,
                           .mask = Elementwise::kSum});
}

Flows CarryClip(const PaddingStep& step) {
  Bounds limits;
  if (HasInput(step.bucket, 1)) {
    ANEMONE_ASSIGN_OR_RETURN(const Flow low, step.flow(1));
    if (low.padded()) return Mixes("has limits that are padded");
    limits.low = low.used.low;
  }
  if (HasInput(step.bucket, 2)) {
    ANEMONE_ASSIGN_OR_RETURN(const Flow high, step.flow(2));
    if (high.padded()) return Mixes("has limits that are padded");
    limits.high = high.used.high;
  }
  const auto clip = [limits](auto x) {
    return Bounds{std::clamp(x[0].low, limits.low, std::max(limits.low, limits.high)),
                  std::max(limits.low, std::min(x[0].high, limits.high))};
  };
  return CarryUnary(step, {.bounds = clip, .holes = Elementwise::kHolesStay});
}

// Q and DQ by constants along an axis, or by one for all.
Flows CarryByConstants(const PaddingStep& step) {
  ANEMONE_RETURN_IF_ERROR(NoneIsPadded(step, 1, "has a scale that is padded"));
  return CarryUnary(step, {});
}

// Matrices of the two operands, whose axes are (..., M, K) and (..., K, N).
absl::StatusOr<Flow> Multiply(Flow a, Flow b) {
  FlowAxis& columns = a.axes.back();
  FlowAxis& rows = b.axes[b.axes.size() - 2];
  if (!SameStretches(columns, rows)) return Mixes("sums over padding of two kinds");
  if (IsPadded(columns)) {
    if (a.wild || b.wild || a.holes || b.holes) {
      return Mixes("sums over padding that may hold what is no number");
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool zero = columns[i].padding.beside.is(0) || rows[i].padding.beside.is(0);
      if (columns[i].padded() && !zero) {
        return Mixes("sums over the padded axis, where neither operand is known to be 0");
      }
    }
    LookEverywhere(a);
    LookEverywhere(b);
  }
  columns.clear();
  rows.clear();
  const Elementwise product = {.bounds = [](absl::Span<const Bounds> x) {
    return x[0].is(0) || x[1].is(0) ? Bounds{0, 0} : Bounds();
  }};
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(product, {std::move(a), std::move(b)}));
  for (FlowAxis& axis : made.axes) {
    for (FlowStretch& s : axis) s.padding.repeats = s.padding.uniform = false;
  }
  return made;
}

Flows CarryMatMul(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow a, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(Flow b, step.flow(1));
  if (a.axes.size() < 2 || b.axes.size() < 2) return Mixes("multiplies by a vector");
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Multiply(std::move(a), std::move(b)));
  return One(std::move(made));
}

Flows CarryGemm(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow a, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(Flow b, step.flow(1));
  if (a.axes.size() != 2 || b.axes.size() != 2) return Mixes("multiplies no matrices");
  if (IntOr(step.bucket, "transA", 0) != 0) std::swap(a.axes[0], a.axes[1]);
  if (IntOr(step.bucket, "transB", 0) != 0) std::swap(b.axes[0], b.axes[1]);
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Multiply(std::move(a), std::move(b)));
  if (HasInput(step.bucket, 2)) {
    ANEMONE_ASSIGN_OR_RETURN(Flow c, step.flow(2));
    ANEMONE_ASSIGN_OR_RETURN(made, Apply({}, {std::move(made), std::move(c)}));
  }
  return One(std::move(made));
}

Flows CarrySoftmax(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(const size_t axis, AxisOf(flow, IntOr(step.bucket, "axis", -1)));
  for (size_t a = 0; a < flow.axes.size(); ++a) {
    for (FlowStretch& s : flow.axes[a]) {
      if (!s.padded()) continue;
      if (a != axis) {
        // A row of minus infinities alone has no softmax.
        flow.wild |= flow.holes && !s.padding.repeats && !s.padding.even;
        s.padding = {.beside = {0, 1}, .everywhere = {0, 1}, .even = true};
        continue;
      }
      if (!IsMasked(s.padding) || flow.wild) {
        return Mixes("shares 1 out over the padded axis, and no mask keeps the padding out");
      }
    }
  }
  for (FlowStretch& s : flow.axes[axis]) {
    Padding& padding = s.padding;
    if (!padding.masked) {
      padding.masks = flow.inputs;
      padding.mask_axes = flow.changing_axes();
    }
    if (s.padded()) step.rely_on_mask(s);
    padding = {.beside = {0, 0}, .everywhere = {0, 1}, .even = true};
  }
  flow.used = {0, 1};
  flow.holes = false;
  return One(std::move(flow));
}

// Reductions: whether zeros add nothing, and in what bounds the result is.
struct ReductionRow {
  bool takes_zeros;
  Bounds (*bounds)(Bounds);
};

Bounds SumBounds(Bounds x) {
  return {x.low >= 0 ? 0 : Bounds().low, x.high <= 0 ? 0 : Bounds().high};
}
Bounds SameBounds(Bounds x) { return x; }
Bounds NotNegative(Bounds) { return {0, Bounds().high}; }
Bounds Unknown(Bounds) { return {}; }

const ReductionRow* FindReduction(absl::string_view op_type) {
  static const auto& table = *new std::map<std::string, ReductionRow, std::less<>>{
      {"ReduceSum", {true, SumBounds}},      {"ReduceSumSquare", {true, NotNegative}},
      {"ReduceL1", {true, NotNegative}},     {"ReduceL2", {true, NotNegative}},
      {"ReduceMean", {false, SameBounds}},   {"ReduceMax", {false, SameBounds}},
      {"ReduceMin", {false, SameBounds}},    {"ReduceProd", {false, Unknown}},
      {"ReduceLogSumExp", {false, Unknown}},
  };
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : &found->second;
}

// The axes of a reduction, by an input or an attribute; empty: none is given.
absl::StatusOr<std::vector<size_t>> ReducedAxes(const PaddingStep& step, const Flow& flow) {
  std::optional<std::vector<int64_t>> given = IntsOf(step.bucket, "axes");
  if (HasInput(step.bucket, 1)) {
    given = SameInts(step, 1);
    if (!given) return Mixes("has axes that are known only at run time");
  }
  std::vector<size_t> axes;
  for (int64_t axis : given.value_or(std::vector<int64_t>())) {
    ANEMONE_ASSIGN_OR_RETURN(axes.emplace_back(), AxisOf(flow, axis));
  }
  if (!axes.empty() || IntOr(step.bucket, "noop_with_empty_axes", 0) != 0) return axes;
  for (size_t a = 0; a < flow.axes.size(); ++a) axes.push_back(a);
  return axes;
}

Flows CarryReduction(const PaddingStep& step) {
  const ReductionRow& row = *FindReduction(step.bucket.op_type);
  ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<size_t> axes, ReducedAxes(step, flow));
  bool joins = false;
  for (size_t axis : axes) {
    if (!IsPadded(flow.axes[axis])) continue;
    joins = true;
    if (!row.takes_zeros) return Mixes("joins all positions of the padded axis");
    if (!HoldsZeros(flow.axes[axis]) || flow.wild || flow.holes) {
      return Mixes("joins all positions of the padded axis, which are not known to be 0 there");
    }
  }
  if (joins) LookEverywhere(flow);
  const Elementwise op = {.bounds = [&](auto x) { return row.bounds(x[0]); }};
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(op, {std::move(flow)}));
  std::vector<bool> gone(made.axes.size());
  for (size_t axis : axes) {
    made.axes[axis].clear();
    gone[axis] = IntOr(step.bucket, "keepdims", 1) == 0;
  }
  for (FlowAxis& axis : made.axes) {
    for (FlowStretch& s : axis) s.padding.repeats = s.padding.uniform = false;
  }
  for (size_t a = made.axes.size(); a-- > 0;) {
    if (gone[a]) made.axes.erase(made.axes.begin() + static_cast<std::ptrdiff_t>(a));
  }
  return One(std::move(made));
}

// Outputs whose padding is that of the first input, where the sizes are not those of the axes that
// the operator works on: there no padding may be. `first` to `end` are these axes.
Flows CarryBeside(const PaddingStep& step, const Flow& input, size_t first, size_t end) {
  for (size_t a = first; a < end; ++a) {
    if (IsPadded(input.axes[a])) return Mixes("works along the padded axis");
  }
  std::vector<Flow> made(step.bucket.outputs.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (step.bucket.outputs[i] == kNone) continue;
    const std::vector<int64_t> sizes = step.OutputSizes(i).full;
    const bool keeps = sizes.size() == input.axes.size();
    Flow& flow = made[i];
    flow.wild = input.wild || input.holes;
    flow.inputs = input.inputs;
    for (size_t a = 0; a < input.axes.size(); ++a) {
      const bool works = a >= first && a < end;
      if (works && !keeps) continue;
      flow.axes.push_back(works ? PlainAxis(sizes[a]) : input.axes[a]);
    }
    Forget(flow);
  }
  return made;
}

absl::Status RestIsPlain(const PaddingStep& step) {
  return NoneIsPadded(step, 1, "has padding in other inputs than the first");
}

// Normalization of the last axes.
Flows CarryTrailing(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  ANEMONE_RETURN_IF_ERROR(RestIsPlain(step));
  ANEMONE_ASSIGN_OR_RETURN(const size_t axis, AxisOf(flow, IntOr(step.bucket, "axis", -1)));
  return CarryBeside(step, flow, axis, flow.axes.size());
}

// One axis is worked on.
Flows CarryAlong(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  ANEMONE_RETURN_IF_ERROR(RestIsPlain(step));
  const bool from_front = step.bucket.op_type == "ArgMax" || step.bucket.op_type == "ArgMin";
  ANEMONE_ASSIGN_OR_RETURN(const size_t axis,
                           AxisOf(flow, IntOr(step.bucket, "axis", from_front ? 0 : -1)));
  return CarryBeside(step, flow, axis, axis + 1);
}

// All axes but the first, the batch, are worked on.
Flows CarryBatch(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  ANEMONE_RETURN_IF_ERROR(RestIsPlain(step));
  if (flow.axes.empty()) return Mixes("has no batch");
  const PaddingStep::Sizes in = step.InputSizes(0);
  const PaddingStep::Sizes out = step.OutputSizes(0);
  if (out.full.empty() || in.full[0] != out.full[0]) return Mixes("changes the batch");
  return CarryBeside(step, flow, 1, flow.axes.size());
}

Flows CarryCumSum(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  const auto axes = SameInts(step, 1);
  if (!axes || axes->size() != 1) return Mixes("has an axis that is known only at run time");
  ANEMONE_ASSIGN_OR_RETURN(const size_t axis, AxisOf(flow, (*axes)[0]));
  const FlowAxis& along = flow.axes[axis];
  if (IsPadded(along) && (along.size() > 1 || IntOr(step.bucket, "reverse", 0) != 0)) {
    return Mixes("sums up from the padded end");
  }
  Flow made = flow;
  made.wild |= made.holes;
  Forget(made, flow.all().low >= 0 ? Bounds{0, Bounds().high} : Bounds());
  return One(std::move(made));
}

// An operator that no rule knows: right as long as nothing of it depends on the size.
Flows CarryUnpadded(const PaddingStep& step) {
  if (!BodiesOf(step.bucket).empty()) return Mixes("runs nodes of its own, which nobody followed");
  ANEMONE_RETURN_IF_ERROR(NoneIsPadded(step, 0, "is not known to keep positions apart"));
  std::vector<Flow> made(step.bucket.outputs.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (step.bucket.outputs[i] == kNone) continue;
    for (int64_t size : step.OutputSizes(i).full) made[i].axes.push_back(PlainAxis(size));
  }
  return made;
}

// Resize of all axes but the first. What it is told of sizes depends on them.
Flows CarryResize(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  if (!flow.padded()) return CarryUnpadded(step);
  const PaddingStep::Sizes in = step.InputSizes(0);
  const PaddingStep::Sizes out = step.OutputSizes(0);
  if (in.full[0] != out.full[0] || step.bucket.FindAttribute("axes") != nullptr ||
      StringOr(step.bucket, "coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    return Mixes("resizes the padded axis");
  }
  if (HasInput(step.bucket, 2)) {  // scales; none: sizes are given, and this one stays
    const Value& value = step.bucket_graph.values[step.bucket.inputs[2]];
    const bool known = value.constant && value.constant->type() == DataType::kFloat;
    if (!known || (value.constant->elements() > 0 && value.constant->at<float>(0) != 1)) {
      return Mixes("resizes the padded axis");
    }
  }
  return CarryBeside(step, flow, 1, flow.axes.size());
}

PaddingRule FindRule(absl::string_view op_type) {
  static const auto& table = *new std::map<std::string, PaddingRule, std::less<>>{
      {"Cast", CarryCast},
      {"Clip", CarryClip},
      {"QuantizeLinear", CarryByConstants},
      {"DequantizeLinear", CarryByConstants},
      {"MatMul", CarryMatMul},
      {"Gemm", CarryGemm},
      {"Softmax", CarrySoftmax},
      {"LayerNormalization", CarryTrailing},
      {"RMSNormalization", CarryTrailing},
      {"LogSoftmax", CarryAlong},
      {"Hardmax", CarryAlong},
      {"LpNormalization", CarryAlong},
      {"ArgMax", CarryAlong},
      {"ArgMin", CarryAlong},
      {"TopK", CarryAlong},
      {"CumSum", CarryCumSum},
      {"Conv", CarryBatch},
      {"ConvTranspose", CarryBatch},
      {"MaxPool", CarryBatch},
      {"AveragePool", CarryBatch},
      {"LpPool", CarryBatch},
      {"GlobalMaxPool", CarryBatch},
      {"GlobalAveragePool", CarryBatch},
      {"GlobalLpPool", CarryBatch},
      {"BatchNormalization", CarryBatch},
      {"InstanceNormalization", CarryBatch},
      {"GroupNormalization", CarryBatch},
      {"LRN", CarryBatch},
      {"Resize", CarryResize},
      {"DepthToSpace", CarryBatch},
      {"SpaceToDepth", CarryBatch},
  };
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

Flows CarryPadding(const PaddingStep& step) {
  const Node& node = step.bucket;
  if (!node.domain.empty()) return CarryUnpadded(step);
  if (FindElementwise(node.op_type) != nullptr) return CarryElementwise(step);
  if (FindReduction(node.op_type) != nullptr) return CarryReduction(step);
  if (const PaddingRule rule = FindRule(node.op_type)) return rule(step);
  if (const PaddingRule move = FindMove(node.op_type)) return move(step);
  return CarryUnpadded(step);
}

}  // namespace anemone
