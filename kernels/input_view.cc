// InputView: a part of one axis, read where it lies. Slice, Split and what takes no part at all
// (Identity, Dropout at inference) become it. Facts: validators.json InputView; netplist.md
// InputView.
#include "kernels/input_view.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/copy.h"
#include "kernels/attributes.h"
#include "kernels/node_inputs.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct InputViewParams {
  Axis axis = Axis::kW;
  int64_t offset = 0, size = 1, step = 1;
  int64_t last() const { return offset + (size - 1) * step; }
};

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
  if (p.last() < 0 || p.last() >= extent) return judge.Reject(rule::kInputViewSize);
  if (p.step > 0) return judge.Accept();
  if (p.step != -1 || p.size != extent) return judge.Reject(rule::kInputViewBackwards);
  // That the whole may run backwards is read from the text which refuses a part; nobody ran it.
  Verdict accepted = judge.Accept();
  accepted.status = Weaker(accepted.status, rule::kInputViewBackwards.status);
  return accepted;
}

constexpr Field<InputViewParams> kFields[] = {
    {"Dimension", [](const InputViewParams& p) { return std::string(AxisName(p.axis)); }},
    {"Offset", [](const InputViewParams& p) { return absl::StrCat(p.offset); }},
    {"Size", [](const InputViewParams& p) { return absl::StrCat(p.size); }},
    {"Step", [](const InputViewParams& p) { return absl::StrCat(p.step); }},
};

void Compute(const InputViewParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::Extents starts = {0, 0, 0, 0, 0};
  math::Extents steps = {1, 1, 1, 1, 1};
  starts[static_cast<int>(p.axis)] = p.offset;
  steps[static_cast<int>(p.axis)] = p.step;
  math::Slice(in[0].dims.extent, starts, steps, out.dims.extent, in[0].span(), out.span());
}

const UnitKindOf<InputViewParams>& Kind() {
  static const UnitKindOf<InputViewParams>& kind =
      *new UnitKindOf<InputViewParams>({.type = "InputView",
                                        .shape = Shape,
                                        .validate = Validate,
                                        .fields = kFields,
                                        .compute = Compute});
  return kind;
}

// What Slice takes of one axis, with ONNX's clamping.
struct Range {
  int64_t offset = 0, size = 0, step = 1;
};

Range RangeOf(int64_t start, int64_t end, int64_t step, int64_t extent) {
  bool forwards = step > 0;
  auto clamp = [&](int64_t at) {
    if (at < 0) at += extent;  // cannot overflow: extent is positive
    return forwards ? std::clamp<int64_t>(at, 0, extent) : std::clamp<int64_t>(at, -1, extent - 1);
  };
  start = clamp(start);
  end = clamp(end);
  int64_t span = forwards ? end - start : start - end;
  // A step past the extent takes one element; the smallest integer has no positive twin.
  int64_t stride = step == std::numeric_limits<int64_t>::min() ? extent : std::abs(step);
  stride = std::clamp<int64_t>(stride, 1, std::max<int64_t>(extent, 1));
  int64_t size = span <= 0 ? 0 : (span - 1) / stride + 1;
  return {start, size, forwards ? stride : -stride};
}

absl::Status LowerSlice(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes attributes(node);
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft());
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
        "starts, ends, axes and steps: want one each for an axis; run the ONNX checker on the "
        "model");
  }
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  for (size_t i = 0; i < starts.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(axes[i], rank));
    if (steps[i] == 0) {
      return absl::InvalidArgumentError("steps: want no 0; run the ONNX checker on the model");
    }
    Range range = RangeOf(starts[i], ends[i], steps[i], shape[axis]);
    ANEMONE_ASSIGN_OR_RETURN(x, Sliced(c, x, AxisOf(static_cast<int>(rank), axis), range.offset,
                                       range.size, range.step));
  }
  return c.Out(node.outputs[0], x);
}

// Sizes as given, or equal parts of which the last may be smaller.
absl::Status LowerSplit(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes attributes(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t at, attributes.Int("axis", 0));
  attributes.Ignore("num_outputs");
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft());
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
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t size = std::clamp<int64_t>(sizes[i], 0, shape[axis] - offset);
    if (node.outputs[i] != kNone) {
      ANEMONE_ASSIGN_OR_RETURN(Operand y, Sliced(c, x, AxisOf(rank, axis), offset, size));
      ANEMONE_RETURN_IF_ERROR(c.Out(node.outputs[i], y));
    }
    offset += size;
  }
  return absl::OkStatus();
}

// Nothing to do: the output is the input.
absl::Status LowerIdentity(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  return c.Out(node.outputs[0], x);
}

// Dropout without training is the identity, whatever its ratio.
absl::Status LowerDropout(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  if (HasInput(node, 2)) {
    const Tensor* training = c.view().Constant(node.inputs[2]);
    if (training == nullptr || training->elements() != 1) {
      return c.NotLowered("dropout whose mode is computed at run time");
    }
    if (training->at<uint8_t>(0) != 0) return c.Refuse(rule::kDropoutRandom);
  }
  if (IsRead(c.view(), node, 1)) return c.NotLowered("the mask output of dropout");
  return LowerIdentity(match, c);
}

constexpr Lowering kLowerings[] = {
    {.op = "Slice", .lower = LowerSlice},
    {.op = "Split", .lower = LowerSplit},
    {.op = "Identity", .lower = LowerIdentity},
    {.op = "Dropout", .lower = LowerDropout},
};

}  // namespace

// A part of an axis that runs backwards takes two views: the engine reverses whole axes only.
absl::StatusOr<Operand> Sliced(NetworkBuilder& c, const Operand& x, Axis axis, int64_t offset,
                               int64_t size, int64_t step) {
  if (size > 0 && step < 0) {
    int64_t first = offset + (size - 1) * step;
    ANEMONE_ASSIGN_OR_RETURN(Operand part, Sliced(c, x, axis, first, size, -step));
    if (size == 1) return part;
    return c.Add(Kind(), InputViewParams{axis, size - 1, size, -1}, {part});
  }
  if (offset == 0 && size == c.DimsOf(x)[axis] && (step == 1 || size == 1)) return x;
  return c.Add(Kind(), InputViewParams{axis, offset, size, size == 1 ? 1 : step}, {x});
}

KernelRows InputViewRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
