// engine/math/exact_mac.h: the multiply-accumulate array of the silicon, bit by published bit, in
// `exact` mode (numerics.json mac-*, red-sum, st-subnormal-mac; numerics_notes.md section 2).
//
//   std::vector<float> a = ..., b = ...;   // 2 x 9 and 9 x 16, each Half widened by MacOperand()
//   MacSums(numerics, {.rows = 2, .depth = 9}, a, b, sums);
//   y = StoredMac(sums[i], /*has_ceiling=*/true, bias, numerics);
//
// Lanes are taken in the order of `depth`, four to a tile: every product of a tile is added to the
// tile's sum with 12 bits of the larger of the two, and the tile's sum to an fp32 register. What
// the sources leave open is an option of Numerics; every option is here. The order depends on the
// lane alone, so neither threads nor vector length show in a result.
#ifndef ENGINE_MATH_EXACT_MAC_H_
#define ENGINE_MATH_EXACT_MAC_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "engine/math/exact_half.h"

namespace anemone::math {

// A Half as the array reads it: subnormals may be zeros to it.
float MacOperand(Half value, const Numerics& n);

// Columns are taken so many at a time; those of no meaning are the caller's to ignore.
inline constexpr int64_t kMacColumns = 16;

struct MacShape {
  int64_t rows = 1, depth = 1;
  bool is_reduction = false;  // a dedicated one: tiles by red-sum, never bounded
  bool is_bounded = true;     // a partial sum past 2^15 is infinite (mac-interior)
};

// sums[i, j] = the register after all lanes of a[i, :] and b[:, j], for kMacColumns columns; all
// dense, row by row. Not yet rounded to fp16, perhaps infinite, never NaN.
void MacSums(const Numerics& n, const MacShape& shape, absl::Span<const float> a,
             absl::Span<const float> b, absl::Span<float> sums);

// The register as it is stored: rounded, infinite from 2^15 on (`has_ceiling`: false of one tap of
// one channel), then the bias added in fp16.
Half StoredMac(float sum, bool has_ceiling, std::optional<float> bias, const Numerics& n);


}  // namespace anemone::math

#endif  // ENGINE_MATH_EXACT_MAC_H_
