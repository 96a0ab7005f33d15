#include "engine/dims.h"

#include "absl/strings/str_cat.h"

namespace anemone {

absl::Span<const char* const> NamesOf(Axis) {
  static constexpr const char* kNames[] = {"Batch", "Depth", "Channel", "Height", "Width"};
  return kNames;
}

const char* AxisName(Axis axis) { return NamesOf(axis)[static_cast<size_t>(axis)]; }

Dims MakeDims(int64_t n, int64_t c, int64_t h, int64_t w) { return Dims{{n, 1, c, h, w}}; }

std::string DimsToString(const Dims& dims) {
  if (dims.d() == 1) return absl::StrCat(dims.n(), "x", dims.c(), "x", dims.h(), "x", dims.w());
  return absl::StrCat(dims.n(), "x", dims.d(), "x", dims.c(), "x", dims.h(), "x", dims.w());
}

Axis ToEngineAxis(int rank, int i) {
  static constexpr Axis kPlaces[kMaxRank + 1][kMaxRank] = {
      {},
      {Axis::kW},
      {Axis::kH, Axis::kW},
      {Axis::kN, Axis::kC, Axis::kW},
      {Axis::kN, Axis::kC, Axis::kH, Axis::kW},
      {Axis::kN, Axis::kC, Axis::kD, Axis::kH, Axis::kW},
  };
  return kPlaces[rank][i];
}

Dims PlaceShape(absl::Span<const int64_t> shape) {
  Dims dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    dims[ToEngineAxis(static_cast<int>(shape.size()), static_cast<int>(i))] = shape[i];
  }
  return dims;
}

}  // namespace anemone
