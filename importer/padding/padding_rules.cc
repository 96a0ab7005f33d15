#include "importer/padding/padding_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/operators/operators.h"
#include "importer/padding/padding_bounds.h"

namespace anemone {
namespace {

// Sets the padding to unknown finite numbers, after elements were combined.
void Forget(Flow& flow) {
  flow.used = {};
  flow.holes = false;
  for (FlowAxis& axis : flow.axes) {
    for (FlowStretch& s : axis) s.padding = {.even = true};
  }
}

// Widens `beside` to `everywhere` before one axis is combined: then elements that are padding by
// two stretches become padding by the other stretch only.
void LookEverywhere(Flow& flow) {
  for (FlowAxis& axis : flow.axes) {
    for (FlowStretch& s : axis) s.padding = {s.padding.everywhere, s.padding.everywhere};
  }
}

bool HoldsZeros(const FlowAxis& axis) {
  return std::all_of(axis.begin(), axis.end(),
                     [](const FlowStretch& s) { return !s.padded() || s.padding.beside.is(0); });
}

// Each element is computed from the elements at the same place.
Flows CarryElementwise(const PaddingStep& step, const Elementwise& op) {
  std::vector<Flow> inputs;
  for (size_t i = 0; i < step.bucket.inputs.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(inputs.emplace_back(), step.flow(i));
  }
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(op, inputs));
  return One(std::move(made));
}

Flows CarryUnary(const PaddingStep& step, const Elementwise& op) {
  ANEMONE_ASSIGN_OR_RETURN(Flow input, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(op, {std::move(input)}));
  return One(std::move(made));
}

// The product of matrices with axes (..., M, K) and (..., K, N).
absl::StatusOr<Flow> Multiply(Flow a, Flow b) {
  FlowAxis& columns = a.axes.back();
  FlowAxis& rows = b.axes[b.axes.size() - 2];
  if (!SameStretches(columns, rows))
    return Mixes("sums over an axis on which its operands are padded differently");
  if (IsPadded(columns)) {
    if (a.wild || b.wild || a.holes || b.holes) {
      return Mixes("sums over padding that may contain NaN or infinity");
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

// The axes of a reduction, from an input or an attribute. If none are given: all axes, or no axis
// with noop_with_empty_axes.
absl::StatusOr<std::vector<size_t>> ReducedAxes(const PaddingStep& step, const Flow& flow) {
  std::optional<std::vector<int64_t>> given = IntsOf(step.bucket, "axes");
  if (HasInput(step.bucket, 1)) {
    given = SameInts(step, 1);
    if (!given) return Mixes("has axes that are known only at run time");
  }
  std::vector<size_t> axes;
  for (int64_t axis : given.value_or(std::vector<int64_t>())) {
    ANEMONE_ASSIGN_OR_RETURN(axes.emplace_back(), NormalizeAxis(flow, axis));
  }
  if (!axes.empty() || IntOr(step.bucket, "noop_with_empty_axes", 0) != 0) return axes;
  for (size_t a = 0; a < flow.axes.size(); ++a) axes.push_back(a);
  return axes;
}

Flows CarryReduction(const PaddingStep& step, const Reduction& row) {
  ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<size_t> axes, ReducedAxes(step, flow));
  bool joins = false;
  for (size_t axis : axes) {
    if (!IsPadded(flow.axes[axis])) continue;
    joins = true;
    if (!row.takes_zeros) return Mixes("combines all positions of the padded axis");
    if (!HoldsZeros(flow.axes[axis]) || flow.wild || flow.holes) {
      return Mixes(
          "combines all positions of the padded axis, and the padding is not known to be 0");
    }
  }
  if (joins) LookEverywhere(flow);
  const Elementwise op = {.bounds = row.bounds};
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

// The outputs of an operator that works on the axes from `first` to `end`. These axes must not be
// padded and may change size; the padding of all other axes is that of the first input.
Flows CarryBeside(const PaddingStep& step, const Flow& input, size_t first, size_t end) {
  for (size_t a = first; a < end; ++a) {
    if (IsPadded(input.axes[a])) return Mixes("mixes values along the padded axis");
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
  for (size_t i = 1; i < step.bucket.inputs.size(); ++i) {
    if (!HasInput(step.bucket, i)) continue;
    ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(i));
    if (flow.padded()) return Mixes("has padding in an input other than the first");
  }
  return absl::OkStatus();
}

// An operator without a rule: allowed as long as none of its inputs is padded.
Flows CarryUnpadded(const PaddingStep& step) {
  if (!BodiesOf(step.bucket).empty())
    return Mixes("contains a subgraph, which the proof does not analyze");
  Flow plain;
  for (size_t i = 0; i < step.bucket.inputs.size(); ++i) {
    if (!HasInput(step.bucket, i)) continue;
    ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(i));
    if (flow.padded()) return Mixes("has no padding rule, so it may mix positions");
    plain.wild |= flow.wild || flow.holes;
    plain.inputs.insert(flow.inputs.begin(), flow.inputs.end());
  }
  std::vector<Flow> made(step.bucket.outputs.size(), plain);
  for (size_t i = 0; i < made.size(); ++i) {
    if (step.bucket.outputs[i] == kNone) continue;
    for (int64_t size : step.OutputSizes(i).full) made[i].axes.push_back(PlainAxis(size));
  }
  return made;
}

}  // namespace

Flows CarryProduct(const PaddingStep& step) {
  if (step.bucket.inputs[0] == step.bucket.inputs[1]) {
    return CarryUnary(step, {.bounds = bounds::NotNegative});
  }
  return CarryElementwise(step, *OperatorOf(step.bucket).elementwise);
}

Flows CarryCast(const PaddingStep& step) {
  const DataType to = step.bucket_graph.values[step.bucket.outputs[0]].type;
  Elementwise cast = {.bounds = bounds::Rising<std::trunc>,
                      .holes = Elementwise::kHolesStay,
                      .mask = Elementwise::kSum};
  if (to == DataType::kBool) cast.bounds = bounds::NotZero;
  if (IsFloating(to)) cast.bounds = bounds::First;
  return CarryUnary(step, cast);
}

Flows CarryClip(const PaddingStep& step) {
  Flow limits;
  if (HasInput(step.bucket, 1)) {
    ANEMONE_ASSIGN_OR_RETURN(const Flow low, step.flow(1));
    if (low.padded()) return Mixes("has limits that are padded");
    limits.used.low = low.used.low;
  }
  if (HasInput(step.bucket, 2)) {
    ANEMONE_ASSIGN_OR_RETURN(const Flow high, step.flow(2));
    if (high.padded()) return Mixes("has limits that are padded");
    limits.used.high = high.used.high;
  }
  ANEMONE_ASSIGN_OR_RETURN(Flow input, step.flow(0));
  const Elementwise clip = {.bounds = bounds::Clipped, .holes = Elementwise::kHolesStay};
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(clip, {std::move(input), std::move(limits)}));
  return One(std::move(made));
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
  if (a.axes.size() != 2 || b.axes.size() != 2) return Mixes("has operands that are not matrices");
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
  ANEMONE_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(flow, IntOr(step.bucket, "axis", -1)));
  for (size_t a = 0; a < flow.axes.size(); ++a) {
    for (FlowStretch& s : flow.axes[a]) {
      if (!s.padded()) continue;
      if (a != axis) {
        // The softmax of a row of only minus infinities is NaN.
        flow.wild |= flow.holes && !s.padding.repeats && !s.padding.even;
        s.padding = {.beside = {0, 1}, .everywhere = {0, 1}, .even = true};
        continue;
      }
      if (!IsMasked(s.padding) || flow.wild) {
        return Mixes("normalizes over the padded axis, and no mask excludes the padding");
      }
    }
  }
  for (FlowStretch& s : flow.axes[axis]) {
    Padding& padding = s.padding;
    if (!padding.masked) {
      padding.masks = flow.inputs;
      padding.mask_axes = flow.changing_axes();
    }
    if (s.padded()) ANEMONE_RETURN_IF_ERROR(step.rely_on_mask(s));
    padding = {.beside = {0, 0}, .everywhere = {0, 1}, .even = true};
  }
  flow.used = {0, 1};
  flow.holes = false;
  return One(std::move(flow));
}

// Normalizations over the last axes.
Flows CarryTrailing(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  ANEMONE_RETURN_IF_ERROR(RestIsPlain(step));
  ANEMONE_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(flow, IntOr(step.bucket, "axis", -1)));
  return CarryBeside(step, flow, axis, flow.axes.size());
}

// Operators that work on all axes except the first, the batch.
Flows CarryBatch(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  ANEMONE_RETURN_IF_ERROR(RestIsPlain(step));
  if (flow.axes.empty()) return Mixes("has no batch axis");
  const PaddingStep::Sizes in = step.InputSizes(0);
  const PaddingStep::Sizes out = step.OutputSizes(0);
  if (out.full.empty() || in.full[0] != out.full[0]) return Mixes("changes the batch size");
  return CarryBeside(step, flow, 1, flow.axes.size());
}

// Resize of all axes except the first. Its size arguments depend on the bucket's size.
Flows CarryResize(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  if (!flow.padded()) return CarryUnpadded(step);
  const PaddingStep::Sizes in = step.InputSizes(0);
  const PaddingStep::Sizes out = step.OutputSizes(0);
  if (in.full[0] != out.full[0] || step.bucket.FindAttribute("axes") != nullptr ||
      StringOr(step.bucket, "coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    return Mixes("resizes the padded axis");
  }
  if (HasInput(step.bucket, 2)) {  // scales; if empty, sizes are given instead
    const Value& value = step.bucket_graph.values[step.bucket.inputs[2]];
    const bool known = value.constant && value.constant->type() == DataType::kFloat;
    if (!known || (value.constant->elements() > 0 && value.constant->at<float>(0) != 1)) {
      return Mixes("resizes the padded axis");
    }
  }
  return CarryBeside(step, flow, 1, flow.axes.size());
}

Flows CarryPadding(const PaddingStep& step) {
  const Operator& op = OperatorOf(step.bucket);
  if (op.padding != nullptr) return op.padding(step);
  if (op.reduction) return CarryReduction(step, *op.reduction);
  if (op.elementwise) return CarryElementwise(step, *op.elementwise);
  return CarryUnpadded(step);
}

}  // namespace anemone
