// InputView: a part of one axis, read in place without a copy. Slice and Split are lowered to it.
// Operators without effect (Identity, Dropout at inference) are lowered here to no unit. Facts:
// validators.json InputView; netplist.md InputView.
#include "kernels/units/input_view.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "engine/software/views.h"
#include "engine/warning.h"
#include "kernels/attributes.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/mil/mil_operands.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/permuted.h"
#include "kernels/units/concat.h"
#include "kernels/units/dynamic_slice.h"
#include "kernels/units/reshape.h"
#include "math/exact/exact_elementwise.h"
#include "math/move/copy.h"
#include "rule_table.h"     // generated
#include "warning_table.h"  // generated

namespace anemone {
namespace {

struct InputViewParams {
  Axis axis = Axis::kW;
  int64_t offset = 0, size = 1, step = 1;
};

// Whether the last element is inside an axis of `extent`, given that the first one is. Handles all
// numbers without overflow.
bool EndsInside(const InputViewParams& p, int64_t extent) {
  if (p.size < 1 || p.size > extent) return false;
  if (p.size == 1) return true;
  if (p.step <= -extent || p.step >= extent) return false;
  const int64_t room = p.step > 0 ? extent - 1 - p.offset : p.offset;
  return p.size - 1 <= room / std::abs(p.step);
}

absl::StatusOr<Dims> Shape(const InputViewParams& p, Bottoms in) {
  if (p.size < 0 || p.step == 0) {
    return absl::InvalidArgumentError("view: want a size of at least 0 and a step that is not 0");
  }
  Dims out = in[0].dims;
  out[p.axis] = p.size;
  return out;
}

Verdict Validate(const InputViewParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  int64_t extent = in[0].dims[p.axis];
  if (p.offset < 0 || p.offset >= extent) return judge.Reject(rule::kInputViewOffset);
  if (p.step == 0) return judge.Reject(rule::kInputViewStep);
  if (!EndsInside(p, extent)) return judge.Reject(rule::kInputViewSize);
  if (p.step > 0) return judge.Accept();
  if (p.step != -1 || p.size != extent) return judge.Reject(rule::kInputViewBackwards);
  // That a whole axis may be reversed is inferred from the text that refuses to reverse a part of
  // an axis. It has not been measured.
  Verdict accepted = judge.Accept();
  accepted.status = Weaker(accepted.status, rule::kInputViewBackwards.status);
  return accepted;
}

bool Steps(const InputViewParams& p) { return p.step != 1; }

constexpr Field<InputViewParams> kFields[] = {
    Required<&InputViewParams::axis>("Dimension"),
    Required<&InputViewParams::offset>("Offset"),
    Required<&InputViewParams::size>("Size"),
    Key<&InputViewParams::step, Plain, Steps>("Step"),
};

// The elements are next to each other if all axes before the sliced one have one element.
absl::StatusOr<Prepared> Prepare(const InputViewParams& p, Bottoms in, absl::Span<const Tensor>) {
  int64_t before = 1, behind = 1;
  for (int axis = 0; axis < kAxisCount; ++axis) {
    (axis < static_cast<int>(p.axis) ? before : behind) *= in[0].dims.extent[axis];
  }
  if (p.step != 1 || before != 1) return Prepared();
  return MakeSlice(behind / in[0].dims[p.axis] * p.offset);
}

void Compute(const InputViewParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::Extents starts = {0, 0, 0, 0, 0};
  math::Extents steps = {1, 1, 1, 1, 1};
  starts[static_cast<int>(p.axis)] = p.offset;
  steps[static_cast<int>(p.axis)] = p.step;
  math::Slice(in[0].dims.extent, starts, steps, out.dims.extent, in[0].span(), out.span());
}

// A slice of the width with an offset is stored with a gain of 16 on the families that have this
// gain, so it may saturate (numerics.json sat-wslice).
bool SlicesWidth(const InputViewParams& p) { return p.axis == Axis::kW && p.offset != 0; }

void Exact(const InputViewParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  Compute(p, nullptr, in, out);
  if (SlicesWidth(p)) math::ThroughWidthSlice(unit.numerics, out.span());
}

void Warn(const InputViewParams& p, const Unit&, Bottoms, const Target& target, Route route,
          WarningList& list) {
  const bool is_clean = Judge(target, route).Reaches(warning::kWidthSlice);
  if (p.axis == Axis::kW && p.offset > 0 && !is_clean) list.Add(warning::kWidthSlice, p.offset);
}

// A slice does not become one of the width with an offset, whose large values may saturate.
std::shared_ptr<const void> Permuted(const InputViewParams& p, const Permutation& order) {
  InputViewParams moved = p;
  moved.axis = Permute(p.axis, order);
  if (SlicesWidth(moved) && !SlicesWidth(p)) return nullptr;
  return std::make_shared<const InputViewParams>(moved);
}

// Uses slice_by_size if possible: the engine runs slice_by_index only if it is fused with a
// neighbor (rule slice-by-index).
absl::Status WriteMil(const InputViewParams& p, const Unit& unit, MilEmitter& e) {
  const int at = e.ToMilAxis(p.axis);
  if (at < 0) {  // the depth, of extent 1
    e.Result(e.In(0));
    return absl::OkStatus();
  }
  const std::vector<int64_t> from = e.ShapeOf(e.DimsOf(0));
  std::vector<int64_t> begin(e.rank(), 0);
  begin[at] = p.offset;
  std::string y;
  if (p.step == 1 || p.size == 1) {
    y = e.Emit(
        "slice_by_size",
        {{"x", {e.In(0)}}, {"begin", {e.Ints(begin)}}, {"size", {e.Ints(e.ShapeOf(unit.dims))}}},
        unit.dims);
  } else if (p.step > 0) {
    std::vector<int64_t> end = from, stride(e.rank(), 1);
    end[at] = p.offset + (p.size - 1) * p.step + 1;
    stride[at] = p.step;
    y = e.Emit("slice_by_index",
               {{"x", {e.In(0)}},
                {"begin", {e.Ints(begin)}},
                {"end", {e.Ints(end)}},
                {"stride", {e.Ints(stride)}}},
               unit.dims);
  } else if (p.step == -1 && p.size == from[at]) {
    y = e.Emit("reverse", {{"x", {e.In(0)}}, {"axes", {e.Ints({at})}}}, unit.dims);
  } else {
    return absl::UnimplementedError("reversing a part of an axis");
  }
  e.Result(std::move(y));
  return absl::OkStatus();
}

const UnitKindOf<InputViewParams>& Kind() {
  static const UnitKindOf<InputViewParams> kind({
      .type = "InputView",
      .family = &rule::kUnitFamily,
      .permuted = Permuted,
      .judge = {.shape = Shape, .validate = Validate, .warn = Warn},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.prepare = Prepare,
              .compute = Compute,
              .selects = [](const InputViewParams&) { return true; }},
      .exact = {.compute = Exact, .slices_width = SlicesWidth},
  });
  return kind;
}

absl::Status LowerSlice(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes attributes(node);
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft(c));
  if (HasInput(node, 1) && c.view().Constant(node.inputs[1]) == nullptr) {
    return LowerDynamicSlice(node, c);
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  int64_t rank = static_cast<int64_t>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(auto starts, ConstantIntegers(c, node, 1, {}));
  ANEMONE_ASSIGN_OR_RETURN(auto ends, ConstantIntegers(c, node, 2, {}));
  std::vector<int64_t> first_axes(starts.size());
  for (size_t i = 0; i < first_axes.size(); ++i) first_axes[i] = static_cast<int64_t>(i);
  ANEMONE_ASSIGN_OR_RETURN(auto axes, ConstantIntegers(c, node, 3, first_axes));
  ANEMONE_ASSIGN_OR_RETURN(auto steps,
                           ConstantIntegers(c, node, 4, std::vector<int64_t>(starts.size(), 1)));
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size() || starts.size() > shape.size()) {
    return absl::InvalidArgumentError(
        "starts, ends, axes and steps: want the same number of elements in each; run the ONNX "
        "checker on the model");
  }
  Operand x = c.In(node.inputs[0]);
  for (size_t i = 0; i < starts.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(axes[i], rank));
    ANEMONE_ASSIGN_OR_RETURN(Range range, RangeOf(starts[i], ends[i], steps[i], shape[axis]));
    x = Sliced(c, x, ToEngineAxis(static_cast<int>(rank), axis), range.offset, range.size,
               range.step);
  }
  return c.Out(node.outputs[0], x);
}

// Parts of the given sizes, or equal parts, of which the last may be smaller.
absl::Status LowerSplit(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes attributes(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t at, attributes.Int("axis", 0));
  attributes.Ignore("num_outputs");
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, rank));
  int64_t parts = std::max<int64_t>(static_cast<int64_t>(node.outputs.size()), 1);
  std::vector<int64_t> equal(parts, (shape[axis] + parts - 1) / parts);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ConstantIntegers(c, node, 1, equal));
  if (sizes.size() != node.outputs.size()) {
    return absl::InvalidArgumentError(
        "split: want a size for every output; run the ONNX checker on the model");
  }
  Operand x = c.In(node.inputs[0]);
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t size = std::clamp<int64_t>(sizes[i], 0, shape[axis] - offset);
    if (node.outputs[i] != kNone) {
      Operand y = Sliced(c, x, ToEngineAxis(rank, axis), offset, size);
      ANEMONE_RETURN_IF_ERROR(c.Out(node.outputs[i], y));
    }
    offset += size;
  }
  return absl::OkStatus();
}

// The output is the input.
absl::Status LowerIdentity(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  return c.Out(node.outputs[0], x);
}

// An attribute with one integer for each axis of argument 0. `other`: a second name of the
// attribute.
absl::StatusOr<std::vector<int64_t>> PerAxis(MilContext& c, const char* key, int64_t fallback,
                                             const char* other = nullptr) {
  if (other != nullptr && c.Has(other)) key = other;
  std::vector<int64_t> all(c.rank(0), fallback);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> values, c.Ints(key, all));
  if (values.size() == all.size()) return values;
  return absl::InvalidArgumentError(
      absl::StrCat(c.call().op, ", attribute '", key, "': want one integer for each axis"));
}

// Checks that the bounds are attributes, so that the call has only `tensors` arguments.
absl::Status CheckBounds(MilContext& c, size_t tensors) {
  c.In(tensors - 1);
  if (c.arguments() > tensors) return c.NotLowered("slice with bounds computed at run time");
  return absl::OkStatus();
}

// The range of each axis, from begin, end, stride and the masks. A squeezed axis has one element.
absl::StatusOr<std::vector<Range>> RangesOf(MilContext& c, const std::vector<bool>& squeezed) {
  ANEMONE_ASSIGN_OR_RETURN(auto begin, PerAxis(c, "begin", 0));
  ANEMONE_ASSIGN_OR_RETURN(auto end, PerAxis(c, "end", 0));
  ANEMONE_ASSIGN_OR_RETURN(auto stride, PerAxis(c, "stride", 1, "strides"));
  ANEMONE_ASSIGN_OR_RETURN(auto from_start, MaskOf(c, "begin_mask", begin.size()));
  ANEMONE_ASSIGN_OR_RETURN(auto to_end, MaskOf(c, "end_mask", begin.size()));
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  std::vector<Range> ranges;
  for (size_t i = 0; i < begin.size(); ++i) {
    const bool forwards = stride[i] > 0;
    if (squeezed[i]) {
      stride[i] = 1;
      end[i] = begin[i] == -1 || begin[i] == kLast ? kLast : begin[i] + 1;
    } else {
      if (from_start[i]) begin[i] = forwards ? 0 : kLast;
      if (to_end[i]) end[i] = forwards ? kLast : kFirst;
    }
    ANEMONE_ASSIGN_OR_RETURN(Range range, RangeOf(begin[i], end[i], stride[i], c.ShapeOf(0)[i]));
    ranges.push_back(range);
  }
  return ranges;
}

// The part of `x` inside the ranges, one for each axis.
Operand Cut(NetworkBuilder& c, Operand x, absl::Span<const Range> ranges) {
  const int rank = static_cast<int>(ranges.size());
  for (int i = 0; i < rank; ++i) {
    const Range& range = ranges[i];
    x = Sliced(c, x, ToEngineAxis(rank, i), range.offset, range.size, range.step);
  }
  return x;
}

absl::Status OutCut(MilContext& c, absl::Span<const Range> ranges) {
  std::vector<int64_t> shape;
  for (const Range& range : ranges) shape.push_back(range.size);
  Operand x = c.In(0);
  x = Cut(c, x, ranges);
  return c.Out(x, shape);
}

// A size of -1 means up to the end.
absl::Status BuildSliceBySize(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(CheckBounds(c, 1));
  ANEMONE_ASSIGN_OR_RETURN(auto begin, PerAxis(c, "begin", 0));
  ANEMONE_ASSIGN_OR_RETURN(auto size, PerAxis(c, "size", -1));
  std::vector<Range> ranges;
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t extent = c.ShapeOf(0)[i];
    if (begin[i] < -extent || begin[i] >= extent) return c.Refuse(rule::kInputViewOffset);
    if (begin[i] < 0) begin[i] += extent;
    if (size[i] == -1) size[i] = extent - begin[i];
    if (size[i] < 1 || size[i] > extent - begin[i]) return c.Refuse(rule::kInputViewSize);
    ranges.push_back({begin[i], size[i], 1});
  }
  return OutCut(c, ranges);
}

absl::Status BuildSliceByIndex(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kSliceByIndex));
  ANEMONE_RETURN_IF_ERROR(CheckBounds(c, 1));
  ANEMONE_ASSIGN_OR_RETURN(auto squeezed, MaskOf(c, "squeeze_mask", c.ShapeOf(0).size()));
  ANEMONE_ASSIGN_OR_RETURN(auto ranges, RangesOf(c, squeezed));
  Operand x = c.In(0);
  x = Cut(c, x, ranges);
  std::vector<int64_t> shape;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].size == 0) return c.Refuse(rule::kEmptyTensor);
    if (!squeezed[i]) shape.push_back(ranges[i].size);
  }
  if (shape.size() != ranges.size()) {
    x = ReshapeInOnnxOrder(c, x, c.rank(0), shape);
  }
  return c.Out(x, shape);
}

// The parts of x before and after the update are concatenated to it along each axis, the last axis
// first.
absl::Status BuildSliceUpdate(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(CheckBounds(c, 2));
  // Read from the attribute, because RangesOf() may clamp a step to the extent.
  ANEMONE_ASSIGN_OR_RETURN(auto stride, PerAxis(c, "stride", 1, "strides"));
  if (std::any_of(stride.begin(), stride.end(), [](int64_t step) { return step != 1; })) {
    if (c.route() == Route::kMil) return c.Refuse(rule::kSliceUpdateStride);
    return c.NotLowered("slice_update with a stride other than 1");
  }
  ANEMONE_ASSIGN_OR_RETURN(auto squeezed, MaskOf(c, "squeeze_mask", c.ShapeOf(0).size()));
  ANEMONE_ASSIGN_OR_RETURN(auto ranges, RangesOf(c, squeezed));
  const int rank = c.rank(0);
  if (c.rank(1) != rank) return c.NotLowered("slice_update whose update has another rank");
  for (int i = 0; i < rank; ++i) {
    if (ranges[i].size != c.ShapeOf(1)[i]) {
      return absl::InvalidArgumentError("slice_update: want an update with the shape of the slice");
    }
  }
  Operand x = c.In(0);
  Operand y = c.In(1);
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t extent = c.ShapeOf(0)[i], end = ranges[i].offset + ranges[i].size;
    std::vector<Range> around = ranges;
    for (int k = i + 1; k < rank; ++k) around[k] = {0, c.ShapeOf(0)[k], 1};
    std::vector<Operand> parts;
    if (ranges[i].offset > 0) {
      around[i] = {0, ranges[i].offset, 1};
      parts.emplace_back() = Cut(c, x, around);
    }
    parts.push_back(y);
    if (end < extent) {
      around[i] = {end, extent - end, 1};
      parts.emplace_back() = Cut(c, x, around);
    }
    y = Concatenated(c, std::move(parts), ToEngineAxis(rank, i));
  }
  return c.Out(y, c.ShapeOf(0));
}

// Pieces of the given sizes, or the given number of equal pieces.
absl::Status BuildSplit(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", 0));
  std::vector<int64_t> shape = c.ShapeOf(0);
  const int64_t extent = shape[axis];
  ANEMONE_ASSIGN_OR_RETURN(int64_t pieces, c.Int("num_splits", 1));
  if (pieces < 1 || extent % pieces != 0) {
    return absl::InvalidArgumentError(
        "split, attribute 'num_splits': want a divisor of the extent of the axis");
  }
  ANEMONE_ASSIGN_OR_RETURN(auto sizes,
                           c.Ints("split_sizes", std::vector<int64_t>(pieces, extent / pieces)));
  Operand x = c.In(0);
  int64_t offset = 0;
  for (int64_t size : sizes) {
    if (size < 1 || size > extent - offset) return c.Refuse(rule::kInputViewSize);
    Operand piece = Sliced(c, x, ToEngineAxis(c.rank(0), axis), offset, size);
    shape[axis] = size;
    ANEMONE_RETURN_IF_ERROR(c.Out(piece, shape));
    offset += size;
  }
  if (offset == extent) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "split, attribute 'split_sizes': want sizes whose sum is the extent of the axis");
}

// Reverses the given axes, or all.
absl::Status BuildReverse(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.Ints("axes", {}));
  c.In(0);
  const int rank = c.rank(0);
  std::vector<Range> ranges;
  for (int64_t extent : c.ShapeOf(0)) ranges.push_back({0, extent, 1});
  for (int i = 0; axes.empty() && i < rank; ++i)
    ranges[i] = {c.ShapeOf(0)[i] - 1, c.ShapeOf(0)[i], -1};
  for (int64_t axis : axes) {
    ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
    ranges[at] = {c.ShapeOf(0)[at] - 1, c.ShapeOf(0)[at], -1};
  }
  return OutCut(c, ranges);
}

// Crops rows and columns off the last two axes; each attribute is {before, after}.
absl::Status BuildCrop(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(auto height, c.Ints("crop_height", {0, 0}));
  ANEMONE_ASSIGN_OR_RETURN(auto width, c.Ints("crop_width", {0, 0}));
  ANEMONE_RETURN_IF_ERROR(CheckBounds(c, 1));
  const size_t rank = c.ShapeOf(0).size();
  if (rank < 2 || height.size() != 2 || width.size() != 2) {
    return absl::InvalidArgumentError("crop: want rank 2 or more and two borders for each axis");
  }
  std::vector<Range> ranges;
  for (int64_t extent : c.ShapeOf(0)) ranges.push_back({0, extent, 1});
  for (const auto& [at, borders] : {std::pair(rank - 2, height), std::pair(rank - 1, width)}) {
    const int64_t extent = c.ShapeOf(0)[at];
    if (borders[0] < 0 || borders[0] >= extent) return c.Refuse(rule::kInputViewOffset);
    if (borders[1] < 0 || borders[1] >= extent - borders[0]) {
      return c.Refuse(rule::kInputViewSize);
    }
    ranges[at] = {borders[0], extent - borders[0] - borders[1], 1};
  }
  return OutCut(c, ranges);
}

constexpr MilOperation kOperations[] = {
    {"slice_by_size", BuildSliceBySize}, {"slice_by_index", BuildSliceByIndex},
    {"slice_update", BuildSliceUpdate},  {"split", BuildSplit},
    {"reverse", BuildReverse},           {"crop", BuildCrop},
};

constexpr Lowering kLowerings[] = {
    {.op = "Slice", .lower = LowerSlice},
    {.op = "Split", .lower = LowerSplit},
    {.op = "Identity", .lower = LowerIdentity},
};

}  // namespace

// Reversing a part of an axis needs two views, because the engine reverses only whole axes.
Operand Sliced(NetworkBuilder& c, const Operand& x, Axis axis, int64_t offset, int64_t size,
               int64_t step) {
  if (size > 0 && step < 0) {
    int64_t first = offset + (size - 1) * step;
    Operand part = Sliced(c, x, axis, first, size, -step);
    if (size == 1) return part;
    return c.Add(Kind(), InputViewParams{axis, size - 1, size, -1}, {part});
  }
  if (offset == 0 && size == c.DimsOf(x)[axis] && (step == 1 || size == 1)) return x;
  return c.Add(Kind(), InputViewParams{axis, offset, size, size == 1 ? 1 : step}, {x});
}

absl::StatusOr<Range> RangeOf(int64_t start, int64_t end, int64_t step, int64_t extent) {
  if (step == 0) return absl::InvalidArgumentError("slice: want a step that is not 0");
  bool forwards = step > 0;
  auto clamp = [&](int64_t at) {
    if (at < 0) at += extent;  // cannot overflow: extent is positive
    return forwards ? std::clamp<int64_t>(at, 0, extent) : std::clamp<int64_t>(at, -1, extent - 1);
  };
  start = clamp(start);
  end = clamp(end);
  int64_t span = forwards ? end - start : start - end;
  // A step larger than the extent takes one element. The smallest int64 cannot be negated.
  int64_t stride = step == std::numeric_limits<int64_t>::min() ? extent : std::abs(step);
  stride = std::clamp<int64_t>(stride, 1, std::max<int64_t>(extent, 1));
  int64_t size = span <= 0 ? 0 : (span - 1) / stride + 1;
  return Range{start, size, forwards ? stride : -stride};
}

KernelRows InputViewRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
