// math/core/encodings.h: converts between fp16 and the formats in which weights and images are
// stored, by the rules of numerics.json (section compression; in section storage st-fp8-* and
// st-image-u8).
//
//   Half w = DequantizedAffine(/*q=*/3, /*zero_point=*/0, ToHalf(0.1f));     // 0.2998046875
//   int q = QuantizedAffine(2.5, 1.0, 0, Int8Codes(numerics), numerics);     // 2; 3 for half-away
//
// The engine converts every form to fp16 before it multiplies (cmp-order). So a weight has the same
// fp16 value whether it is streamed compressed or expanded at compile time (cmp-stream).
#ifndef ANEMONE_MATH_CORE_ENCODINGS_H_
#define ANEMONE_MATH_CORE_ENCODINGS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "math/core/half.h"
#include "numerics.h"  // generated

namespace anemone::math {

// cmp-int8, or cmp-block with the scale of the block: f16(s * (q - z)), rounded once.
Half DequantizedAffine(int q, int zero_point, Half scale);

// The option `postscale` of cmp-int8. `y` has the shape (batch, channels, plane) and holds sums of
// codes, as stored by the multiply-accumulate array. They are multiplied by the scale of their
// channel (or the one scale) and rounded, then the bias is added and the sum rounded. `scales` has
// 1 or `channels` values. The option `wide` of cmp-block is not modeled: the sources do not
// describe a unit that sums scaled codes, and by cmp-order every form becomes fp16 before the
// multiplier.
void Postscale(const Numerics& n, int64_t plane, absl::Span<const Half> scales,
               absl::Span<const float> bias, int64_t channels, absl::Span<Half> y);

// The range of a code. For int8 it depends on the rule sat-int.
struct CodeRange {
  int low = 0, high = 0;
};
CodeRange Int8Codes(const Numerics& n);
inline constexpr CodeRange kUInt8Codes{0, 255};
inline constexpr CodeRange kInt4Codes{-8, 7};

// cmp-encode, sat-int: round(x / s) + z, clamped to the range. A NaN quotient counts as 0.
int QuantizedAffine(double x, double scale, int zero_point, CodeRange range, const Numerics& n);

// cmp-palette: indices of 4 or 8 bits, packed low nibble first.
std::vector<uint8_t> PackedIndices(absl::Span<const uint8_t> indices, int bits);
int IndexAt(absl::Span<const uint8_t> packed, int bits, int64_t i);
inline constexpr int64_t TableBytes(int bits) {
  return (int64_t{1} << bits) * static_cast<int64_t>(sizeof(Half));
}
// Whether an entry of a table may hold `v` elements: 1, 2, 4 or 5 (the mask 0x36).
inline constexpr bool IsVectorSize(int v) { return v >= 0 && v < 8 && ((0x36 >> v) & 1) != 0; }

// cmp-sparse: expands `n` elements. `mask` has ceil(n / 8) bytes, least significant bit first, and
// `values` has one value per set bit. The other elements are +0.
std::vector<Half> SparseToDense(absl::Span<const uint8_t> mask, absl::Span<const Half> values,
                                int64_t n);
// The size of the sparse form relative to dense fp16: one mask bit per 16-bit element, and the
// share `density` of the elements.
inline constexpr double SparseSizeRatio(double density) { return 1.0 / 16 + density; }

// st-fp8-e5m2: the high byte of a Half.
inline Half FromE5M2(uint8_t byte) { return {static_cast<uint16_t>(byte << 8)}; }
uint8_t ToE5M2(Half x, const Numerics& n);

// st-fp8-e4m3 (the FN variant, without infinity). A NaN stays a NaN here; at a port it becomes
// +infinity (st-nan-in).
Half FromE4M3(uint8_t byte);
enum class E4M3Overflow { kNan = 0, kSaturate = 1 };  // values as in the sources
uint8_t ToE4M3(double x, E4M3Overflow overflow, const Numerics& n);

// Whether the DMA converts the format with this code to fp16 on input (mask 0x2ff0).
inline constexpr bool IsDmaConvertible(int format) {
  return format >= 0 && format < 0xe && ((0x2ff0 >> format) & 1) != 0;
}

// st-image-u8: one pixel of a uint8 image input.
Half DequantizedImage(uint8_t q, Half scale, Half bias, const Numerics& n);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_ENCODINGS_H_
