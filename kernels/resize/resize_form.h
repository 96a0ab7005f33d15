// kernels/resize/resize_form.h: what an ONNX Resize node says, for its lowerings.
#ifndef ANEMONE_KERNELS_RESIZE_RESIZE_FORM_H_
#define ANEMONE_KERNELS_RESIZE_RESIZE_FORM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/lowering.h"
#include "kernels/resize/sampling.h"

namespace anemone {

inline constexpr char kCropAndResize[] = "tf_crop_and_resize";

// The node's words about one axis.
struct ResizeAxis {
  Axis axis = Axis::kW;
  int64_t in = 1, out = 1;
  float scale = 1;
  float start = 0, end = 1;  // of tf_crop_and_resize
};

struct ResizeForm {
  std::string mode;
  SamplingMethod method = SamplingMethod::kNearestNeighbor;  // of mode nearest or linear
  std::string coordinates, rounding;
  double cubic = -0.75;
  bool antialias = false, excludes_outside = false;
  float outside = 0;             // extrapolation_value
  std::vector<ResizeAxis> axes;  // those that change
};

absl::StatusOr<ResizeForm> ReadResizeForm(const Node& node, LowerContext& c);

// ONNX's coordinate_transformation_mode; nullopt for those that sample elsewhere. In fp32 as ONNX
// Runtime computes it: nearest may fall on the edge between two elements.
std::optional<float> ResizePlace(const std::string& mode, const ResizeAxis& a, int64_t i);

// By nearest_mode; nullopt for others.
std::optional<float> RoundedPlace(const std::string& mode, float x);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_RESIZE_RESIZE_FORM_H_
