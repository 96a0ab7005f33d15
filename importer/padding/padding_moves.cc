// The padding rules of operators that move elements.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/padding/padding_bounds.h"
#include "importer/padding/padding_rules.h"

namespace anemone {
namespace {

// Removes stretches from the front of `left` (slowest first) until they make up an axis of these
// sizes.
absl::StatusOr<FlowAxis> TakeAxis(FlowAxis& left, int64_t full, int64_t used) {
  const auto cut = [] { return Mixes("breaks up the padded axis"); };
  FlowAxis axis;
  while (full > 1) {
    if (left.empty()) return cut();
    FlowStretch& next = left.front();
    if (full % next.full == 0 && used % next.used == 0) {
      full /= next.full;
      used /= next.used;
      Append(axis, std::move(next));
      left.erase(left.begin());
      continue;
    }
    // A stretch without padding may be divided.
    if (next.padded() || next.full % full != 0 || used != full) return cut();
    Append(axis, {full, full, {}});
    next.full = next.used = next.full / full;
    full = used = 1;
  }
  if (used != 1) return cut();
  return axis;
}

// A new axis with the same elements at every position.
FlowAxis RepeatedAxis(const Flow& flow, int64_t full, int64_t used) {
  FlowAxis axis;
  Append(axis, {full,
                used,
                {.beside = flow.used,
                 .everywhere = flow.all(),
                 .repeats = true,
                 .even = true,
                 .uniform = true}});
  return axis;
}

// The result of Gather: `axis` of the data is replaced by the axes of the indices.
Flow Gathered(Flow data, size_t axis, const Flow& indices) {
  const Bounds beside = data.used;
  const Bounds everywhere = data.all();
  std::vector<FlowAxis> axes(data.axes.begin(),
                             data.axes.begin() + static_cast<std::ptrdiff_t>(axis));
  for (FlowAxis own : indices.axes) {
    for (FlowStretch& s : own) {
      s.padding = {.beside = beside,
                   .everywhere = everywhere,
                   .repeats = s.padding.repeats,
                   .even = s.padding.repeats};
    }
    axes.push_back(std::move(own));
  }
  axes.insert(axes.end(), data.axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
              data.axes.end());
  data.axes = std::move(axes);
  data.wild |= indices.wild;
  data.inputs.insert(indices.inputs.begin(), indices.inputs.end());
  return data;
}

}  // namespace

// Reshape and similar operators: the same elements in the same order.
Flows CarryReshape(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(0));
  const PaddingStep::Sizes out = step.OutputSizes(0);
  FlowAxis left;
  for (FlowAxis& axis : flow.axes) {
    for (FlowStretch& s : axis) Append(left, std::move(s));
  }
  flow.axes.clear();
  for (size_t a = 0; a < out.full.size(); ++a) {
    ANEMONE_ASSIGN_OR_RETURN(flow.axes.emplace_back(), TakeAxis(left, out.full[a], out.used[a]));
  }
  return One(std::move(flow));
}

Flows CarryTranspose(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(0));
  std::vector<FlowAxis> axes;
  for (int64_t axis : PermOf(step.bucket, flow.axes.size())) {
    ANEMONE_ASSIGN_OR_RETURN(const size_t from, NormalizeAxis(flow, axis));
    axes.push_back(flow.axes[from]);
  }
  flow.axes = std::move(axes);
  return One(std::move(flow));
}

// Expand and Tile: an axis of size 1 grows, the others keep their size.
Flows CarryGrowth(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(0));
  const PaddingStep::Sizes out = step.OutputSizes(0);
  const size_t rank = out.full.size();
  if (rank < flow.axes.size()) return Mixes("removes axes");
  const Flow source = flow;
  flow.axes.insert(flow.axes.begin(), rank - flow.axes.size(), FlowAxis());
  for (size_t a = 0; a < rank; ++a) {
    FlowAxis& axis = flow.axes[a];
    if (FullOf(axis) == out.full[a]) continue;
    if (!axis.empty()) return Mixes("repeats an axis of more than one position");
    axis = RepeatedAxis(source, out.full[a], out.used[a]);
  }
  return One(std::move(flow));
}

Flows CarrySlice(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(0));
  const PaddingStep::Sizes in = step.InputSizes(0);
  const PaddingStep::Sizes out = step.OutputSizes(0);
  const auto starts = SameInts(step, 1);
  if (!starts) return Mixes("starts at a position that depends on the size");
  std::vector<int64_t> axes(starts->size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (HasInput(step.bucket, 3)) axes = SameInts(step, 3).value_or(std::vector<int64_t>());
  std::vector<int64_t> strides(starts->size(), 1);
  if (HasInput(step.bucket, 4)) strides = SameInts(step, 4).value_or(std::vector<int64_t>());
  if (axes.size() != starts->size() || strides.size() != starts->size()) {
    return Mixes("has axes or steps that are known only at run time");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(const size_t a, NormalizeAxis(flow, axes[i]));
    if (!IsPadded(flow.axes[a]) && out.full[a] == out.used[a]) {
      flow.axes[a] = PlainAxis(out.full[a]);
    } else if (strides[i] < 1 || in.full[a] != out.full[a] || in.used[a] != out.used[a]) {
      return Mixes("takes a part of the padded axis");
    }
  }
  return One(std::move(flow));
}

Flows CarrySplit(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(const Flow flow, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(flow, IntOr(step.bucket, "axis", 0)));
  if (IsPadded(flow.axes[axis])) return Mixes("splits the padded axis");
  std::vector<Flow> made(step.bucket.outputs.size(), flow);
  for (size_t i = 0; i < made.size(); ++i) {
    if (step.bucket.outputs[i] == kNone) continue;
    made[i].axes[axis] = PlainAxis(step.OutputSizes(i).full[axis]);
  }
  return made;
}

namespace {

// With `gaps`, data may follow the padding, if that is the tail of a gap.
Flows Concatenated(const PaddingStep& step, absl::Span<const Gap> gaps) {
  std::vector<Flow> inputs;
  FlowStretch whole = {0, 0, {}};
  int64_t tail = 0;
  size_t axis = 0;
  for (size_t i = 0; i < step.bucket.inputs.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(i));
    ANEMONE_ASSIGN_OR_RETURN(axis, NormalizeAxis(flow, IntOr(step.bucket, "axis", 0)));
    FlowAxis& own = flow.axes[axis];
    const PaddingStep::Sizes sizes = step.InputSizes(i);
    if (own.size() > 1 || (whole.padded() && (gaps.empty() || IsPadded(own)))) {
      return Mixes("appends data after the padded region");
    }
    if (whole.padded()) {
      tail += sizes.full[axis];
    } else {
      tail = TailOf(gaps, sizes.full[axis], sizes.used[axis]);
      if (!own.empty()) whole.padding = own[0].padding;
    }
    whole.full += sizes.full[axis];
    whole.used += sizes.used[axis];
    own.clear();
    inputs.push_back(std::move(flow));
  }
  if (whole.padded() && tail != TailOf(gaps, whole.full, whole.used)) {
    return Mixes("appends data after the padded region");
  }
  const Elementwise either = {.bounds = bounds::AnyInput, .holes = Elementwise::kHolesStay};
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(either, inputs));
  whole.padding.repeats = whole.padding.even = whole.padding.uniform = false;
  Append(made.axes[axis], std::move(whole));
  return One(std::move(made));
}

// True if Gather selects rows of a constant that only has more rows in the bucket.
bool IsLongerTable(const PaddingStep& step) {
  const Value& bucket = step.bucket_graph.values[step.bucket.inputs[0]];
  const Value& exact = step.exact_graph.values[step.exact.inputs[0]];
  if (IntOr(step.bucket, "axis", 0) != 0 || !bucket.constant || !exact.constant) return false;
  const Tensor &more = *bucket.constant, &less = *exact.constant;
  if (more.type() != less.type() || more.dims().empty() || less.dims().empty()) return false;
  if (more.compressed() != nullptr || less.compressed() != nullptr) return false;
  std::vector<int64_t> dims = more.dims();
  dims[0] = less.dims()[0];
  if (dims != less.dims() || dims[0] >= more.dims()[0] || BitsOf(more.type()) % 8 != 0)
    return false;
  if (more.is_fill() || less.is_fill()) return false;
  const absl::Span<const std::byte> rows = less.bytes();
  return std::equal(rows.begin(), rows.end(), more.bytes().begin());
}

// The exact model has the rows that it selects, so they are the same ones.
Flows CarryTable(const PaddingStep& step) {
  ANEMONE_RETURN_IF_ERROR(step.rely_on_positions(step.bucket.inputs[1]));
  ANEMONE_ASSIGN_OR_RETURN(const Flow indices, step.flow(1));
  if (indices.padded()) return Mixes("selects positions of the padded axis");
  Flow data;
  for (const int64_t size : step.InputSizes(0).full) data.axes.push_back(PlainAxis(size));
  return One(Gathered(std::move(data), 0, indices));
}

}  // namespace

int64_t TailOf(absl::Span<const Gap> gaps, int64_t full, int64_t used) {
  for (const Gap& gap : gaps) {
    if (gap.full == full && gap.used == used) return gap.tail;
  }
  return 0;
}

Flows CarryConcat(const PaddingStep& step) { return Concatenated(step, {}); }

Flows CarryPaddingWith(const PaddingStep& step, absl::Span<const Gap> gaps) {
  if (gaps.empty() || !step.bucket.domain.empty()) return CarryPadding(step);
  if (step.bucket.op_type == "Concat") return Concatenated(step, gaps);
  if (step.bucket.op_type == "Gather") {
    if (IsLongerTable(step)) return CarryTable(step);
    ANEMONE_ASSIGN_OR_RETURN(const Flow data, step.flow(0));
    for (const FlowAxis& axis : data.axes) {
      for (const FlowStretch& s : axis) {
        if (s.padded() && TailOf(gaps, s.full, s.used) > 0) {
          return Mixes("selects from a value whose padding is in the middle");
        }
      }
    }
  }
  return CarryPadding(step);
}

Flows CarryGather(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow data, step.flow(0));
  ANEMONE_ASSIGN_OR_RETURN(const Flow indices, step.flow(1));
  ANEMONE_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(data, IntOr(step.bucket, "axis", 0)));
  const int64_t size = step.InputSizes(0).full[axis];
  if (IsPadded(data.axes[axis])) {
    const auto numbers = SameInts(step, 1);
    const FlowAxis& own = data.axes[axis];
    if (!numbers || own.size() > 1) return Mixes("selects positions of the padded axis");
    for (int64_t number : *numbers) {
      if (number < 0) return Mixes("selects positions counted from the end of the padded axis");
      if (number >= own[0].used) return Mixes("selects positions that are padding");
    }
    // The selected positions are not padding.
    data.axes[axis].clear();
  }
  for (const FlowAxis& own : indices.axes) {
    for (const FlowStretch& s : own) {
      const Bounds& at = s.padding.everywhere;
      const bool inside =
          at.low >= static_cast<double>(-size) && at.high < static_cast<double>(size);
      if (s.padded() && !inside) return Mixes("may read outside its table at padded positions");
    }
  }
  return One(Gathered(std::move(data), axis, indices));
}

// ONNX's Pad, of axes that the bucket does not pad.
Flows CarryPad(const PaddingStep& step) {
  ANEMONE_ASSIGN_OR_RETURN(Flow flow, step.flow(0));
  const size_t rank = flow.axes.size();
  const auto pads = SameInts(step, 1);
  if (!pads) return Mixes("pads by an amount that depends on the size");
  std::vector<int64_t> axes(rank);
  for (size_t a = 0; a < rank; ++a) axes[a] = static_cast<int64_t>(a);
  if (HasInput(step.bucket, 3)) axes = SameInts(step, 3).value_or(std::vector<int64_t>());
  if (pads->size() != 2 * axes.size()) return Mixes("has axes that are known only at run time");
  const PaddingStep::Sizes out = step.OutputSizes(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if ((*pads)[i] == 0 && (*pads)[i + axes.size()] == 0) continue;
    ANEMONE_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(flow, axes[i]));
    if (IsPadded(flow.axes[axis])) return Mixes("pads the padded axis");
    flow.axes[axis] = PlainAxis(out.full[axis]);
  }
  // The fill value of Pad may be any number.
  const Elementwise any = {.holes = Elementwise::kHolesStay};
  ANEMONE_ASSIGN_OR_RETURN(Flow made, Apply(any, {std::move(flow)}));
  made.holes = true;
  return One(std::move(made));
}

}  // namespace anemone
