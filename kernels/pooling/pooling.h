// kernels/pooling/pooling.h: the pooling unit, for lowerings.
#ifndef ANEMONE_KERNELS_POOLING_POOLING_H_
#define ANEMONE_KERNELS_POOLING_POOLING_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "kernels/shared/window.h"

namespace anemone {

// enums.json ZinIrPoolingType, its order. The first three are run, the rest is judged.
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
  bool exclude_padding = true;  // from the count of an average
  Along h, w, d;
  std::optional<PaddingMode> padding_mode;  // else the mode's own
};

// A kernel of 1 is no window, so an axis of extent 1 may be left alone.
inline bool WindowFits(const Along& a, int64_t extent) {
  return a.kernel == 1 || a.kernel < extent;
}

// Past every tensor, so that it stands for any longer window; CheckAlong takes it.
inline constexpr int64_t kLongestWindow = 1 << 28;

const UnitKindOf<PoolingParams>& PoolingUnit();

}  // namespace anemone

#endif  // ANEMONE_KERNELS_POOLING_POOLING_H_
