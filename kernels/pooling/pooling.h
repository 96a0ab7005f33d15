// kernels/pooling/pooling.h: for lowerings: the unit Pooling.
#ifndef ANEMONE_KERNELS_POOLING_POOLING_H_
#define ANEMONE_KERNELS_POOLING_POOLING_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "kernels/shared/window.h"

namespace anemone {

// The modes, in the order of enums.json ZinIrPoolingType. The software engine runs the first three
// and only validates the others.
enum class PoolingMode : uint8_t {
  kAvg,
  kMax,
  kL2,
  kChannelMax,
  kMin,
  kChannelMin,
  kL1,
  kSpatialAndChannelAvg,
  kSpatialAndChannelMax,
  kSpatialAndChannelMin,
  kSpatialArgMax,
  kChannelArgMax,
  kSpatialArgMin,
  kChannelArgMin,
};
absl::Span<const char* const> NamesOf(PoolingMode);

struct PoolingParams {
  PoolingMode mode = PoolingMode::kMax;
  bool exclude_padding = true;  // an average divides by the number of elements inside the input
  Along h, w, d;
  std::optional<PaddingMode> padding_mode;  // nullopt: the default of the mode
};

// Whether the window is smaller than the axis. A kernel of 1 always fits, also on an axis of extent
// 1, because it does not pool.
inline bool WindowFits(const Along& a, int64_t extent) {
  return a.kernel == 1 || a.kernel < extent;
}

const UnitKindOf<PoolingParams>& PoolingUnit();

}  // namespace anemone

#endif  // ANEMONE_KERNELS_POOLING_POOLING_H_
