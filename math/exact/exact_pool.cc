#include "math/exact/exact_pool.h"

#include <algorithm>
#include <vector>

#include "math/exact/exact_lanes.h"
#include "math/exact/exact_reduce.h"

namespace anemone::math {
namespace {

// Up to kMacColumns windows of a pool, one per column.
class Windows {
 public:
  struct Tap {
    int64_t down, along;
  };

  Windows(const PoolShape& shape, absl::Span<const Tap> taps, absl::Span<const Half> x,
          int64_t first, int64_t count)
      : shape_(shape), taps_(taps), x_(x), count_(count) {
    const Window& w = shape.window;
    const int64_t outputs = shape.out_h * shape.out_w;
    for (int64_t j = 0; j < count; ++j) {
      plane_[j] = (first + j) / outputs;
      top_[j] = (first + j) % outputs / shape.out_w * w.stride_h - w.pad_top;
      left_[j] = (first + j) % shape.out_w * w.stride_w - w.pad_left;
    }
  }
  int64_t count() const { return count_; }
  int64_t taps() const { return static_cast<int64_t>(taps_.size()); }

  // Writes the elements at taps [from, from + rows) of each window, with padding as 0.
  void Load(int64_t from, int64_t rows, float* to) const {
    std::fill(to, to + rows * kMacColumns, 0.0f);
    for (int64_t k = 0; k < rows; ++k) {
      const auto [down, along] = taps_[from + k];
      for (int64_t j = 0; j < count_; ++j) {
        const int64_t row = top_[j] + down, column = left_[j] + along;
        if (!IsInside(row, column)) continue;
        to[k * kMacColumns + j] =
            ToFloat(x_[(plane_[j] * shape_.in_h + row) * shape_.in_w + column]);
      }
    }
  }

  // The divisor of an average.
  int64_t Divisor(int64_t window, AverageDivisor divisor) const {
    const Window& w = shape_.window;
    int64_t counted = 0;
    for (const auto& [down, along] : taps_) {
      const int64_t row = top_[window] + down, column = left_[window] + along;
      counted += divisor == AverageDivisor::kInside
                     ? IsInside(row, column)
                     : row < shape_.in_h + w.pad_bottom && column < shape_.in_w + w.pad_right;
    }
    return counted;
  }

 private:
  bool IsInside(int64_t row, int64_t column) const {
    return row >= 0 && row < shape_.in_h && column >= 0 && column < shape_.in_w;
  }

  const PoolShape& shape_;
  absl::Span<const Tap> taps_;
  absl::Span<const Half> x_;
  int64_t count_;
  int64_t plane_[kMacColumns] = {}, top_[kMacColumns] = {}, left_[kMacColumns] = {};
};

// Calls body(windows, first) for each block of kMacColumns windows.
template <class Body>
void ForWindows(const PoolShape& shape, absl::Span<const Half> x, const Body& body) {
  std::vector<Windows::Tap> taps;
  for (int64_t i = 0; i < shape.window.kernel_h; ++i) {
    for (int64_t j = 0; j < shape.window.kernel_w; ++j) {
      taps.push_back({i * shape.window.dilation_h, j * shape.window.dilation_w});
    }
  }
  const int64_t windows = shape.planes * shape.out_h * shape.out_w;
  ForBlocks(windows, static_cast<int64_t>(taps.size()) * 8, [&](int64_t first, int64_t count) {
    body(Windows(shape, taps, x, first, count), first);
  });
}

}  // namespace

void ExactAveragePool(const Numerics& n, const PoolShape& shape, AverageDivisor divisor,
                      absl::Span<const Half> x, absl::Span<Half> y) {
  // The option kernel averages by a convolution, with rounded weights and the array's ceiling.
  const bool as_kernel = n.pool_avg == PoolAvg::kKernel;
  ForWindows(shape, x, [&](const Windows& w, int64_t first) {
    int64_t counted[kMacColumns] = {};
    float weight[kMacColumns] = {};
    for (int64_t j = 0; j < w.count(); ++j) {
      counted[j] = w.Divisor(j, divisor);
      weight[j] = counted[j] == 0 ? 0 : RoundToHalf(1.0f / static_cast<float>(counted[j]));
    }
    LaneSums lanes(n);
    const absl::Span<const float> sums =
        lanes.Of(w.taps(), [&](int64_t from, int64_t rows, float* to) {
          w.Load(from, rows, to);
          if (!as_kernel) return;
          for (int64_t i = 0; i < rows * kMacColumns; ++i) to[i] *= weight[i % kMacColumns];
        });
    if (as_kernel) {
      return StoreMacs(n, /*has_ceiling=*/w.taps() > 1, {}, sums.first(w.count()), &y[first]);
    }
    for (int64_t j = 0; j < w.count(); ++j) {
      y[first + j] = counted[j] == 0
                         ? kHalfZero
                         : ExactMean(n, sums[j], counted[j], n.pool_avg == PoolAvg::kRoundTwice);
    }
  });
}

void ExactL2Pool(const Numerics& n, const PoolShape& shape, absl::Span<const Half> x,
                 absl::Span<Half> y) {
  ForWindows(shape, x, [&](const Windows& w, int64_t first) {
    LaneSums lanes(n);
    const absl::Span<const float> sums =
        lanes.Of(w.taps(), [&](int64_t from, int64_t rows, float* to) {
          w.Load(from, rows, to);
          StepLanes(n, LaneStep::kMultiply, to, /*is_row_each=*/true, rows, to);
        });
    for (int64_t j = 0; j < w.count(); ++j) {
      const double taps = n.pool_l2 == PoolL2::kSqrtMean ? static_cast<double>(w.taps()) : 1;
      y[first + j] = ExactRoot(n, Unary::kSqrt, sums[j] / taps);
    }
  });
}

}  // namespace anemone::math
