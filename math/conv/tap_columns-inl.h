// math/conv/tap_columns-inl.h: loads what the taps of a small window read, directly from the input.
// Internal.
//
// Nothing is staged: each tap of a row is loaded, widened, and masked where it is padding. This is
// fast because a loaded row serves all rows of outputs that read it. A small stage would be slower:
// it would be read right after it is written, by loads that span several stores.
#if defined(ANEMONE_MATH_CONV_TAP_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_TAP_COLUMNS_INL_H_
#undef ANEMONE_MATH_CONV_TAP_COLUMNS_INL_H_
#else
#define ANEMONE_MATH_CONV_TAP_COLUMNS_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "math/conv/conv_state.h"
#include "math/core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The memory that may be read.
struct Readable {
  const Half *begin, *end;
};

// Loads what each column of taps reads for the outputs [column, column + lanes of D) of a row.
// Padding reads as zeros. With stride 2 one load holds two columns of taps:
// the first in the low halves of 32 bits, the second in the high halves. Taps are then not dilated.
template <int kTaps, int kStride, class D>
class TapColumns {
 public:
  static constexpr int kColumns = kTaps;

  TapColumns() = default;
  TapColumns(const ConvGeometry& g, int64_t column)
      : left_(column * kStride - g.pad_left), step_(kStride == 1 ? g.dilation_w : kStride) {
    for (int i = 0; i < kLoads; ++i) {
      const int64_t first = left_ + i * step_;
      inside_[i] = hn::AndNot(FirstLanes(-first), FirstLanes(g.in_w - first));
    }
    all_inside_ = left_ >= 0 && left_ + (kLoads - 1) * step_ + kWidth <= g.in_w;
  }

  // The type of a load.
  using DL = std::conditional_t<kStride == 1, hn::Rebind<uint16_t, D>,
                                hn::Repartition<uint16_t, hn::Rebind<uint32_t, D>>>;
  static constexpr int kLoads = (kTaps + kStride - 1) / kStride;

  // Whether nothing is padding.
  bool all_inside() const { return all_inside_; }

  // Loads one row of the input, whose first element is `row`. With kInside, all_inside() is true.
  template <bool kInside = false>
  HWY_INLINE void Load([[maybe_unused]] const Readable& input, const Half* row,
                       hn::Vec<DL> (&loads)[kLoads]) const {
    const auto* const from = reinterpret_cast<const uint16_t*>(row + left_);
    HWY_UNROLL(7)
    for (int i = 0; i < kLoads; ++i) {
      if constexpr (kInside) {
        loads[i] = hn::LoadU(DL(), from + i * step_);
        continue;
      }
#if ANEMONE_MATH_MASKED_HALF
      loads[i] = hn::MaskedLoad(inside_[i], DL(), from + i * step_);
#else
      loads[i] = hn::IfThenElseZero(inside_[i], LoadInside(input, row + left_ + i * step_));
#endif
    }
  }

  // Loads one row of the input and returns it widened, one vector per column of taps.
  template <bool kInside = false>
  HWY_INLINE void LoadTaps(const Readable& input, const Half* row,
                           hn::Vec<D> (&taps)[kTaps]) const {
    hn::Vec<DL> loads[kLoads];
    Load<kInside>(input, row, loads);
    HWY_UNROLL(7)
    for (int i = 0; i < kLoads; ++i) {
      if constexpr (kStride == 1) {
        taps[i] = WidenBits(loads[i]);
      } else {
        const hn::Rebind<uint16_t, D> halves;
        const auto pairs = hn::BitCast(hn::Rebind<uint32_t, D>(), loads[i]);
        taps[2 * i] = WidenBits(hn::TruncateTo(halves, pairs));
        if (2 * i + 1 == kTaps) continue;
        taps[2 * i + 1] = WidenBits(hn::TruncateTo(halves, hn::ShiftRight<16>(pairs)));
      }
    }
  }

 private:
  static constexpr int64_t kWidth = hn::MaxLanes(DL());

  static hn::Mask<DL> FirstLanes(int64_t count) {
    return hn::FirstN(DL(), static_cast<size_t>(HWY_MIN(HWY_MAX(count, 0), kWidth)));
  }
  static HWY_INLINE hn::Vec<D> WidenBits(hn::Vec<hn::Rebind<uint16_t, D>> bits) {
    return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
  }
  // Loads a vector without what is outside `input`.
  static HWY_INLINE hn::Vec<DL> LoadInside(const Readable& input, const Half* from) {
    if (from >= input.begin && from + kWidth <= input.end) {
      return hn::LoadU(DL(), reinterpret_cast<const uint16_t*>(from));
    }
    HWY_ALIGN uint16_t near[kWidth] = {};
    const int64_t begin = HWY_MIN(HWY_MAX(input.begin - from, 0), kWidth);
    const int64_t end = HWY_MAX(HWY_MIN(input.end - from, kWidth), begin);
    std::memcpy(near + begin, static_cast<const void*>(from + begin), (end - begin) * sizeof(Half));
    return hn::Load(DL(), near);
  }

  int64_t left_ = 0;  // the first load begins at this column of the input
  int64_t step_ = 1;  // from one load to the next
  bool all_inside_ = false;
  hn::Mask<DL> inside_[kLoads];
};

// Rounds and stores the first `count` lanes.
template <class D>
HWY_INLINE void StoreFirst(D, hn::Vec<D> values, Half* to, int64_t count) {
  const hn::Rebind<uint16_t, D> halves;
  const auto rounded = hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), values);
  StoreFirstBits(halves, hn::BitCast(halves, rounded), to, count);
}

// Calls run(constant) with the one of kValues that equals `value`. False if there is none.
template <int... kValues, class Run>
HWY_INLINE bool WithOneOf(int64_t value, const Run& run) {
  return ((value == kValues && run(std::integral_constant<int, kValues>())) || ...);
}

// Divides rows [first, last] into tiles of 7, 6, 4, 3 or 1 rows, of similar size, and calls
// tile(rows, row) for each; `rows` is a compile-time constant.
template <class Tile>
HWY_INLINE void ForTileRows(int64_t first, int64_t last, const Tile& tile) {
  int64_t row = first;
  while (row <= last) {
    const int64_t most = EvenPart(last + 1 - row, 7);
    const auto take = [&](auto rows) HWY_ATTR {
      if (rows > most) return false;
      tile(rows, row);
      row += rows;
      return true;
    };
    [&]<int... kRows>(std::integer_sequence<int, kRows...>) HWY_ATTR {
      (take(std::integral_constant<int, kRows>()) || ...);
    }
    (std::integer_sequence<int, 7, 6, 4, 3, 1>());
  }
}

// Calls run(d) with vectors of at most eight lanes if a row has at most eight columns, so that
// longer vectors are not half empty.
template <class Run>
HWY_INLINE void WithLanesFor(int64_t columns, const Run& run) {
  const hn::CappedTag<float, 8> few;
  if (columns <= hn::MaxLanes(few)) {
    run(few);
  } else {
    run(DF());
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
