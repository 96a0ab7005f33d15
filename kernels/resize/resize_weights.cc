// Resize in forms that the Resize unit does not have: cubic, antialias, tf_crop_and_resize, other
// positions and other axes. Each axis is multiplied by a matrix of weights (results x elements),
// which is computed here according to ONNX's definition. For each axis, the weights and the sums
// are rounded once.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/resize/resize_form.h"
#include "kernels/shared/axis_matrix.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

constexpr int64_t kMostTaps = 1 << 16;

double Cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

// The weights of the elements around a position; `first` is the index of the first element.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

// The elements are counted from `left`, the element before the position, as in ONNX; if the
// position is an integer, `left` is the integer before it. Antialiasing widens the kernel by the
// factor by which the image shrinks.
Taps TapsAt(const ResizeForm& form, double place, double scale) {
  const bool cubic = form.mode == "cubic";
  const double radius = cubic ? 2 : 1;
  const double stretch = form.antialias ? std::min(scale, 1.0) : 1;
  const double left = std::ceil(place) - 1;
  const auto start = static_cast<int64_t>(std::floor(-radius / stretch)) + 1;
  Taps taps{static_cast<int64_t>(left) + start, {}};
  double sum = 0;
  for (int64_t i = start; i < 2 - start; ++i) {
    const double x = stretch * (static_cast<double>(i) - (place - left));
    taps.weights.push_back(cubic ? Cubic(x, form.cubic) : std::max(0.0, 1 - std::abs(x)));
    sum += taps.weights.back();
  }
  for (double& w : taps.weights) w /= sum;
  return taps;
}

// Adds the weights of one result to its row. The weight of an element outside of the image goes to
// the border element, or is left out with exclude_outside; then the rest is scaled to sum up to 1.
void AddRow(const ResizeForm& form, const ResizeAxis& axis, const Taps& taps, float* row) {
  double inside = 0;
  std::vector<double> sums(axis.in, 0);
  for (size_t i = 0; i < taps.weights.size(); ++i) {
    const int64_t at = taps.first + static_cast<int64_t>(i);
    const int64_t near = std::clamp(at, int64_t{0}, axis.in - 1);
    if (at != near && form.excludes_outside) continue;
    sums[near] += taps.weights[i];
    inside += taps.weights[i];
  }
  for (int64_t i = 0; i < axis.in; ++i) row[i] = static_cast<float>(sums[i] / inside);
}

// The matrix of one axis, and for each result whether its position is outside of the image.
struct AxisWeights {
  Tensor matrix;
  std::vector<bool> outside;
};

absl::StatusOr<AxisWeights> WeightsOf(const ResizeForm& form, const ResizeAxis& axis,
                                      LowerContext& c) {
  if (axis.in / axis.scale > kMostTaps * 256.0 || 1 / axis.scale > kMostTaps) {
    return c.NotLowered("Resize that reads too many elements for each result");
  }
  if (axis.in > MostMatrixElements() / axis.out) {
    return RefuseOverLimit(c, ModelLimit::kMatrixElements, "Resize whose matrix would have");
  }
  AxisWeights w{Tensor::Zeros(DataType::kFloat, {axis.out, axis.in}),
                std::vector<bool>(axis.out, false)};
  for (int64_t o = 0; o < axis.out; ++o) {
    std::optional<float> place = ResizePlace(form.coordinates, axis, o);
    if (!place || !std::isfinite(*place)) {
      return c.NotLowered(absl::StrCat("Resize with coordinate_transformation_mode '",
                                       form.coordinates, "' at a position that is not known"));
    }
    float* row = w.matrix.mutable_data<float>() + o * axis.in;
    const auto last = static_cast<float>(axis.in - 1);
    w.outside[o] = form.coordinates == kCropAndResize && (*place < 0 || *place > last);
    if (w.outside[o]) continue;
    // A position is clamped only far outside, because near the border a cubic kernel still reaches
    // elements inside.
    const float reach = static_cast<float>(kMostTaps);
    if (form.mode == "nearest") {
      place = RoundedPlace(form.rounding, *place);
      if (!place) return c.NotLowered(absl::StrCat("Resize with nearest_mode ", form.rounding));
      row[static_cast<int64_t>(std::clamp(*place, 0.0f, last))] = 1;
    } else {
      AddRow(form, axis, TapsAt(form, std::clamp(*place, -reach, last + reach), axis.scale), row);
    }
  }
  return w;
}

// Adds `extrapolation_value` to the results that are outside along some axis. The matrices give 0
// there.
Operand WithOutside(LowerContext& c, const Operand& x, const ResizeForm& form,
                    const std::vector<AxisWeights>& weights) {
  Dims dims;
  for (const ResizeAxis& axis : form.axes) dims[axis.axis] = axis.out;
  if (dims.elements() > MostMatrixElements()) {
    return RefuseOverLimit(c, ModelLimit::kMatrixElements,
                           "Resize with an extrapolation_value whose result has");
  }
  const auto taken = TakeMemory(dims.elements() * int64_t{sizeof(float)});
  std::vector<float> added(dims.elements(), 0);
  for (int64_t i = 0; i < dims.elements(); ++i) {
    int64_t rest = i;
    Dims at;
    for (int k = kAxisCount - 1; k >= 0; --k) {
      at.extent[k] = rest % dims.extent[k];
      rest /= dims.extent[k];
    }
    for (size_t k = 0; k < weights.size(); ++k) {
      if (weights[k].outside[at[form.axes[k].axis]]) added[i] = form.outside;
    }
  }
  return Combined(c, ElementWiseType::kAdd, x,
                  c.AddConstant(Tensor::Floats({dims.elements()}, added), dims));
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ResizeForm form, ReadResizeForm(node, c));
  if (form.mode != "nearest" && form.mode != "linear" && form.mode != "cubic") {
    return c.NotLowered(absl::StrCat("Resize in mode ", form.mode));
  }
  Operand x = c.In(node.inputs[0]);
  std::vector<AxisWeights> weights;
  bool outside = false;
  for (const ResizeAxis& axis : form.axes) {
    ANEMONE_ASSIGN_OR_RETURN(weights.emplace_back(), WeightsOf(form, axis, c));
    const std::vector<bool>& lost = weights.back().outside;
    outside |= std::find(lost.begin(), lost.end(), true) != lost.end();
    x = TimesMatrix(c, x, axis.axis, weights.back().matrix);
  }
  if (outside && form.outside != 0) {
    x = WithOutside(c, x, form, weights);
  }
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "Resize", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows ResizeWeightsRows() { return {{}, kLowerings}; }

}  // namespace anemone
