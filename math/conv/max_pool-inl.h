// math/conv/max_pool-inl.h: maximum pools of any window: maxima along columns, then along rows.
// Internal.
#if defined(ANEMONE_MATH_CONV_MAX_POOL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_MAX_POOL_INL_H_
#undef ANEMONE_MATH_CONV_MAX_POOL_INL_H_
#else
#define ANEMONE_MATH_CONV_MAX_POOL_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "math/conv/conv_state.h"
#include "math/conv/tap_columns-inl.h"
#include "math/core/scratch.h"
#include "math/core/simd-inl.h"
#include "math/gemm/panels.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Halfs are compared as integers in the order of the numbers: -0 below +0, and NaNs largest.
using DI = hn::ScalableTag<int16_t>;
using VI = hn::Vec<DI>;
inline constexpr int64_t kOrderedLanes = hn::MaxLanes(DI());
inline constexpr int16_t kLowestOrdered = -0x7c01;  // -infinity

// Turns the bits of numbers to their place in the order, and back.
HWY_INLINE VI FlipNegative(VI bits) {
  return hn::Xor(bits, hn::And(hn::ShiftRight<15>(bits), hn::Set(DI(), 0x7fff)));
}
HWY_INLINE VI InOrder(VI bits) {
  const VI magnitude = hn::And(bits, hn::Set(DI(), 0x7fff));
  return hn::IfThenElse(hn::Gt(magnitude, hn::Set(DI(), 0x7c00)), magnitude, FlipNegative(bits));
}

// The maxima of vectors that are `step` elements apart: kTaps or, if that is 0, `taps` of them.
template <int kTaps>
HWY_INLINE VI LargestOf(const int16_t* from, int64_t taps, int64_t step) {
  VI most = hn::LoadU(DI(), from);
  if constexpr (kTaps > 0) taps = kTaps;
  HWY_UNROLL(5)
  for (int64_t tap = 1; tap < taps; ++tap) {
    most = hn::Max(most, hn::LoadU(DI(), from + tap * step));
  }
  return most;
}

// Fills elements from `begin` to at least `end`, at most a vector too many.
HWY_INLINE void FillLowest(int16_t* to, int64_t begin, int64_t end) {
  for (; begin < end; begin += kOrderedLanes) {
    hn::StoreU(hn::Set(DI(), kLowestOrdered), DI(), to + begin);
  }
}

// Output rows [first, last] of planes. Each step is done for several planes before the next, so
// that few loads wait for a store. Buffers are in thread scratch.
class MaxPoolRows {
 public:
  MaxPoolRows(const ConvGeometry& g, int64_t first, int64_t last)
      : g_(g), first_(first), rows_(last - first + 1), top_(first * g.stride_h - g.pad_top) {
    const int64_t in_rows = (rows_ - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1;
    begin_ = HWY_MIN(HWY_MAX(top_, 0), g.in_h);
    end_ = HWY_MAX(HWY_MIN(top_ + in_rows, g.in_h), begin_);
    in_size_ = in_rows * g.in_w;
    span_ = (g.out_w - 1) * g.stride_w + 1;
    const int64_t columns =
        RoundUp(span_, kOrderedLanes) + (g.kernel_w - 1) * g.dilation_w - g.pad_left;
    left_ = RoundUp(g.pad_left, kOrderedLanes);
    row_size_ = left_ + RoundUp(HWY_MAX(g.in_w, columns), kOrderedLanes);
    planes_ = HWY_MAX(kNearElements / HWY_MAX(in_size_, rows_ * row_size_), 1);
    ordered_ = ThreadScratch<int16_t>(ScratchUse::kStage, planes_ * in_size_ + 2 * kOrderedLanes);
    maxima_ = ThreadScratch<int16_t>(ScratchUse::kRow, (planes_ * rows_ + 1) * row_size_);
  }

  void Compute(const Half* x, int64_t count, Half* y) const {
    FillLowest(maxima_, 0, HWY_MIN(count, planes_) * rows_ * row_size_);
    x += begin_ * g_.in_w, y += first_ * g_.out_w;
    for (int64_t done = 0; done < count; done += planes_) {
      const int64_t planes = HWY_MIN(planes_, count - done);
      for (int64_t p = 0; p < planes; ++p, x += g_.in_h * g_.in_w) {
        OrderPlane(x, ordered_ + p * in_size_);
      }
      WithTaps(g_.kernel_h, [&](auto taps) HWY_ATTR { TakeColumns<taps>(planes); });
      WithTaps(g_.kernel_w, [&](auto taps) HWY_ATTR { TakeRows<taps>(planes, y); });
      y += planes * g_.positions();
    }
  }

 private:
  // Calls run(taps) with a compile-time constant, which is 0 for less common kernels.
  template <class Run>
  static HWY_INLINE void WithTaps(int64_t taps, const Run& run) {
    const auto run_it = [&](auto constant) HWY_ATTR {
      run(constant);
      return true;
    };
    if (!WithOneOf<1, 2, 3, 5>(taps, run_it)) run(std::integral_constant<int, 0>());
  }

  // Stores the rows that are read, in order, with rows of padding.
  void OrderPlane(const Half* x, int16_t* to) const {
    const DI d;
    const auto* const bits = reinterpret_cast<const int16_t*>(x);
    const int64_t before = HWY_MIN(HWY_MAX(begin_ - top_, 0) * g_.in_w, in_size_);
    const int64_t count = (end_ - begin_) * g_.in_w;
    FillLowest(to, 0, before);
    int16_t* const inside = to + before;
    int64_t i = 0;
    for (; i + kOrderedLanes <= count; i += kOrderedLanes) {
      hn::StoreU(InOrder(hn::LoadU(d, bits + i)), d, inside + i);
    }
    if (i < count) hn::StoreU(InOrder(LoadFirstBits(d, x + i, count - i)), d, inside + i);
    FillLowest(to, before + count, in_size_);
  }

  // For each output row takes the maximum of what its windows contain of each input column. What is
  // left and right of these columns stays padding.
  template <int kTaps>
  void TakeColumns(int64_t planes) const {
    const DI d;
    const int64_t in_w = g_.in_w, taps = g_.kernel_h, step = g_.dilation_h * in_w;
    const int64_t row_size = row_size_, row_step = g_.stride_h * in_w, rows = rows_;
    const int64_t whole = in_w / kOrderedLanes * kOrderedLanes;
    const auto rest = hn::FirstN(d, static_cast<size_t>(in_w - whole));
    const VI lowest = hn::Set(d, kLowestOrdered);
    int16_t* to = maxima_ + left_;
    for (int64_t p = 0; p < planes; ++p) {
      const int16_t* from = ordered_ + p * in_size_;
      for (int64_t row = 0; row < rows; ++row, to += row_size, from += row_step) {
        for (int64_t j = 0; j < whole; j += kOrderedLanes) {
          hn::StoreU(LargestOf<kTaps>(from + j, taps, step), d, to + j);
        }
        if (whole == in_w) continue;
        const VI most = LargestOf<kTaps>(from + whole, taps, step);
        hn::StoreU(hn::IfThenElse(rest, most, lowest), d, to + whole);
      }
    }
  }

  // Takes the maxima of the windows of each row.
  template <int kTaps>
  void TakeRows(int64_t planes, Half* y) const {
    const int64_t rows = rows_, width = g_.out_w, row_size = row_size_;
    const int64_t skip = (g_.out_h - rows) * width;
    const int16_t* from = maxima_ + left_ - g_.pad_left;
    for (int64_t p = 0; p < planes; ++p, y += skip) {
      if (g_.stride_w == 1) {
        for (int64_t row = 0; row < rows; ++row, from += row_size, y += width) {
          TakeRow<kTaps>(from, y);
        }
      } else {
        for (int64_t row = 0; row < rows; ++row, from += row_size, y += width) {
          TakeStridedRow<kTaps>(from, y);
        }
      }
    }
  }

  template <int kTaps>
  HWY_INLINE void TakeRow(const int16_t* from, Half* y) const {
    const int64_t taps = g_.kernel_w, step = g_.dilation_w, width = g_.out_w;
    for (int64_t j = 0; j < width; j += kOrderedLanes) {
      StoreFirstBits(DI(), FlipNegative(LargestOf<kTaps>(from + j, taps, step)), y + j,
                     HWY_MIN(width - j, kOrderedLanes));
    }
  }

  template <int kTaps>
  HWY_INLINE void TakeStridedRow(const int16_t* from, Half* y) const {
    const int64_t taps = g_.kernel_w, step = g_.dilation_w, width = g_.out_w, stride = g_.stride_w;
    if constexpr (kOrderedLanes > 1) {
      if (stride == 2) {
        for (int64_t j = 0; j < width; j += kLanes) {
          const VI both = FlipNegative(LargestOf<kTaps>(from + 2 * j, taps, step));
          StoreBitsN(hn::TruncateTo(DH(), hn::BitCast(DU(), both)), y + j,
                     HWY_MIN(width - j, kLanes));
        }
        return;
      }
    }
    int16_t* const all = maxima_ + planes_ * rows_ * row_size_;
    const int64_t span = span_;
    for (int64_t j = 0; j < span; j += kOrderedLanes) {
      hn::StoreU(FlipNegative(LargestOf<kTaps>(from + j, taps, step)), DI(), all + j);
    }
    for (int64_t j = 0; j < width; ++j) y[j] = Half{static_cast<uint16_t>(all[j * stride])};
  }

  const ConvGeometry& g_;
  int64_t first_, rows_;
  int64_t top_;          // the first input row that is read, perhaps padding
  int64_t begin_, end_;  // the input rows that are read, without padding
  int64_t in_size_;      // the elements that are read, with rows of padding
  int64_t span_;         // columns from the first window's to the last one's
  int64_t left_;         // the first column that is not padding
  int64_t row_size_;
  int64_t planes_;    // at a time
  int16_t* ordered_;  // the input
  int16_t* maxima_;   // of columns, row after row; then one more row
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
