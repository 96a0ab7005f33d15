// kernels/resize/resize_form.h: reads the attributes and inputs of an ONNX Resize node, for its
// lowerings.
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

// The parameters of one axis.
struct ResizeAxis {
  Axis axis = Axis::kW;
  int64_t in = 1, out = 1;
  float scale = 1;
  float start = 0, end = 1;  // for tf_crop_and_resize: fractions of the input's extent
};

struct ResizeForm {
  std::string mode;
  SamplingMethod method = SamplingMethod::kNearestNeighbor;  // for mode nearest or linear
  std::string coordinates, rounding;
  double cubic = -0.75;
  bool antialias = false, excludes_outside = false;
  float outside = 0;             // extrapolation_value
  std::vector<ResizeAxis> axes;  // only axes that are changed
};

absl::StatusOr<ResizeForm> ReadResizeForm(const Node& node, LowerContext& c);

// The input position of output element i for a coordinate_transformation_mode of ONNX; nullopt for
// unknown modes. Computed in fp32 as in ONNX Runtime: if a position is exactly between two
// elements, its rounding decides which one is nearest.
std::optional<float> ResizePlace(const std::string& mode, const ResizeAxis& a, int64_t i);

// A position rounded by a nearest_mode of ONNX; nullopt for unknown modes.
std::optional<float> RoundedPlace(const std::string& mode, float x);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_RESIZE_RESIZE_FORM_H_
