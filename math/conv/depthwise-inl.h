// math/conv/depthwise-inl.h: depthwise convolution with small square kernels, which reads the input
// without staging it (tap_columns-inl.h). Internal.
#if defined(ANEMONE_MATH_CONV_DEPTHWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_DEPTHWISE_INL_H_
#undef ANEMONE_MATH_CONV_DEPTHWISE_INL_H_
#else
#define ANEMONE_MATH_CONV_DEPTHWISE_INL_H_
#endif

#include <cstdint>

#include "math/conv/conv_state.h"
#include "math/conv/tap_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// One channel.
struct DepthwisePlane {
  const ConvGeometry* geometry;
  Readable input;        // all channels
  const Half* x;         // input of this channel
  const float* weights;  // one per tap
  float bias;
  Half* y;
};

// Computes kRows x `columns` outputs from (row, column) on. Output rows are kStride input rows
// apart. Sums are in the order of taps, without the taps in rows of padding, which would add zeros.
template <int kStride, int kRows, int kTaps, int kColumnStride, class D>
HWY_INLINE void DepthwiseTile(const D d, const DepthwisePlane& p,
                              const TapColumns<kTaps, kColumnStride, 0, D>& taps, int64_t row,
                              int64_t column, int64_t columns) {
  const ConvGeometry& g = *p.geometry;
  hn::Vec<D> sum[kRows];
  HWY_UNROLL(7)
  for (int r = 0; r < kRows; ++r) sum[r] = hn::Zero(d);
  const int64_t top = row * kStride - g.pad_top;
  HWY_UNROLL(17)
  for (int i = 0; i < (kRows - 1) * kStride + kTaps; ++i) {
    if (top + i < 0 || top + i >= g.in_h) continue;
    hn::Vec<D> x[kTaps];
    taps.LoadTaps(p.input, p.x + (top + i) * g.in_w, x);
    HWY_UNROLL(5)
    for (int j = 0; j < kTaps; ++j) {
      HWY_UNROLL(7)
      for (int r = 0; r < kRows; ++r) {
        const int tap = i - r * kStride;
        if (tap < 0 || tap >= kTaps) continue;
        sum[r] = hn::MulAdd(hn::Set(d, p.weights[tap * kTaps + j]), x[j], sum[r]);
      }
    }
  }
  const auto bias = hn::Set(d, p.bias);
  HWY_UNROLL(7)
  for (int r = 0; r < kRows; ++r) {
    StoreFirst(d, hn::Add(sum[r], bias), p.y + (row + r) * g.out_w + column, columns);
  }
}

// Computes output rows [first, last] of one channel.
template <int kTaps, int kStride, int kColumnStride, class D>
HWY_INLINE void DepthwiseRows(const D d, const DepthwisePlane& p, int64_t first, int64_t last) {
  constexpr int64_t kColumns = hn::MaxLanes(D());
  for (int64_t column = 0; column < p.geometry->out_w; column += kColumns) {
    const TapColumns<kTaps, kColumnStride, 0, D> taps(*p.geometry, column);
    const int64_t columns = HWY_MIN(p.geometry->out_w - column, kColumns);
    ForTileRows(first, last, [&](auto rows, int64_t row) HWY_ATTR {
      DepthwiseTile<kStride, rows>(d, p, taps, row, column, columns);
    });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
