// Pooling that the Pooling unit does not support: three spatial axes, dilated windows, powers other
// than
// 2. Each axis is pooled separately: a maximum by strided views, a sum by a matrix with the weight
// of each element in each window. GlobalLpPool has a window that covers everything.
#include <vector>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/axis_matrix.h"
#include "kernels/shared/borders.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/shared/window.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reduction.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

constexpr int64_t kMostTaps = 32;  // of a maximum; each needs a view and a unit

struct AxisWindow {
  Axis axis = Axis::kW;
  Along along;
  int64_t in = 1, out = 1;

  // The input element of tap k of window o.
  int64_t At(int64_t o, int64_t k) const {
    return o * along.stride + k * along.dilation - along.pad_before;
  }
};

struct Form {
  std::vector<AxisWindow> windows;
  bool counts_pads = false;  // an average that counts the padding
  int64_t power = 1;
};

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  if (IsRead(c.view(), node, 1)) return c.NotLowered("the output Indices of MaxPool");
  Form form;
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, a.Ints("kernel_shape", {}));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Along> window, ReadNodeWindow(a, kernel));
  ANEMONE_ASSIGN_OR_RETURN(PadType auto_pad, ReadAutoPad(a));
  ANEMONE_ASSIGN_OR_RETURN(int64_t counted, a.Int("count_include_pad", 0));
  ANEMONE_ASSIGN_OR_RETURN(form.power, a.Int("p", node.op_type == "LpPool" ? 2 : 1));
  a.Ignore("ceil_mode");      // implied by the shape of the output
  a.Ignore("storage_order");  // the order of the indices
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  form.counts_pads = counted != 0;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  const size_t spatial = kernel.size();
  if (from.size() != spatial + 2 || to.size() != spatial + 2 || form.power < 1) {
    return absl::InvalidArgumentError(
        "kernel_shape and p do not fit the input; run the ONNX checker on the model");
  }
  const int rank = static_cast<int>(from.size());
  for (size_t i = 0; i < spatial; ++i) {
    AxisWindow w{ToEngineAxis(rank, static_cast<int>(i) + 2), window[i], from[i + 2], to[i + 2]};
    if (w.in < 1 || w.out < 1) return c.Refuse(rule::kEmptyTensor);
    SettlePads(auto_pad, w.in, w.out, /*transposed=*/false, w.along);
    form.windows.push_back(w);
  }
  return form;
}

Operand MaximumAlong(LowerContext& c, Operand x, const AxisWindow& w) {
  if (w.along.kernel > kMostTaps)
    return c.NotLowered("MaxPool as several units, with a window above 32 elements along an axis");
  const int64_t after = w.At(w.out - 1, w.along.kernel - 1) + 1 - w.in;
  x = Between(c, x, w.axis, w.along.pad_before, after, {.value = fp16::kLowest});
  Operand y;
  for (int64_t k = 0; k < w.along.kernel; ++k) {
    Operand tap = Sliced(c, x, w.axis, k * w.along.dilation, w.out, w.along.stride);
    if (k == 0) {
      y = tap;
    } else {
      y = Combined(c, ElementWiseType::kMax, y, tap);
    }
  }
  return y;
}

// The sum or the mean of each window along one axis.
Operand SumAlong(LowerContext& c, const Operand& x, const AxisWindow& w, bool mean,
                 bool counts_pads) {
  if (w.in > MostMatrixElements() / w.out)
    return RefuseOverLimit(c, ModelLimit::kMatrixElements,
                           "pooling along an axis whose matrix of weights would have");
  Tensor matrix = Tensor::Zeros(DataType::kFloat, {w.out, w.in});
  auto* to = matrix.mutable_data<float>();
  const int64_t past = counts_pads ? w.in + w.along.pad_after : w.in;
  for (int64_t o = 0; o < w.out; ++o) {
    int64_t count = 0;
    for (int64_t k = 0; k < w.along.kernel; ++k) {
      const int64_t at = w.At(o, k);
      count += at < past && (counts_pads || at >= 0) ? 1 : 0;
      if (at >= 0 && at < w.in) to[o * w.in + at] += 1;
    }
    for (int64_t i = 0; mean && count > 0 && i < w.in; ++i) {
      to[o * w.in + i] /= static_cast<float>(count);
    }
  }
  return TimesMatrix(c, x, w.axis, matrix);
}

// |x| to the power, or the root of that power. The powers and their sum overflow above 65504.
Operand Powered(LowerContext& c, const Operand& x, int64_t power) {
  if (power == 1) return Absolute(c, x);
  if (power == 2) return Combined(c, ElementWiseType::kMult, x, x);
  Operand y = Absolute(c, x);
  return Combined(c, ElementWiseType::kPower, y, ScalarConstant(c, static_cast<float>(power)));
}

Operand Rooted(LowerContext& c, const Operand& x, int64_t power) {
  if (power == 1) return x;
  if (power == 2) return Activated(c, NeuronType::kSqrt, x);
  return Combined(c, ElementWiseType::kPower, x, ScalarConstant(c, 1 / static_cast<float>(power)));
}

absl::Status LowerMaximum(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  Operand x = c.In(node.inputs[0]);
  for (const AxisWindow& w : form.windows) {
    x = MaximumAlong(c, x, w);
  }
  return c.Out(node.outputs[0], x);
}

absl::Status LowerAverage(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  Operand x = c.In(node.inputs[0]);
  for (const AxisWindow& w : form.windows) {
    x = SumAlong(c, x, w, /*mean=*/true, form.counts_pads);
  }
  return c.Out(node.outputs[0], x);
}

absl::Status LowerPower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  Operand x = c.In(node.inputs[0]);
  x = Powered(c, x, form.power);
  for (const AxisWindow& w : form.windows) {
    x = SumAlong(c, x, w, /*mean=*/false, /*counts_pads=*/false);
  }
  x = Rooted(c, x, form.power);
  return c.Out(node.outputs[0], x);
}

absl::Status LowerGlobalPower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t power, a.Int("p", 2));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (power < 1) return absl::InvalidArgumentError("p: want 1 or more");
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  Operand x = c.In(node.inputs[0]);
  x = Powered(c, x, power);
  const int rank = static_cast<int>(shape.size());
  x = Reduced(c, x, ReduceType::kSum, AxesFrom(rank, 2));
  x = Rooted(c, x, power);
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "MaxPool", .rewritten = true, .lower = LowerMaximum},
    {.op = "AveragePool", .rewritten = true, .lower = LowerAverage},
    {.op = "LpPool", .rewritten = true, .lower = LowerPower},
    {.op = "GlobalLpPool", .rewritten = true, .lower = LowerGlobalPower},
};

}  // namespace

KernelRows WindowPartsRows() { return {{}, kLowerings}; }

}  // namespace anemone
