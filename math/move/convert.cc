#include "math/move/convert.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "math/core/parallel.h"
#include "math/move/counted_convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/move/convert.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

HWY_INLINE VF NanToInfinity(VF x) {
  return hn::IfThenElse(hn::IsNaN(x), hn::Set(DF(), hwy::HighestValue<float>() * 2.0f), x);
}

void FloatRunToHalf(const float* from, Half* to, int64_t count, NanRule nan) {
  if (nan == NanRule::kKeep) return NarrowRun(from, to, count);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    StoreHalf(NanToInfinity(hn::LoadU(DF(), from + i)), to + i);
  }
  if (i < count) StoreHalfN(NanToInfinity(LoadFloatN(from + i, count - i)), to + i, count - i);
}

void HalfRunToFloat(const Half* from, float* to, int64_t count) { WidenRun(from, to, count); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(FloatRunToHalf);
HWY_EXPORT(HalfRunToFloat);

void FloatToHalf(absl::Span<const float> from, absl::Span<Half> to, NanRule nan) {
  assert(from.size() == to.size());
  ParallelFor(from.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(FloatRunToHalf)(from.data() + begin, to.data() + begin, end - begin, nan);
  });
}

void HalfToFloat(absl::Span<const Half> from, absl::Span<float> to) {
  assert(from.size() == to.size());
  ParallelFor(from.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(HalfRunToFloat)(from.data() + begin, to.data() + begin, end - begin);
  });
}

int64_t SizeOf(Element element) {
  switch (element) {
    case Element::kBool:
    case Element::kUInt8:
    case Element::kInt8:
      return 1;
    case Element::kHalf:
    case Element::kBFloat16:
    case Element::kUInt16:
    case Element::kInt16:
      return 2;
    case Element::kFloat:
    case Element::kUInt32:
    case Element::kInt32:
      return 4;
    case Element::kDouble:
    case Element::kUInt64:
    case Element::kInt64:
      return 8;
  }
  return 0;
}

Layout DenseLayout(Element element, const Extents& extents) {
  Layout layout{element, DenseStrides(extents)};
  for (int64_t& stride : layout.byte_strides) stride *= SizeOf(element);
  return layout;
}

namespace {

struct BFloat16 {
  uint16_t bits;
};

Half WithRule(Half value, NanRule nan) {
  return nan == NanRule::kToInfinity && IsNan(value) ? kHalfInfinity : value;
}

// Every 64-bit integer that a Half can represent is exact in double.
template <class T>
Half FromNumber(T value) {
  return ToHalf(static_cast<double>(value));
}
Half FromNumber(bool value) { return value ? kHalfOne : kHalfZero; }
Half FromNumber(Half value) { return value; }
Half FromNumber(BFloat16 value) {  // the upper half of a float
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float number;
  std::memcpy(&number, &bits, sizeof(number));
  return ToHalf(number);
}

template <class T>
T ToNumber(Half half) {
  if constexpr (std::is_same_v<T, Half>) {
    return half;
  } else if constexpr (std::is_floating_point_v<T>) {
    return ToFloat(half);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    // A Half has three mantissa bits more than a bfloat16. Rounds ties to even and keeps NaN.
    const float value = ToFloat(half);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (!IsNan(half)) bits += 0x7fff + ((bits >> 16) & 1);
    return {static_cast<uint16_t>(bits >> 16)};
  } else if constexpr (std::is_same_v<T, bool>) {
    return (half.bits & 0x7fff) != 0;
  } else {
    if (IsNan(half)) return 0;
    const double value = std::nearbyint(ToDouble(half));
    if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    return static_cast<T>(value);
  }
}

// Uses memcpy because the data may have any alignment.
template <class T>
void ToHalves(const char* from, char* to, int64_t count, NanRule nan) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    const Half half = WithRule(FromNumber(value), nan);
    std::memcpy(to + i * sizeof(Half), &half, sizeof(half));
  }
}
template <>
void ToHalves<bool>(const char* from, char* to, int64_t count, NanRule) {
  for (int64_t i = 0; i < count; ++i) {  // not read as bool: bytes other than 0 and 1 are invalid
    const Half half = FromNumber(from[i] != 0);
    std::memcpy(to + i * sizeof(Half), &half, sizeof(half));
  }
}

template <class T>
void FromHalves(const char* from, char* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    Half half;
    std::memcpy(&half, from + i * sizeof(Half), sizeof(half));
    const T value = ToNumber<T>(half);
    std::memcpy(to + i * sizeof(T), &value, sizeof(value));
  }
}

void RunToHalf(Element element, const char* from, char* to, int64_t count, NanRule nan) {
  switch (element) {
    case Element::kHalf:
      if (nan == NanRule::kToInfinity) return ToHalves<Half>(from, to, count, nan);
      std::memcpy(to, from, count * sizeof(Half));
      return;
    case Element::kFloat:
      HWY_DYNAMIC_DISPATCH(FloatRunToHalf)
      (reinterpret_cast<const float*>(from), reinterpret_cast<Half*>(to), count, nan);
      return;
    case Element::kBFloat16:
      return ToHalves<BFloat16>(from, to, count, nan);
    case Element::kDouble:
      return ToHalves<double>(from, to, count, nan);
    case Element::kBool:
      return ToHalves<bool>(from, to, count, nan);
    case Element::kUInt8:
      return ToHalves<uint8_t>(from, to, count, nan);
    case Element::kInt8:
      return ToHalves<int8_t>(from, to, count, nan);
    case Element::kUInt16:
      return ToHalves<uint16_t>(from, to, count, nan);
    case Element::kInt16:
      return ToHalves<int16_t>(from, to, count, nan);
    case Element::kUInt32:
      return ToHalves<uint32_t>(from, to, count, nan);
    case Element::kInt32:
      return ToHalves<int32_t>(from, to, count, nan);
    case Element::kUInt64:
      return ToHalves<uint64_t>(from, to, count, nan);
    case Element::kInt64:
      return ToHalves<int64_t>(from, to, count, nan);
  }
}

void RunFromHalf(Element element, const char* from, char* to, int64_t count) {
  switch (element) {
    case Element::kHalf:
      std::memcpy(to, from, count * sizeof(Half));
      return;
    case Element::kFloat:
      HWY_DYNAMIC_DISPATCH(HalfRunToFloat)
      (reinterpret_cast<const Half*>(from), reinterpret_cast<float*>(to), count);
      return;
    case Element::kBFloat16:
      return FromHalves<BFloat16>(from, to, count);
    case Element::kDouble:
      return FromHalves<double>(from, to, count);
    case Element::kBool:
      return FromHalves<bool>(from, to, count);
    case Element::kUInt8:
      return FromHalves<uint8_t>(from, to, count);
    case Element::kInt8:
      return FromHalves<int8_t>(from, to, count);
    case Element::kUInt16:
      return FromHalves<uint16_t>(from, to, count);
    case Element::kInt16:
      return FromHalves<int16_t>(from, to, count);
    case Element::kUInt32:
      return FromHalves<uint32_t>(from, to, count);
    case Element::kInt32:
      return FromHalves<int32_t>(from, to, count);
    case Element::kUInt64:
      return FromHalves<uint64_t>(from, to, count);
    case Element::kInt64:
      return FromHalves<int64_t>(from, to, count);
  }
}

void ConvertRun(Element from_element, const char* from, Element to_element, char* to, int64_t count,
                NanRule nan) {
  if (to_element == Element::kHalf) return RunToHalf(from_element, from, to, count, nan);
  if (from_element == Element::kHalf) return RunFromHalf(to_element, from, to, count);
  assert(from_element == to_element);
  std::memcpy(to, from, count * SizeOf(from_element));
}

// The magnitudes of a floating-point type, as integers of its bits, which have the same order.
struct Magnitudes {
  uint32_t overflows;  // the least that fp16 rounds to infinity
  uint32_t infinity;   // larger ones are NaN
};
constexpr Magnitudes kFloat = {0x477ff000, 0x7f800000};  // 65520
constexpr Magnitudes kBFloat16 = {0x4780, 0x7f80};       // 65536; the next below is 65280
constexpr Magnitudes kHalf = {0x7c00, 0x7c00};           // it has no larger ones

// Elements whose magnitude is at least `low` and below `high`. Without branches, so that the loop
// is vectorized.
template <class Bits>
int64_t CountBetween(const char* data, int64_t count, uint32_t low, uint32_t high) {
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    const uint32_t magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
    found += magnitude - low < high - low ? 1 : 0;
  }
  return found;
}

int64_t CountOverflowed(Element element, const char* from, int64_t count) {
  switch (element) {
    case Element::kFloat:
      return CountBetween<uint32_t>(from, count, kFloat.overflows, kFloat.infinity);
    case Element::kBFloat16:
      return CountBetween<uint16_t>(from, count, kBFloat16.overflows, kBFloat16.infinity);
    default:
      return 0;
  }
}

int64_t CountNotFinite(Element to_element, const char* halves, int64_t count) {
  const bool keeps = to_element == Element::kHalf || to_element == Element::kFloat ||
                     to_element == Element::kBFloat16;
  return keeps ? CountBetween<uint16_t>(halves, count, kHalf.infinity, uint32_t{1} << 15) : 0;
}

// The tally of several threads.
class SharedTally {
 public:
  explicit SharedTally(Tally* tally) : tally_(tally) {}
  ~SharedTally() {
    if (tally_ == nullptr) return;
    tally_->overflowed += overflowed_;
    tally_->not_finite += not_finite_;
  }

  void Count(Element from_element, const char* from, Element to_element, int64_t count) {
    if (tally_ == nullptr) return;
    if (from_element == Element::kHalf) {
      not_finite_.fetch_add(CountNotFinite(to_element, from, count), std::memory_order_relaxed);
    } else if (to_element == Element::kHalf) {
      overflowed_.fetch_add(CountOverflowed(from_element, from, count), std::memory_order_relaxed);
    }
  }

 private:
  Tally* const tally_;
  std::atomic<int64_t> overflowed_{0}, not_finite_{0};
};

// Finds the innermost axes that are dense in both arrays. Returns the first of them, and their
// number of elements in `run`.
int FirstAxisOfRun(const Extents& extents, const Layout& from, const Layout& to, int64_t* run) {
  int axis = kRank - 1;
  *run = extents[axis];
  while (axis > 0 &&
         (extents[axis - 1] == 1 || (from.byte_strides[axis - 1] == *run * SizeOf(from.element) &&
                                     to.byte_strides[axis - 1] == *run * SizeOf(to.element)))) {
    --axis;
    *run *= extents[axis];
  }
  return axis;
}

}  // namespace

void ConvertStrided(const Extents& extents, const void* from, const Layout& from_layout, void* to,
                    const Layout& to_layout, NanRule nan, Tally* tally) {
  int64_t run;
  const int first_axis = FirstAxisOfRun(extents, from_layout, to_layout, &run);
  if (first_axis == 0) {
    return Convert(run, from_layout.element, from, to_layout.element, to, nan, tally);
  }
  SharedTally shared(tally);
  int64_t rows = 1;
  for (int axis = 0; axis < first_axis; ++axis) rows *= extents[axis];
  ParallelForItems(rows, run, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const char* source = static_cast<const char*>(from);
      char* target = static_cast<char*>(to);
      int64_t rest = row;
      for (int axis = first_axis - 1; axis >= 0; --axis) {
        source += rest % extents[axis] * from_layout.byte_strides[axis];
        target += rest % extents[axis] * to_layout.byte_strides[axis];
        rest /= extents[axis];
      }
      ConvertRun(from_layout.element, source, to_layout.element, target, run, nan);
      shared.Count(from_layout.element, source, to_layout.element, run);
    }
  });
}

void ConvertStrided(const Extents& extents, const void* from, const Layout& from_layout, void* to,
                    const Layout& to_layout, NanRule nan) {
  ConvertStrided(extents, from, from_layout, to, to_layout, nan, nullptr);
}

void Convert(int64_t count, Element from_element, const void* from, Element to_element, void* to,
             NanRule nan) {
  Convert(count, from_element, from, to_element, to, nan, nullptr);
}

void Convert(int64_t count, Element from_element, const void* from, Element to_element, void* to,
             NanRule nan, Tally* tally) {
  SharedTally shared(tally);
  ParallelFor(count, kElementGrain, [&](int64_t begin, int64_t end) {
    const char* source = static_cast<const char*>(from) + begin * SizeOf(from_element);
    char* target = static_cast<char*>(to) + begin * SizeOf(to_element);
    for (int64_t done = begin; done < end; done += kElementGrain) {  // parts that stay in the cache
      const int64_t part = std::min<int64_t>(kElementGrain, end - done);
      ConvertRun(from_element, source, to_element, target, part, nan);
      shared.Count(from_element, source, to_element, part);
      source += part * SizeOf(from_element);
      target += part * SizeOf(to_element);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
