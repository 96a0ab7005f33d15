// engine/math/depthwise-inl.h: depthwise convolution by small square kernels, straight from the
// input. Internal.
//
// Nothing is staged: each tap of a row is loaded, widened and masked where it lies in the padding.
// That costs less than it seems, for a row serves all the rows of outputs that it belongs to, and a
// small stage would be read while it is being written, by loads that lie across several stores.
#if defined(ENGINE_MATH_DEPTHWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENGINE_MATH_DEPTHWISE_INL_H_
#undef ENGINE_MATH_DEPTHWISE_INL_H_
#else
#define ENGINE_MATH_DEPTHWISE_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/math/conv_state.h"
#include "engine/math/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// One channel.
struct DepthwisePlane {
  const ConvGeometry* geometry;
  const Half *input, *input_end;  // all that may be read
  const Half* x;                  // the channel's input
  const float* weights;           // of each tap
  float bias;
  Half* y;
};

// What the columns of taps read for the outputs [column, column + lanes of D) of a row. With stride
// 2 a load brings two columns of taps, as the halves of 32 bits.
template <int kTaps, int kStride, class D>
class TapColumns {
 public:
  TapColumns(const ConvGeometry& g, int64_t column) : left_(column * kStride - g.pad_left) {
    for (int i = 0; i < kLoads; ++i) {
      const int64_t first = left_ + i * kStride;
      inside_[i] = hn::AndNot(FirstLanes(-first), FirstLanes(g.in_w - first));
    }
  }

  // All columns of taps in one row of the input. `row` is its first element.
  HWY_INLINE void Load(const DepthwisePlane& p, const Half* row, hn::Vec<D> (&taps)[kTaps]) const {
#if ANEMONE_MATH_MASKED_HALF
    LoadFrom(reinterpret_cast<const uint16_t*>(row) + left_, taps);
#else
    const Half* const from = row + left_;
    if (from >= p.input && from + kWidth <= p.input_end) {
      return LoadFrom(reinterpret_cast<const uint16_t*>(from), taps);
    }
    HWY_ALIGN uint16_t near[kWidth] = {};
    const Half* const first = HWY_MAX(from, p.input);
    const Half* const end = HWY_MIN(from + kWidth, p.input_end);
    std::memcpy(near + (first - from), static_cast<const void*>(first),
                (end - first) * sizeof(Half));
    LoadFrom(near, taps);
#endif
  }

 private:
  // Lanes as they are loaded.
  using DL = std::conditional_t<kStride == 1, hn::Rebind<uint16_t, D>,
                                hn::Repartition<uint16_t, hn::Rebind<uint32_t, D>>>;
  static constexpr int kLoads = (kTaps + kStride - 1) / kStride;
  static constexpr int64_t kWidth = (kLoads - 1) * kStride + hn::MaxLanes(DL());

  static hn::Mask<DL> FirstLanes(int64_t count) {
    constexpr int64_t kMost = hn::MaxLanes(DL());
    return hn::FirstN(DL(), static_cast<size_t>(HWY_MIN(HWY_MAX(count, 0), kMost)));
  }
  static HWY_INLINE hn::Vec<D> WidenBits(hn::Vec<hn::Rebind<uint16_t, D>> bits) {
    return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
  }
  HWY_INLINE void LoadFrom(const uint16_t* from, hn::Vec<D> (&taps)[kTaps]) const {
    HWY_UNROLL(5)
    for (int i = 0; i < kLoads; ++i) {
#if ANEMONE_MATH_MASKED_HALF
      const auto bits = hn::MaskedLoad(inside_[i], DL(), from + i * kStride);
#else
      const auto bits = hn::IfThenElseZero(inside_[i], hn::LoadU(DL(), from + i * kStride));
#endif
      if constexpr (kStride == 1) {
        taps[i] = WidenBits(bits);
      } else {
        const hn::Rebind<uint16_t, D> halves;
        const auto pairs = hn::BitCast(hn::Rebind<uint32_t, D>(), bits);
        taps[2 * i] = WidenBits(hn::TruncateTo(halves, pairs));
        if (2 * i + 1 == kTaps) continue;
        taps[2 * i + 1] = WidenBits(hn::TruncateTo(halves, hn::ShiftRight<16>(pairs)));
      }
    }
  }

  int64_t left_;  // the first load begins at this column of the input
  hn::Mask<DL> inside_[kLoads];
};

// The first `count` lanes.
template <class D>
HWY_INLINE void StoreFirst(hn::Vec<D> bits, const D d, Half* to, int64_t count) {
  auto* at = reinterpret_cast<uint16_t*>(to);
#if ANEMONE_MATH_MASKED_HALF
  hn::BlendedStore(bits, hn::FirstN(d, static_cast<size_t>(count)), d, at);
#else
  if (count == hn::MaxLanes(d)) return hn::StoreU(bits, d, at);
  HWY_ALIGN uint16_t lanes[hn::MaxLanes(D())];
  hn::Store(bits, d, lanes);
  std::memcpy(at, lanes, count * sizeof(uint16_t));
#endif
}

// `columns` outputs from (row, column) on, in kRows rows, kStride rows of input apart. Sums run in
// the order of taps; those in rows of padding, which would add zeros, are left out.
template <int kStride, int kRows, int kTaps, int kColumnStride, class D>
HWY_INLINE void DepthwiseTile(const D d, const DepthwisePlane& p,
                              const TapColumns<kTaps, kColumnStride, D>& taps, int64_t row,
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
    taps.Load(p, p.x + (top + i) * g.in_w, x);
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
  const hn::Rebind<uint16_t, D> bits;
  const auto bias = hn::Set(d, p.bias);
  HWY_UNROLL(7)
  for (int r = 0; r < kRows; ++r) {
    const auto half = hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), hn::Add(sum[r], bias));
    StoreFirst(hn::BitCast(bits, half), bits, p.y + (row + r) * g.out_w + column, columns);
  }
}

// Rows [first, last] of one channel's outputs.
template <int kTaps, int kStride, int kColumnStride, class D>
HWY_INLINE void DepthwiseRows(const D d, const DepthwisePlane& p, int64_t first, int64_t last) {
  constexpr int64_t kColumns = hn::MaxLanes(D());
  for (int64_t column = 0; column < p.geometry->out_w; column += kColumns) {
    const TapColumns<kTaps, kColumnStride, D> taps(*p.geometry, column);
    const int64_t columns = HWY_MIN(p.geometry->out_w - column, kColumns);
    const auto rows = [&](auto count, int64_t row) HWY_ATTR {
      DepthwiseTile<kStride, count>(d, p, taps, row, column, columns);
      return row + count;
    };
    int64_t row = first;
    while (row + 7 <= last + 1) row = rows(std::integral_constant<int, 7>(), row);
    while (row + 3 <= last + 1) row = rows(std::integral_constant<int, 3>(), row);
    while (row <= last) row = rows(std::integral_constant<int, 1>(), row);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
