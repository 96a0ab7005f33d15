#include "kernels/resize/resize_form.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/node_inputs.h"
#include "kernels/resize/resize.h"
#include "kernels/shared/bounds.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// size / extent for each axis, or the same scale for all axes if the policy keeps the aspect ratio.
std::vector<float> ScalesFromSizes(const std::string& policy, absl::Span<const ResizeAxis> axes,
                                   absl::Span<const int64_t> sizes) {
  std::vector<float> scales;
  for (size_t i = 0; i < axes.size(); ++i) {
    scales.push_back(static_cast<float>(sizes[i]) / static_cast<float>(axes[i].in));
  }
  if (policy == "stretch" || scales.empty()) return scales;
  auto [least, most] = std::minmax_element(scales.begin(), scales.end());
  float one = policy == "not_larger" ? *least : *most;
  std::fill(scales.begin(), scales.end(), one);
  return scales;
}

// The scale of each listed axis, from input `scales` or `sizes`.
absl::StatusOr<std::vector<float>> ReadScales(const Node& node, LowerContext& c,
                                              const std::string& policy,
                                              absl::Span<const ResizeAxis> axes) {
  std::vector<float> scales;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ConstantIntegers(c, node, 3, {}));
  if (sizes.size() == axes.size()) {
    scales = ScalesFromSizes(policy, axes, sizes);
  } else {
    const Tensor* given = HasInput(node, 2) ? c.view().Constant(node.inputs[2]) : nullptr;
    if (given == nullptr || given->type() != DataType::kFloat) {
      return c.NotConstant("Resize whose scales or sizes are computed at run time");
    }
    int64_t count = std::min<int64_t>(given->elements(), kMaxRank + 1);
    for (int64_t i = 0; i < count; ++i) scales.push_back(given->at<float>(i));
  }
  bool positive = std::all_of(scales.begin(), scales.end(), [](float s) { return s > 0; });
  if (scales.size() != axes.size() || scales.size() > kMaxRank || !positive) {
    return absl::InvalidArgumentError(
        "scales or sizes: want a number above 0 for each axis; run the ONNX checker on the model");
  }
  return scales;
}

// Reads where the crop starts and ends along each axis, as fractions of its extent.
absl::Status ReadCrop(const Node& node, LowerContext& c, std::vector<ResizeAxis>& axes) {
  const Tensor* roi = HasInput(node, 1) ? c.view().Constant(node.inputs[1]) : nullptr;
  if (roi == nullptr || !IsEngineConstant(roi->type())) {
    return c.NotConstant("Resize whose roi is computed at run time");
  }
  const std::vector<float> shares = RoundedFloats(*roi);
  if (shares.size() != 2 * axes.size()) {
    return absl::InvalidArgumentError("roi: want a start and an end for each axis");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].start = shares[i];
    axes[i].end = shares[axes.size() + i];
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<float> ResizePlace(const std::string& mode, const ResizeAxis& a, int64_t i) {
  float x = static_cast<float>(i);
  if (mode == "asymmetric") return x / a.scale;
  if (mode == "align_corners") return a.out == 1 ? 0 : x * (a.in - 1) / (a.out - 1);
  if (mode == "pytorch_half_pixel" && a.out == 1) return 0;
  if (mode == "half_pixel" || mode == "pytorch_half_pixel") return (x + 0.5f) / a.scale - 0.5f;
  if (mode == "half_pixel_symmetric") {
    float adjustment = a.out / (a.scale * a.in);
    return a.in * 0.5f * (1 - adjustment) + (x + 0.5f) / a.scale - 0.5f;
  }
  if (mode == kCropAndResize) {
    const auto last = static_cast<float>(a.in - 1);
    if (a.out == 1) return 0.5f * (a.start + a.end) * last;
    return a.start * last + x * (a.end - a.start) * last / static_cast<float>(a.out - 1);
  }
  return std::nullopt;
}

std::optional<float> RoundedPlace(const std::string& mode, float x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_floor") return std::ceil(x - 0.5f);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5f);
  return std::nullopt;
}

absl::StatusOr<ResizeForm> ReadResizeForm(const Node& node, LowerContext& c) {
  Attributes a(node);
  ResizeForm form;
  ANEMONE_ASSIGN_OR_RETURN(form.mode, a.String("mode", "nearest"));
  ANEMONE_ASSIGN_OR_RETURN(form.coordinates,
                           a.String("coordinate_transformation_mode", "half_pixel"));
  ANEMONE_ASSIGN_OR_RETURN(form.rounding, a.String("nearest_mode", "round_prefer_floor"));
  ANEMONE_ASSIGN_OR_RETURN(int64_t antialias, a.Int("antialias", 0));
  ANEMONE_ASSIGN_OR_RETURN(std::string policy, a.String("keep_aspect_ratio_policy", "stretch"));
  ANEMONE_ASSIGN_OR_RETURN(form.cubic, a.Float("cubic_coeff_a", -0.75f));
  ANEMONE_ASSIGN_OR_RETURN(int64_t exclude, a.Int("exclude_outside", 0));
  ANEMONE_ASSIGN_OR_RETURN(form.outside, a.Float("extrapolation_value", 0.0f));
  form.excludes_outside = exclude != 0;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  std::vector<int64_t> all(from.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> listed, a.Ints("axes", all));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (form.mode == "linear") form.method = SamplingMethod::kLinear;
  for (int64_t extent : from) {
    if (extent < 1) return c.Refuse(rule::kEmptyTensor);
  }
  int rank = static_cast<int>(from.size());
  std::vector<ResizeAxis> axes;
  for (int64_t at : listed) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, rank));
    if (to[axis] < 1) return c.Refuse(rule::kEmptyTensor);
    if (std::max(from[axis], to[axis]) > kTableBound) return c.Refuse(rule::kMaxDimension);
    axes.push_back({ToEngineAxis(rank, axis), from[axis], to[axis]});
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<float> scales, ReadScales(node, c, policy, axes));
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].scale = scales[i];
    form.antialias |= antialias != 0 && axes[i].out < axes[i].in;
  }
  if (form.coordinates == kCropAndResize) {
    ANEMONE_RETURN_IF_ERROR(ReadCrop(node, c, axes));
  }
  for (const ResizeAxis& axis : axes) {
    const bool crops = form.coordinates == kCropAndResize && (axis.start != 0 || axis.end != 1);
    if (axis.in != axis.out || axis.scale != 1 || crops) form.axes.push_back(axis);
  }
  return form;
}

}  // namespace anemone
