// math/core/encodings.h: the number formats that weights and images are stored in, and their way
// to fp16 and back, as numerics.json says it (sections compression, storage: st-fp8-*,
// st-image-u8).
//
//   Half w = DequantizedAffine(/*q=*/3, /*zero_point=*/0, ToHalf(0.1f));   // 0.2998046875
//   int q = QuantizedAffine(2.5, 1.0, 0, kInt8Codes, numerics);            // 2, or 3 by
//   `half-away`
//
// Every form is rebuilt to fp16 before the multiplier (cmp-order), so a stored weight is one Half
// whether its bytes stream or are folded (cmp-stream).
#ifndef ANEMONE_MATH_CORE_ENCODINGS_H_
#define ANEMONE_MATH_CORE_ENCODINGS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "math/core/half.h"
#include "numerics.h"  // generated

namespace anemone::math {

// cmp-int8, and cmp-block with the scale of the block: f16(s * (q - z)), one rounding.
Half DequantizedAffine(int q, int zero_point, Half scale);

// The option `postscale` of cmp-int8: `y`, (batch, channels, plane) sums of codes as the array
// stored them, times the scale of their channel (or of all), then plus the bias, each rounded. The
// option `wide` of cmp-block is not modelled: its sum of scaled codes is in no unit that is
// described, and cmp-order has every form rebuilt to fp16 before the multiplier.
void Postscale(const Numerics& n, int64_t plane, absl::Span<const Half> scales,
               absl::Span<const float> bias, int64_t channels, absl::Span<Half> y);

// The range of a code. A signed one of 8 bits is as sat-int says.
struct CodeRange {
  int low = 0, high = 0;
};
CodeRange Int8Codes(const Numerics& n);
inline constexpr CodeRange kUInt8Codes{0, 255};
inline constexpr CodeRange kInt4Codes{-8, 7};

// cmp-encode, sat-int: round(x / s) + z within the range; 0 + z for a quotient that is no number.
int QuantizedAffine(double x, double scale, int zero_point, CodeRange range, const Numerics& n);

// cmp-palette: indices of 4 or 8 bits, low nibble first.
std::vector<uint8_t> PackedIndices(absl::Span<const uint8_t> indices, int bits);
int IndexAt(absl::Span<const uint8_t> packed, int bits, int64_t i);
inline constexpr int64_t TableBytes(int bits) {
  return (int64_t{1} << bits) * static_cast<int64_t>(sizeof(Half));
}
// How many elements an entry of a table may hold: the bits of a mask.
inline constexpr bool IsVectorSize(int v) { return v >= 0 && v < 8 && ((0x36 >> v) & 1) != 0; }

// cmp-sparse: `n` elements from a mask of ceil(n / 8) bytes, least significant bit first, and the
// values of the bits that are set; what is not set is +0. `values` has as many as bits are set.
std::vector<Half> SparseToDense(absl::Span<const uint8_t> mask, absl::Span<const Half> values,
                                int64_t n);
// Of all bits in fp16, and the share of its elements that is kept: what a form stores.
inline constexpr double SparseSizeRatio(double density) { return 1.0 / 16 + density; }

// st-fp8-e5m2: the high byte of a Half.
inline Half FromE5M2(uint8_t byte) { return {static_cast<uint16_t>(byte << 8)}; }
uint8_t ToE5M2(Half x, const Numerics& n);

// st-fp8-e4m3 (FN: no infinity). A NaN stays one here; at a port it becomes +infinity (st-nan-in).
Half FromE4M3(uint8_t byte);
enum class E4M3Overflow { kNan = 0, kSaturate = 1 };  // the modes' numbers
uint8_t ToE4M3(double x, E4M3Overflow overflow, const Numerics& n);

// Whether a DMA format's code is one that becomes fp16 on the way in (mask 0x2ff0).
inline constexpr bool IsDmaConvertible(int format) {
  return format >= 0 && format < 0xe && ((0x2ff0 >> format) & 1) != 0;
}

// st-image-u8: an input of bytes.
Half DequantizedImage(uint8_t q, Half scale, Half bias, const Numerics& n);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_ENCODINGS_H_
