// DFT and STFT, as products with constant matrices of cosines and sines, for transforms whose
// matrix is small enough. Matrix and inputs are fp16 and sums are wide: the error is about 5e-4 of
// the largest output.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/conv/conv.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/axis_matrix.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/extents.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// A transform of `length` points, of which the first `in` are given and the others are 0, to `bins`
// outputs. Each input point has `parts` numbers: 1 if it is real, 2 if it is complex.
struct Transform {
  int64_t length = 1, in = 1, bins = 1, parts = 1;
  bool inverse = false;

  // The weight of part `p` of point `n` in part `q` of bin `k`. Part 0 is real, 1 is imaginary.
  double Weight(int64_t k, int64_t q, int64_t n, int64_t p) const {
    // k * n is taken modulo the length, so that the angle stays small and accurate.
    const double angle =
        2 * std::numbers::pi * static_cast<double>(k * n % length) / static_cast<double>(length);
    const double turn = inverse ? angle : -angle;
    const double scale = inverse ? 1 / static_cast<double>(length) : 1;
    if (p == q) return scale * std::cos(turn);
    return q == 1 ? scale * std::sin(turn) : -scale * std::sin(turn);
  }

  // Fails if the matrix would be too large for `op`.
  absl::Status CheckSize(LowerContext& c, absl::string_view op) const {
    constexpr int64_t kMostPoints = 8192;
    if (length > kMostPoints || in > length || bins > length) {
      return c.NotLowered(absl::StrCat(op, " of more than ", kMostPoints, " points"));
    }
    if (bins * 2 <= MostMatrixElements() / (in * parts)) return absl::OkStatus();
    return RefuseOverLimit(c, ModelLimit::kMatrixElements,
                           absl::StrCat(op, " whose matrix would have"));
  }

  // (bins * 2, in * parts).
  Tensor Matrix() const {
    Tensor matrix = Tensor::Zeros(DataType::kFloat, {bins * 2, in * parts});
    auto* to = matrix.mutable_data<float>();
    for (int64_t i = 0; i < matrix.elements(); ++i) {
      const int64_t row = i / (in * parts), column = i % (in * parts);
      to[i] = static_cast<float>(Weight(row / 2, row % 2, column / parts, column % parts));
    }
    return matrix;
  }
};

// Transforms the first `in` points of the axis, which may have more.
Operand Transformed(LowerContext& c, Operand x, absl::Span<const int64_t> shape, int axis,
                    const Transform& t) {
  const auto [before, after] = ProductsAround(shape.first(shape.size() - 1), axis);
  x = ToOnnxOrder(c, x, static_cast<int>(shape.size()));
  x = ReshapeToDims(c, x, MakeDims(before, shape[axis], after, t.parts));
  x = Sliced(c, x, Axis::kC, 0, t.in);
  x = SwapAxes(c, x, Axis::kH, Axis::kW);
  x = ReshapeToDims(c, x, MakeDims(before, t.in * t.parts, 1, after));
  x = TimesMatrix(c, x, Axis::kC, t.Matrix());
  x = ReshapeToDims(c, x, MakeDims(before, t.bins, 2, after));
  return SwapAxes(c, x, Axis::kH, Axis::kW);
}

absl::Status LowerDft(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t inverse, a.Int("inverse", 0));
  a.Ignore("onesided");  // follows from the shape of the output
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ConstantIntegers(c, node, 2, {-2}));
  if (axes.size() != 1 || from.size() < 2 || from.size() != to.size()) {
    return absl::InvalidArgumentError("DFT: want one axis and an input of rank 2 or more");
  }
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(axes[0], static_cast<int64_t>(from.size())));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> length, ConstantIntegers(c, node, 1, {from[axis]}));
  if (from.back() < 1 || from.back() > 2 || length.size() != 1 || length[0] < 1 ||
      axis + 1 == static_cast<int>(from.size())) {
    return absl::InvalidArgumentError("DFT: want real or complex numbers in the last axis");
  }
  if (to.back() != 2) return c.NotLowered("DFT with a real result");
  if (to[axis] < 1 || from[axis] < 1) return c.Refuse(rule::kEmptyTensor);
  const Transform t{.length = length[0],
                    .in = std::min(from[axis], length[0]),
                    .bins = to[axis],
                    .parts = from.back(),
                    .inverse = inverse != 0};
  ANEMONE_RETURN_IF_ERROR(t.CheckSize(c, "DFT"));
  Operand x = c.In(node.inputs[0]);
  x = Transformed(c, x, from, axis, t);
  x = FromOnnxOrder(c, x, to);
  return c.Out(node.outputs[0], x);
}

// The window, or ones if the input is omitted.
absl::StatusOr<std::vector<float>> WindowOf(LowerContext& c, const Node& node, int64_t length) {
  if (!HasInput(node, 2)) return std::vector<float>(length, 1);
  const Tensor* window = c.view().Constant(node.inputs[2]);
  if (window == nullptr || !IsEngineConstant(window->type())) {
    return c.NotLowered("STFT with a window computed at run time");
  }
  if (window->elements() != length) {
    return absl::InvalidArgumentError("window: want one element for each point of a frame");
  }
  return RoundedFloats(*window);
}

// STFT as a convolution: frames of `length` points, one every `step` points, are its windows. The
// greatest common divisor `unit` of both becomes part of the channels, so that the kernel is short:
// (bins * 2, parts * unit, 1, length / unit).
struct Framing {
  Transform transform;
  int64_t unit = 1, step = 1;

  Tensor Kernel(const std::vector<float>& window) const {
    const Transform& t = transform;
    const int64_t taps = t.length / unit, inner = unit * t.parts;
    Tensor kernel = Tensor::Zeros(DataType::kFloat, {t.bins * 2, inner, 1, taps});
    auto* to = kernel.mutable_data<float>();
    for (int64_t i = 0; i < kernel.elements(); ++i) {
      const int64_t row = i / (inner * taps), channel = i / taps % inner;
      const int64_t n = i % taps * unit + channel / t.parts;
      to[i] = static_cast<float>(t.Weight(row / 2, row % 2, n, channel % t.parts) * window[n]);
    }
    return kernel;
  }
};

absl::StatusOr<int64_t> OneInteger(LowerContext& c, const Node& node, size_t i, int64_t fallback) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> values, ConstantIntegers(c, node, i, {fallback}));
  if (values.size() != 1 || values[0] < 1) {
    return absl::InvalidArgumentError(absl::StrCat("STFT, input ", i, ": want an integer above 0"));
  }
  return values[0];
}

absl::Status LowerStft(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  a.Ignore("onesided");  // follows from the shape of the output
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  int64_t window_length = 1;
  if (HasInput(node, 2)) {
    ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[2]));
    if (shape.size() == 1) window_length = shape[0];
  }
  Framing f;
  ANEMONE_ASSIGN_OR_RETURN(f.step, OneInteger(c, node, 1, 1));
  ANEMONE_ASSIGN_OR_RETURN(f.transform.length, OneInteger(c, node, 3, window_length));
  if (from.size() == 2) from.push_back(1);
  if (from.size() != 3 || from[2] < 1 || from[2] > 2 || to.size() != 4) {
    return absl::InvalidArgumentError("STFT: want a signal of real or complex numbers");
  }
  f.transform.in = f.transform.length;
  f.transform.bins = to[2];
  f.transform.parts = from[2];
  f.unit = std::gcd(f.transform.length, f.step);
  if (from[1] < f.transform.length || to[1] < 1 || to[2] < 1) return c.Refuse(rule::kEmptyTensor);
  ANEMONE_RETURN_IF_ERROR(f.transform.CheckSize(c, "STFT"));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<float> window, WindowOf(c, node, f.transform.length));
  Operand x = c.In(node.inputs[0]);
  x = ReshapeToDims(c, x, MakeDims(from[0], from[1], 1, from[2]));
  const int64_t units = from[1] / f.unit;
  x = Sliced(c, x, Axis::kC, 0, units * f.unit);
  x = ReshapeToDims(c, x, MakeDims(from[0], units, 1, f.unit * from[2]));
  x = SwapAxes(c, x, Axis::kC, Axis::kW);
  ConvParams conv{.out_channels = to[2] * 2};
  conv.w = {.kernel = f.transform.length / f.unit, .stride = f.step / f.unit};
  x = c.Add(ConvUnit(), conv, {x}, {f.Kernel(window)});
  x = SwapAxes(c, x, Axis::kC, Axis::kW);
  x = Sliced(c, x, Axis::kC, 0, to[1]);
  x = ReshapeToDims(c, x, PlaceShape(to));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "DFT", .rewritten = true, .lower = LowerDft},
                                   {.op = "STFT", .rewritten = true, .lower = LowerStft}};

}  // namespace

KernelRows FourierRows() { return {{}, kLowerings}; }

}  // namespace anemone
