// kernels/mil/mil_sampling.h: reads the attributes of MIL's resample and affine that define the
// interpolation between elements and the padding outside of the image.
#ifndef ANEMONE_KERNELS_MIL_MIL_SAMPLING_H_
#define ANEMONE_KERNELS_MIL_MIL_SAMPLING_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/resize/sampling.h"

namespace anemone {

// Looks up `value` in a table of pairs {MIL's name, enumerator}.
template <class E, size_t kCount>
absl::StatusOr<E> WordOf(const MilContext& c, const char* attribute, const std::string& value,
                         const std::pair<const char*, E> (&words)[kCount]) {
  for (const auto& [word, ours] : words) {
    if (value == word) return ours;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(c.call().op, ", attribute '", attribute, "': there is no mode '", value, "'"));
}

// The attributes of the call as SamplingForm. It is not published which of the engine's two
// normalized coordinate modes MIL's coordinates_mode means, so `coordinates` is left empty.
inline absl::StatusOr<SamplingForm> ReadSampling(MilContext& c) {
  static constexpr std::pair<const char*, SamplingMethod> kMethods[] = {
      {"bilinear", SamplingMethod::kLinear}, {"nearest", SamplingMethod::kNearestNeighbor}};
  static constexpr std::pair<const char*, SamplePadding> kPadding[] = {
      {"constant", SamplePadding::kBackground},
      {"border", SamplePadding::kReplication},
      {"reflection", SamplePadding::kReflective},
      {"symmetric", SamplePadding::kSymmetric}};
  ANEMONE_ASSIGN_OR_RETURN(std::string method, c.Text("sampling_mode", "bilinear"));
  ANEMONE_ASSIGN_OR_RETURN(std::string padding, c.Text("padding_mode", "constant"));
  ANEMONE_ASSIGN_OR_RETURN(SamplingMethod by, WordOf(c, "sampling_mode", method, kMethods));
  ANEMONE_ASSIGN_OR_RETURN(SamplePadding beyond, WordOf(c, "padding_mode", padding, kPadding));
  c.Ignore("padding_value");
  c.Ignore("coordinates_mode");
  c.Ignore("align_corners");
  SamplingForm sampling;
  for (Axis axis : {Axis::kW, Axis::kH}) {
    sampling.methods.push_back({axis, by});
    sampling.padding.push_back({axis, beyond});
  }
  return sampling;
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_SAMPLING_H_
