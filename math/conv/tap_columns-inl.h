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
  TapColumns() = default;
  TapColumns(const ConvGeometry& g, int64_t column)
      : left_(column * kStride - g.pad_left), step_(kStride == 1 ? g.dilation_w : kStride) {
    for (int i = 0; i < kLoads; ++i) {
      const int64_t first = left_ + i * step_;
      inside_[i] = hn::AndNot(FirstLanes(-first), FirstLanes(g.in_w - first));
    }
  }

  // The type of a load.
  using DL = std::conditional_t<kStride == 1, hn::Rebind<uint16_t, D>,
                                hn::Repartition<uint16_t, hn::Rebind<uint32_t, D>>>;
  static constexpr int kLoads = (kTaps + kStride - 1) / kStride;

  // Whether loads [first, last] read no padding.
  bool AreInside(int64_t in_w, int first, int last) const {
    return left_ + first * step_ >= 0 && left_ + last * step_ + kWidth <= in_w;
  }

  // The position of the first load in a row, and from each load to the next.
  int64_t left() const { return left_; }
  int64_t step() const { return step_; }
  // Which lanes of a load are not padding.
  hn::Mask<DL> inside(int i) const { return inside_[i]; }

  // Loads the lanes that are `inside`, and zeros.
  static HWY_INLINE hn::Vec<DL> Load([[maybe_unused]] const Readable& input, const Half* from,
                                     hn::Mask<DL> inside) {
#if ANEMONE_MATH_MASKED_HALF
    return hn::MaskedLoad(inside, DL(), reinterpret_cast<const uint16_t*>(from));
#else
    return hn::IfThenElseZero(inside, LoadInside(input, from));
#endif
  }

  // The columns of a load, widened: only column 0, or with stride 2 columns 0 and 1.
  static HWY_INLINE hn::Vec<D> Widened(hn::Vec<DL> load, int column) {
    if constexpr (kStride == 1) {
      return WidenBits(load);
    } else {
      const hn::Rebind<uint16_t, D> halves;
      const auto pairs = hn::BitCast(hn::Rebind<uint32_t, D>(), load);
      return WidenBits(hn::TruncateTo(halves, column == 0 ? pairs : hn::ShiftRight<16>(pairs)));
    }
  }

  // Loads one row of the input and returns it widened, one vector per column of taps.
  HWY_INLINE void LoadTaps(const Readable& input, const Half* row,
                           hn::Vec<D> (&taps)[kTaps]) const {
    HWY_UNROLL(7)
    for (int i = 0; i < kLoads; ++i) {
      const auto load = Load(input, row + left_ + i * step_, inside_[i]);
      HWY_UNROLL(2)
      for (int j = 0; j < kStride && i * kStride + j < kTaps; ++j) {
        taps[i * kStride + j] = Widened(load, j);
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
