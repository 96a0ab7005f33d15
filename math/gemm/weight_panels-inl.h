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

#include "base/nibbles.h"
#include "math/core/simd-inl.h"
#include "math/gemm/panels.h"
#include "math/gemm/weight_panels.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The number of codes unpacked at a time: a multiple of both panel widths and of every vector.
inline constexpr int64_t kCodeChunk = kPanelColumns;

// Returns the codes of `count` elements from `first` on as bytes. `first` must be even for 4 bits.
HWY_INLINE const uint8_t* UnpackedCodes(const WeightPanels& w, int64_t first, int64_t count,
                                        uint8_t* buffer) {
  if (w.bits == 8) return w.codes.data() + first;
  const uint8_t* from = w.codes.data() + first / 2;
  // Affine codes are signed: 8 to 15 mean -8 to -1.
  const int sign = w.form == WeightForm::kAffine ? 8 : 0;
  for (int64_t i = 0; i < count; ++i) {
    buffer[i] = static_cast<uint8_t>((NibbleAt(from, i) ^ sign) - sign);
  }
  return buffer;
}

// Expands `count` elements with the same row of scales: (code - zero) * scale, rounded once to
// Half. `scales` and `zeros` (which may be null) have kCodeChunk numbers: one per line of the
// panel, repeated.
HWY_INLINE void FillAffine(const WeightPanels& w, int64_t first, int64_t count, const float* scales,
                           const float* zeros, float* to) {
  const DF df;
  const hn::Rebind<int32_t, DF> di;
  const hn::Rebind<int8_t, DF> d8;
  HWY_ALIGN uint8_t buffer[kCodeChunk + kLanes];
  for (int64_t done = 0; done < count; done += kCodeChunk) {
    const int64_t now = HWY_MIN(kCodeChunk, count - done);
    const auto* codes =
        reinterpret_cast<const int8_t*>(UnpackedCodes(w, first + done, now, buffer));
    for (int64_t i = 0; i < now; i += kLanes) {
      VF x = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(d8, codes + i)));
      if (zeros != nullptr) x = hn::Sub(x, hn::LoadU(df, zeros + i));
      x = Widen(Narrow(hn::Mul(x, hn::LoadU(df, scales + i))));
      if (now - i >= kLanes) {
        hn::StoreU(x, df, to + done + i);
      } else {
        StoreFloatN(x, to + done + i, now - i);
      }
    }
  }
}

HWY_INLINE void FillPalette(const WeightPanels& w, int64_t first, int64_t count, float* to) {
  HWY_ALIGN uint8_t buffer[kCodeChunk];
  const float* table = w.table.data();
  for (int64_t done = 0; done < count; done += kCodeChunk) {
    const int64_t now = HWY_MIN(kCodeChunk, count - done);
    const uint8_t* codes = UnpackedCodes(w, first + done, now, buffer);
    for (int64_t i = 0; i < now; ++i) to[done + i] = table[codes[i]];
  }
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
  if (w.form == WeightForm::kPalette) return FillPalette(w, at, count, to);
  if (w.form == WeightForm::kSparse) return FillSparse(w, at, count, to);
  const int64_t runs = w.depth / w.run;
  HWY_ALIGN float scales[kCodeChunk], zeros[kCodeChunk];
  for (int64_t k = first; k < first + depth;) {
    const int64_t run = k / w.run;
    const int64_t end = HWY_MIN((run + 1) * w.run, first + depth);
    const int64_t entry = (panel * runs + run) * w.width;
    for (int64_t i = 0; i < kCodeChunk; ++i) scales[i] = w.scales[entry + i % w.width];
    const bool shifted = !w.zero_points.empty();
    for (int64_t i = 0; shifted && i < kCodeChunk; ++i) {
      zeros[i] = w.zero_points[entry + i % w.width];
    }
    FillAffine(w, (panel * w.depth + k) * w.width, (end - k) * w.width, scales,
               shifted ? zeros : nullptr, to + (k - first) * w.width);
    k = end;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
