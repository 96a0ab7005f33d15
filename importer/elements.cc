#include "importer/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/bool_element.h"
#include "base/float_scan.h"
#include "base/memory_limit.h"
#include "base/nibbles.h"

namespace anemone {
namespace {

// A floating type narrower than float: the bits of the mantissa, and the exponents of the smallest
// and largest normal numbers.
struct Format {
  int mantissa;
  int lowest;
  int highest;
};
constexpr Format kHalf = {10, -14, 15};
constexpr Format kBrain = {7, -126, 127};

double Widen(uint16_t bits, const Format& format) {
  const int sign = bits >> 15;
  const int exponent = (bits & 0x7fff) >> format.mantissa;
  const int fraction = bits & ((1 << format.mantissa) - 1);
  double magnitude;
  if (exponent == format.highest - format.lowest + 2) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, format.lowest - format.mantissa);
  } else {  // the fields of a double: ldexp() takes several times as long
    constexpr int kBias = 1023, kMantissa = 52;
    magnitude = std::bit_cast<double>(
        static_cast<uint64_t>(kBias + format.lowest + exponent - 1) << kMantissa |
        static_cast<uint64_t>(fraction) << (kMantissa - format.mantissa));
  }
  return sign != 0 ? -magnitude : magnitude;
}

// Rounds to nearest, ties to even, directly from double: a conversion via float would round twice.
uint16_t Narrow(double value, const Format& format) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const int top = format.highest - format.lowest + 2;  // the exponent field of infinity
  const auto infinity = static_cast<uint16_t>(top << format.mantissa);
  if (std::isnan(value)) return sign | infinity | static_cast<uint16_t>(1 << (format.mantissa - 1));
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return sign | infinity;
  const int exponent =
      std::max(magnitude == 0 ? format.lowest : std::ilogb(magnitude), format.lowest);
  // In units of the last place; nearbyint rounds ties to even. A carry correctly increments the
  // exponent field.
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent));
  if (units >= std::ldexp(1, format.mantissa + 1) && exponent >= format.highest) {
    return sign | infinity;
  }
  if (exponent > format.highest) return sign | infinity;
  const int64_t bits = static_cast<int64_t>(units) +
                       (static_cast<int64_t>(exponent - format.lowest) << format.mantissa);
  return sign | static_cast<uint16_t>(bits);
}

template <class Store>
void Fill(int64_t count, Store store) {
  for (int64_t i = 0; i < count; ++i) store(i);
}

// Writes `count` elements value(i) into `bytes`.
template <class ValueAt>
void WriteAll(DataType type, int64_t count, ValueAt value, Tensor& out) {
  switch (type) {
    case DataType::kFloat:
      Fill(count, [&, to = out.mutable_data<float>()](int64_t i) {
        to[i] = static_cast<float>(value(i));
      });
      return;
    case DataType::kDouble:
      Fill(count, [&, to = out.mutable_data<double>()](int64_t i) { to[i] = value(i); });
      return;
    case DataType::kFloat16:
      Fill(count,
           [&, to = out.mutable_data<uint16_t>()](int64_t i) { to[i] = Narrow(value(i), kHalf); });
      return;
    default:
      Fill(count,
           [&, to = out.mutable_data<uint16_t>()](int64_t i) { to[i] = Narrow(value(i), kBrain); });
  }
}

}  // namespace

double ElementAsDouble(const Tensor& tensor, int64_t i) {
  switch (tensor.type()) {
    case DataType::kFloat:
      return tensor.at<float>(i);
    case DataType::kDouble:
      return tensor.at<double>(i);
    case DataType::kFloat16:
      return Widen(tensor.at<uint16_t>(i), kHalf);
    default:
      return Widen(tensor.at<uint16_t>(i), kBrain);
  }
}

std::optional<std::vector<double>> ToDoubles(const Tensor& tensor, int64_t limit) {
  if (!IsFloating(tensor.type()) || tensor.elements() > limit) return std::nullopt;
  const auto taken = TakeMemory(tensor.elements() * int64_t{sizeof(double)});
  std::vector<double> values(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = ElementAsDouble(tensor, i);
  return values;
}

namespace {

template <class T>
double NumberAt(const Tensor& tensor, int64_t i) {
  return static_cast<double>(tensor.at<T>(i));
}

double BoolOf(const Tensor& tensor, int64_t i) { return BoolAt(tensor, i) ? 1 : 0; }

double NibbleOf(const Tensor& tensor, int64_t i) {
  const int bits = NibbleAt(tensor.bytes().data(), tensor.is_fill() ? 0 : i);
  return tensor.type() == DataType::kInt4 && bits > 7 ? bits - 16 : bits;
}

}  // namespace

NumberReader NumberReaderOf(DataType type) {
  switch (type) {
    case DataType::kBool:
      return BoolOf;
    case DataType::kUInt8:
      return NumberAt<uint8_t>;
    case DataType::kInt8:
      return NumberAt<int8_t>;
    case DataType::kUInt16:
      return NumberAt<uint16_t>;
    case DataType::kInt16:
      return NumberAt<int16_t>;
    case DataType::kUInt32:
      return NumberAt<uint32_t>;
    case DataType::kInt32:
      return NumberAt<int32_t>;
    case DataType::kUInt64:
      return NumberAt<uint64_t>;
    case DataType::kInt64:
      return NumberAt<int64_t>;
    case DataType::kUInt4:
    case DataType::kInt4:
      return NibbleOf;
    default:
      return IsFloating(type) ? ElementAsDouble : nullptr;
  }
}

std::optional<std::vector<double>> ToNumbers(const Tensor& tensor, int64_t limit) {
  const NumberReader reader = NumberReaderOf(tensor.type());
  if (reader == nullptr || tensor.elements() > limit) return std::nullopt;
  const auto taken = TakeMemory(tensor.elements() * int64_t{sizeof(double)});
  std::vector<double> values(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = reader(tensor, i);
  return values;
}

bool SameElements(const Tensor& a, const Tensor& b) {
  if (a.compressed() != nullptr && a.compressed() == b.compressed()) return true;
  if (a.type() == DataType::kString) return a.strings() == b.strings();
  const absl::Span<const std::byte> x = a.bytes(), y = b.bytes();
  return (x.data() == y.data() && x.size() == y.size()) || x == y;
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() && SameElements(a, b);
}

Tensor FromDoubles(DataType type, std::vector<int64_t> dims, absl::Span<const double> values) {
  Tensor out = Tensor::Zeros(type, std::move(dims));
  WriteAll(
      type, out.elements(), [&](int64_t i) { return values[i]; }, out);
  return out;
}

Tensor ScaleRows(const Tensor& tensor, int64_t row, absl::Span<const double> factors) {
  const bool uniform = std::all_of(factors.begin(), factors.end(),
                                   [&](double factor) { return factor == factors[0]; });
  if (tensor.is_fill() && uniform) {
    const Tensor one = FromDoubles(tensor.type(), {1}, {ElementAsDouble(tensor, 0) * factors[0]});
    return Tensor::Fill(tensor.type(), tensor.dims(), one.bytes());
  }
  Tensor out = Tensor::Uninitialized(tensor.type(), tensor.dims());
  const auto count = static_cast<int64_t>(factors.size());
  if (tensor.type() == DataType::kFloat && !tensor.is_fill()) {  // most weights
    constexpr auto kSize = static_cast<int64_t>(sizeof(float));
    for (int64_t begin = 0, r = 0; begin < out.elements(); begin += row, ++r) {
      ScaleFloats(tensor.bytes().data() + begin * kSize, row, factors[r % count],
                  out.mutable_data<float>() + begin);
    }
    return out;
  }
  WriteAll(
      tensor.type(), out.elements(),
      [&](int64_t i) { return ElementAsDouble(tensor, i) * factors[i / row % count]; }, out);
  return out;
}

}  // namespace anemone
