// math/gemm/weight_panels-inl.h: expands a part of a panel of weights to floats. Internal.
#if defined(ANEMONE_MATH_GEMM_WEIGHT_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_WEIGHT_PANELS_INL_H_
#undef ANEMONE_MATH_GEMM_WEIGHT_PANELS_INL_H_
#else
#define ANEMONE_MATH_GEMM_WEIGHT_PANELS_INL_H_
#endif

#include <bit>
#include <cstdint>
#include <cstring>

#include "math/core/simd-inl.h"
#include "math/gemm/panels.h"
#include "math/gemm/weight_panels.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Expands terms [first, first + depth) of a panel of codes to to[depth][width], in vectors of D,
// which divide the width. `value(codes, entry)` returns the weights of a vector of codes, before
// they are rounded; `entry` is the place of their scales.
template <class D, class Value>
HWY_INLINE void FillCodes(D d, const WeightPanels& w, int64_t panel, int64_t first, int64_t depth,
                          float* to, const Value& value) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto mask = hn::Set(du, (uint32_t{1} << w.bits) - 1);
  const int64_t run = w.form == WeightForm::kAffine ? w.run : w.depth, runs = w.depth / run;
  for (int64_t k = first; k < first + depth;) {
    const int64_t entry = (panel * runs + k / run) * w.width;
    const int64_t end = HWY_MIN((k / run + 1) * run, first + depth);
    for (; k < end; ++k, to += w.width) {
      const int64_t bit = k * w.bits;
      const uint32_t* words = w.codes.data() + (panel * w.words() + bit / 32) * w.width;
      for (int64_t i = 0; i < w.width; i += hn::MaxLanes(d)) {
        const auto word = hn::LoadU(du, words + i);
        const auto codes = hn::And(hn::ShiftRightSame(word, static_cast<int>(bit % 32)), mask);
        hn::StoreU(value(hn::BitCast(di, codes), entry + i), d, to + i);
      }
    }
  }
}

// (code - zero point) * scale.
template <class D>
HWY_INLINE void FillAffine(D d, const WeightPanels& w, int64_t panel, int64_t first, int64_t depth,
                           float* to) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const auto zero = hn::Set(di, w.zero_point);
  const auto scaled = [&](auto codes, int64_t entry) HWY_ATTR {
    return hn::Mul(hn::ConvertTo(d, codes), hn::LoadU(d, w.scales.data() + entry));
  };
  if (w.zero_points.size() == 0) {
    return FillCodes(d, w, panel, first, depth, to, [&](auto codes, int64_t entry) HWY_ATTR {
      return scaled(hn::Sub(codes, zero), entry);
    });
  }
  FillCodes(d, w, panel, first, depth, to, [&](auto codes, int64_t entry) HWY_ATTR {
    const auto zeros = hn::PromoteTo(di, hn::LoadU(d8, w.zero_points.data() + entry));
    return scaled(hn::Sub(codes, zeros), entry);
  });
}

template <class D>
HWY_INLINE void FillPalette(D d, const WeightPanels& w, int64_t panel, int64_t first, int64_t depth,
                            float* to) {
  FillCodes(d, w, panel, first, depth, to, [&](auto codes, int64_t) HWY_ATTR {
    return hn::GatherIndex(d, w.table.data(), codes);
  });
}

// Rounds each number to Half.
HWY_INLINE void RoundRun(float* to, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(RoundHalf(hn::LoadU(DF(), to + i)), DF(), to + i);
  }
  if (i < count) StoreFloatN(RoundHalf(LoadFloatN(to + i, count - i)), to + i, count - i);
}

HWY_INLINE void FillSparse(const WeightPanels& w, int64_t first, int64_t count, float* to) {
  constexpr int64_t kBits = BitMask::kWordBits;
  int64_t value = w.mask.SetBefore(first);
  std::memset(to, 0, count * sizeof(float));
  for (int64_t at = first; at < first + count; at = (at / kBits + 1) * kBits) {
    uint64_t kept = w.mask.words()[at / kBits] >> at % kBits << at % kBits;
    for (; kept != 0; kept &= kept - 1) {
      const int64_t i = at / kBits * kBits + std::countr_zero(kept) - first;
      if (i >= count) return;
      to[i] = ToFloat(w.values[value++]);
    }
  }
}

// Expands terms [first, first + depth) of panel `panel` to to[depth][width]. Writes no other
// memory.
HWY_INLINE void FillPanel(const WeightPanels& w, int64_t panel, int64_t first, int64_t depth,
                          float* to) {
  const int64_t at = (panel * w.depth + first) * w.width;
  const int64_t count = depth * w.width;
  if (w.form == WeightForm::kDense) return WidenRun(w.halves.data() + at, to, count);
  if (count == 0) return;
  if (w.form == WeightForm::kSparse) return FillSparse(w, at, count, to);
  const hn::CappedTag<float, kPanelRows> narrow;
  const bool wide = w.width == kPanelColumns;
  if (w.form == WeightForm::kPalette) {  // the table is rounded
    return wide ? FillPalette(DF(), w, panel, first, depth, to)
                : FillPalette(narrow, w, panel, first, depth, to);
  }
  wide ? FillAffine(DF(), w, panel, first, depth, to)
       : FillAffine(narrow, w, panel, first, depth, to);
  RoundRun(to, count);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
