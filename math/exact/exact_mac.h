// math/exact/exact_mac.h: the silicon's multiply-accumulate array, with every published rule of its
// arithmetic, for `exact` mode (numerics_notes.md section 2; numerics.json mac-order, mac-width,
// mac-product, mac-tile, mac-ceiling, mac-interior, mac-epilogue, mac-bias-type, mac-chunk,
// mac-large-k, red-sum, st-subnormal-mac).
//
//   std::vector<float> a(2 * 9), b(9 * kMacColumns), sums(2 * kMacColumns);
//   MacOperands(numerics, {.rows = 2, .columns = 9, .row = 9, .to_row = 9}, x, a.data());
//   MacOperands(numerics, {.rows = 9, .columns = kMacColumns, .row = kMacColumns,
//                          .to_row = kMacColumns}, w, b.data());
//   MacSums(numerics, {.rows = 2, .depth = 9}, a, b, absl::MakeSpan(sums));
//   StoreMacs(numerics, /*has_ceiling=*/true, {.offset = bias}, sums, y);
//
// Lanes are processed in the order of `depth`, four per tile. Every product of a tile is added to
// the sum of the tile with 12 bits of the larger of the two. The sum of the tile is added to an
// fp32 register. Rules that the sources leave open are options of Numerics, and all their options
// are implemented. The order of a sum depends on the lane alone, so results do not depend on
// threads or vector length.
#ifndef ANEMONE_MATH_EXACT_EXACT_MAC_H_
#define ANEMONE_MATH_EXACT_EXACT_MAC_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/exact/exact_half.h"

namespace anemone::math {

// Converts Halfs as the array reads them: subnormals may become zero. Element (i, j) is read from
// from[i * row + j * column] and written to to[i * to_row + j], or, with an order, to
// to[order[i] * to_row + j].
struct MacBlock {
  int64_t rows = 1, columns = 1;
  int64_t row = 0, column = 1;
  int64_t to_row = 0;
  const int64_t* order = nullptr;

  int64_t To(int64_t i) const { return (order == nullptr ? i : order[i]) * to_row; }
};
void MacOperands(const Numerics& n, const MacBlock& block, const Half* from, float* to);

// The number of columns computed at a time. The caller ignores columns that it does not use.
inline constexpr int64_t kMacColumns = 16;

struct MacShape {
  int64_t rows = 1, depth = 1;
  bool is_reduction = false;  // a dedicated reduction: tiles by red-sum, not bounded
  bool is_bounded = true;     // a partial sum above 2^15 becomes infinite (mac-interior)
  // Whether `sums` holds the registers after earlier lanes, whose number must be a multiple of 4.
  bool continues = false;
};

// sums[i, j] = the register after all lanes of a[i, :] and b[:, j], for kMacColumns columns. All
// arrays are dense and row-major. The sums are not yet rounded to fp16. They may be infinite but
// are never NaN.
void MacSums(const Numerics& n, const MacShape& shape, absl::Span<const float> a,
             absl::Span<const float> b, absl::Span<float> sums);

// fp32 scales and addends: gain[i * step] and offset[i * step] for element i. Null means none.
struct MacTerms {
  const float* gain = nullptr;
  const float* offset = nullptr;
  int64_t step = 0;
};

// y[i] = the stored register: rounded, infinite from 2^15 on, then scaled and offset in fp16; or,
// by mac-epilogue, scaled and offset before one rounding. `has_ceiling` is false for a product of
// one tap and one channel, which does not overflow at 2^15.
void StoreMacs(const Numerics& n, bool has_ceiling, const MacTerms& terms,
               absl::Span<const float> sums, Half* y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_MAC_H_
