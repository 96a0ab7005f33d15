// kernels/resize/sampling.h: parameters of the units that sample with the texture engine: the
// meaning of coordinates, interpolation, padding and grids. Names: enums.json ZinIrCoordinateMode,
// ZinIrSamplingMethod, ZinIrPaddingMode, ZinIrSamplingGridMode; compiler_texts.json codes.
#ifndef ANEMONE_KERNELS_RESIZE_SAMPLING_H_
#define ANEMONE_KERNELS_RESIZE_SAMPLING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/shared/axis_values.h"

namespace anemone {

enum class CoordinateMode : uint8_t { kNonNormalized, kNormalizedSymmetric, kNormalizedReflect };
inline absl::Span<const char* const> NamesOf(CoordinateMode) {
  static constexpr const char* kNames[] = {"NonNormalized", "NormalizedSymmetric",
                                           "NormalizedReflect"};
  return kNames;
}

enum class CoordinateRange : uint8_t { kZeroToOne, kMinusOneToOne };
inline absl::Span<const char* const> NamesOf(CoordinateRange) {
  static constexpr const char* kNames[] = {"RangeZeroToOne", "RangeMinusOneToOne"};
  return kNames;
}

enum class CoordinateType : uint8_t { kAbsolute, kRelative };
inline absl::Span<const char* const> NamesOf(CoordinateType) {
  static constexpr const char* kNames[] = {"Absolute", "Relative"};
  return kNames;
}

enum class SamplingMethod : uint8_t { kLinear, kNearestNeighbor };
inline absl::Span<const char* const> NamesOf(SamplingMethod) {
  static constexpr const char* kNames[] = {"Linear", "NearestNeighbor"};
  return kNames;
}

enum class SamplePadding : uint8_t {
  kZero,
  kNegative,
  kReplication,
  kSymmetric,
  kReflective,
  kBackground,
  kDontCare
};
inline absl::Span<const char* const> NamesOf(SamplePadding) {
  static constexpr const char* kNames[] = {"Zero",       "Negative",   "Replication", "Symmetric",
                                           "Reflective", "Background", "DontCare"};
  return kNames;
}

enum class SamplingGridMode : uint8_t {
  kAlignedCorners,
  kUnalignedCorners,
  kOffsetCorners,
  kDefault,
  kOffsetDefault,
  kOffsetDefaultWithNominalScale,
  kStrictAlignedCorners
};
inline absl::Span<const char* const> NamesOf(SamplingGridMode) {
  static constexpr const char* kNames[] = {"AlignedCorners",      "UnalignedCorners",
                                           "OffsetCorners",       "Default",
                                           "OffsetDefault",       "OffsetDefaultWithNominalScale",
                                           "StrictAlignedCorners"};
  return kNames;
}

// The keys of the items that a netplist has for each axis (PerAxis).
inline constexpr char kCoordinateTypeKey[] = "CoordinateType";
inline constexpr char kSamplingMethodKey[] = "SamplingMethod";
inline constexpr char kSamplePaddingKey[] = "PaddingMode";
inline constexpr char kSamplingGridModeKey[] = "SamplingGridMode";

// An item of the key CoordinateInfo. CoordinateRange is present only if the coordinates are
// normalized.
struct Coordinates {
  CoordinateMode mode = CoordinateMode::kNonNormalized;
  std::optional<CoordinateRange> range;
  bool operator==(const Coordinates&) const = default;
};

struct AsCoordinates {
  static Json Write(const AxisValues<Coordinates>& values) {
    if (values.empty()) return nullptr;
    Json items = Json::array();
    for (const AxisValue<Coordinates>& entry : values) {
      Json item = {{"Coordinate", AxisName(entry.axis)},
                   {"CoordinateMode", Plain::Write(entry.value.mode)}};
      if (entry.value.range) item["CoordinateRange"] = Plain::Write(*entry.value.range);
      items.push_back(std::move(item));
    }
    return items;
  }

  static absl::Status Read(const Json& from, AxisValues<Coordinates>& values) {
    Json items = Json::array();
    std::vector<std::optional<CoordinateRange>> ranges;
    for (Json item : from) {
      std::optional<CoordinateRange>& range = ranges.emplace_back();
      if (item.is_object() && item.contains("CoordinateRange")) {
        ANEMONE_RETURN_IF_ERROR(Plain::Read(item["CoordinateRange"], range.emplace()));
        item.erase("CoordinateRange");
      }
      items.push_back(std::move(item));
    }
    static constexpr char kModeKey[] = "CoordinateMode";
    AxisValues<CoordinateMode> modes;
    ANEMONE_RETURN_IF_ERROR(PerAxis<kModeKey>::Read(from.is_array() ? items : from, modes));
    values.clear();
    for (size_t i = 0; i < modes.size(); ++i) {
      values.push_back({modes[i].axis, {modes[i].value, ranges[i]}});
    }
    return absl::OkStatus();
  }
};

// For each axis: the meaning of coordinates, how to interpolate between elements, and how to read
// outside of the tensor.
struct SamplingForm {
  AxisValues<Coordinates> coordinates;
  AxisValues<SamplingMethod> methods;
  AxisValues<SamplePadding> padding;

  bool SameOnAllAxes() const {
    return AllSame(coordinates) && AllSame(methods) && AllSame(padding);
  }
};

}  // namespace anemone

#endif  // ANEMONE_KERNELS_RESIZE_SAMPLING_H_
