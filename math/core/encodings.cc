#include "math/core/encodings.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/nibbles.h"
#include "math/exact/exact_half.h"

namespace anemone::math {
namespace {

constexpr double kE4M3Max = 448;
constexpr uint8_t kE4M3MaxByte = 0x7e, kE4M3Nan = 0x7f;

}  // namespace

Half DequantizedAffine(int q, int zero_point, Half scale) {
  return ToHalf(ToDouble(scale) * static_cast<double>(q - zero_point));
}

void Postscale(const Numerics& n, int64_t plane, absl::Span<const Half> scales,
               absl::Span<const float> bias, int64_t channels, absl::Span<Half> y) {
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / plane % channels;
    const Half scale = scales[scales.size() == 1 ? 0 : channel];
    y[i] = Stored(ToDouble(y[i]) * ToDouble(scale), n);
    if (!bias.empty()) y[i] = Stored(ToDouble(y[i]) + bias[channel], n);
  }
}

CodeRange Int8Codes(const Numerics& n) { return {n.sat_int == SatInt::kFull ? -128 : -127, 127}; }

int QuantizedAffine(double x, double scale, int zero_point, CodeRange range, const Numerics& n) {
  const double quotient = x / scale;
  if (std::isnan(quotient)) return std::clamp(zero_point, range.low, range.high);
  // std::nearbyint rounds ties to even, std::round rounds them away from zero.
  const double whole =
      n.cmp_encode == CmpEncode::kHalfAway ? std::round(quotient) : std::nearbyint(quotient);
  const double code = std::clamp<double>(whole + zero_point, range.low, range.high);
  return static_cast<int>(code);
}

std::vector<uint8_t> PackedIndices(absl::Span<const uint8_t> indices, int bits) {
  if (bits == 8) return {indices.begin(), indices.end()};
  assert(bits == 4);
  std::vector<uint8_t> packed((indices.size() + 1) / 2);
  for (size_t i = 0; i < indices.size(); ++i) {
    PutNibble(packed.data(), static_cast<int64_t>(i), indices[i]);
  }
  return packed;
}

int IndexAt(absl::Span<const uint8_t> packed, int bits, int64_t i) {
  return bits == 8 ? packed[i] : NibbleAt(packed.data(), i);
}

std::vector<Half> SparseToDense(absl::Span<const uint8_t> mask, absl::Span<const Half> values,
                                int64_t n) {
  std::vector<Half> dense(n, kHalfZero);
  size_t next = 0;
  for (int64_t i = 0; i < n; ++i) {
    if ((mask[i / 8] >> i % 8 & 1) != 0) dense[i] = values[next++];
  }
  return dense;
}

uint8_t ToE5M2(Half x, const Numerics& n) {
  const int sign = x.bits >> 8 & 0x80;
  const int magnitude = x.bits & 0x7fff;
  // E5M2 has NaNs. Rounding must not turn a NaN into an infinity.
  if (magnitude > 0x7c00) return static_cast<uint8_t>(sign | 0x7e);
  const int odd = magnitude >> 8 & 1;
  const int bias = n.st_fp8_e5m2 == StFp8E5m2::kHalfUp ? 0x80 : 0x7f + odd;
  return static_cast<uint8_t>(sign | std::min((magnitude + bias) >> 8, 0x7c));
}

Half FromE4M3(uint8_t byte) {
  const int exponent = byte >> 3 & 15, fraction = byte & 7;
  if ((byte & 0x7f) == kE4M3Nan) return kHalfNan;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -9)  // 2^-6 * m / 8
                                         : std::ldexp(8 + fraction, exponent - 10);
  return ToHalf((byte & 0x80) != 0 ? -magnitude : magnitude);
}

uint8_t ToE4M3(double x, E4M3Overflow overflow, const Numerics& n) {
  const int sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return static_cast<uint8_t>(sign | kE4M3Nan);
  double magnitude = std::abs(x);
  const bool tested_first = n.st_fp8_e4m3 == StFp8E4m3::kTestFirst && magnitude > kE4M3Max;
  // Rounds to units of the last place. Below the smallest normal number, 2^-6, the unit is
  // constant.
  const int exponent = magnitude == 0 ? -6 : std::max(std::ilogb(magnitude), -6);
  if (std::isfinite(magnitude)) {
    magnitude = std::ldexp(std::nearbyint(std::ldexp(magnitude, 3 - exponent)), exponent - 3);
  }
  if (tested_first || magnitude > kE4M3Max) {
    const uint8_t byte = overflow == E4M3Overflow::kSaturate ? kE4M3MaxByte : kE4M3Nan;
    return static_cast<uint8_t>(sign | byte);
  }
  // Bytes are in the order of the values, with 8 bytes per exponent.
  const int top = magnitude < std::ldexp(1.0, -6) ? -6 : std::ilogb(magnitude);
  const int units = static_cast<int>(std::ldexp(magnitude, 3 - top));
  return static_cast<uint8_t>(sign | ((top + 6) * 8 + units));
}

Half DequantizedImage(uint8_t q, Half scale, Half bias, const Numerics& n) {
  const double product = ToDouble(scale) * q;
  if (n.st_image_u8 == StImageU8::kOneRounding) return ToHalf(product + ToDouble(bias));
  return ToHalf(ToDouble(ToHalf(product)) + ToDouble(bias));
}

}  // namespace anemone::math
