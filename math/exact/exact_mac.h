// math/exact/exact_mac.h: the multiply-accumulate array of the silicon, bit by published bit, in
// `exact` mode (numerics_notes.md section 2; numerics.json mac-order, mac-width, mac-product,
// mac-tile, mac-ceiling, mac-interior, mac-epilogue, mac-bias-type, mac-chunk, mac-large-k,
// red-sum, st-subnormal-mac).
//
//   std::vector<float> a = ..., b = ...;   // 2 x 9 and 9 x 16, by MacOperands()
//   MacSums(numerics, {.rows = 2, .depth = 9}, a, b, sums);
//   StoreMacs(numerics, /*has_ceiling=*/true, {.offset = bias}, sums, y);
//
// Lanes are taken in the order of `depth`, four to a tile: every product of a tile is added to the
// tile's sum with 12 bits of the larger of the two, and the tile's sum to an fp32 register. What
// the sources leave open is an option of Numerics; every option is here. The order depends on the
// lane alone, so neither threads nor vector length show in a result.
#ifndef ANEMONE_MATH_EXACT_EXACT_MAC_H_
#define ANEMONE_MATH_EXACT_EXACT_MAC_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/exact/exact_half.h"

namespace anemone::math {

// Halfs as the array reads them: subnormals may be zeros to it. Element (i, j) stands at
// from[i * row + j * column], and is written to to[i * to_row + j].
struct MacBlock {
  int64_t rows = 1, columns = 1;
  int64_t row = 0, column = 1;
  int64_t to_row = 0;
};
void MacOperands(const Numerics& n, const MacBlock& block, const Half* from, float* to);

// Columns are taken so many at a time; those of no meaning are the caller's to ignore.
inline constexpr int64_t kMacColumns = 16;

struct MacShape {
  int64_t rows = 1, depth = 1;
  bool is_reduction = false;  // a dedicated one: tiles by red-sum, never bounded
  bool is_bounded = true;     // a partial sum past 2^15 is infinite (mac-interior)
  bool continues = false;  // `sums` holds the registers as lanes before, a multiple of 4, left them
};

// sums[i, j] = the register after all lanes of a[i, :] and b[:, j], for kMacColumns columns; all
// dense, row by row. Not yet rounded to fp16, perhaps infinite, never NaN.
void MacSums(const Numerics& n, const MacShape& shape, absl::Span<const float> a,
             absl::Span<const float> b, absl::Span<float> sums);

// Scales and addends, in fp32: of element i gain[i * step] and offset[i * step]. Null: none.
struct MacTerms {
  const float* gain = nullptr;
  const float* offset = nullptr;
  int64_t step = 0;
};

// y[i] = the register as it is stored: rounded, infinite from 2^15 on (`has_ceiling`: false of one
// tap of one channel), then scaled and added to in fp16; or all of it rounded once.
void StoreMacs(const Numerics& n, bool has_ceiling, const MacTerms& terms,
               absl::Span<const float> sums, Half* y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_MAC_H_
