#include "math/move/convert.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/move/converted_runs.h"
#include "math/move/copy_bytes.h"
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

// The finite elements that fp16 rounds to infinity, and NaNs that become infinite.
HWY_INLINE int64_t CountOverflowed(VF x, NanRule nan) {
  constexpr float kLeast = 65520.0f;
  const DF df;
  const VF magnitude = hn::Abs(x);
  const VF largest = hn::Set(df, hwy::HighestValue<float>());
  const auto is_told =
      nan == NanRule::kKeep ? hn::Le(magnitude, largest) : hn::Not(hn::Gt(magnitude, largest));
  const auto is_small = hn::Lt(magnitude, hn::Set(df, kLeast));
  return static_cast<int64_t>(hn::CountTrue(df, hn::AndNot(is_small, is_told)));
}

HWY_INLINE int64_t CountNotFinite(VH halves) {
  const DH dh;
  const VH magnitude = hn::And(halves, hn::Set(dh, uint16_t{0x7fff}));
  return static_cast<int64_t>(hn::CountTrue(dh, hn::Gt(magnitude, hn::Set(dh, uint16_t{0x7bff}))));
}

template <bool kCounts>
HWY_INLINE int64_t NarrowRuns(const ConvertedRuns& runs, NanRule nan) {
  int64_t overflowed = 0;
  const auto change = [&](VF x) HWY_ATTR {
    if (kCounts) overflowed += CountOverflowed(x, nan);
    return nan == NanRule::kKeep ? x : NanToInfinity(x);
  };
  for (int64_t run = 0; run < runs.runs; ++run) {
    const auto* from = reinterpret_cast<const float*>(runs.from + run * runs.from_step);
    auto* to = reinterpret_cast<Half*>(runs.to + run * runs.to_step);
    const int64_t count = runs.count;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) StoreHalf(change(hn::LoadU(DF(), from + i)), to + i);
    if (i < count) StoreHalfN(change(LoadFloatN(from + i, count - i)), to + i, count - i);
  }
  return overflowed;
}

int64_t FloatRunsToHalf(const ConvertedRuns& runs, NanRule nan, bool counts) {
  return counts ? NarrowRuns<true>(runs, nan) : NarrowRuns<false>(runs, nan);
}

template <bool kCounts>
HWY_INLINE int64_t WidenRuns(const ConvertedRuns& runs) {
  int64_t not_finite = 0;
  const auto widen = [&](VH halves) HWY_ATTR {
    if (kCounts) not_finite += CountNotFinite(halves);
    return Widen(halves);
  };
  for (int64_t run = 0; run < runs.runs; ++run) {
    const auto* from = reinterpret_cast<const Half*>(runs.from + run * runs.from_step);
    auto* to = reinterpret_cast<float*>(runs.to + run * runs.to_step);
    const int64_t count = runs.count;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) hn::StoreU(widen(LoadBits(from + i)), DF(), to + i);
    if (i < count) StoreFloatN(widen(LoadBitsN(from + i, count - i)), to + i, count - i);
  }
  return not_finite;
}

int64_t HalfRunsToFloat(const ConvertedRuns& runs, bool counts) {
  return counts ? WidenRuns<true>(runs) : WidenRuns<false>(runs);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(FloatRunsToHalf);
HWY_EXPORT(HalfRunsToFloat);

namespace {

// One run.
ConvertedRuns RunOf(const void* from, void* to, int64_t count) {
  return {.from = static_cast<const char*>(from), .to = static_cast<char*>(to), .count = count};
}

}  // namespace

void FloatToHalf(absl::Span<const float> from, absl::Span<Half> to, NanRule nan) {
  assert(from.size() == to.size());
  ParallelFor(from.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(FloatRunsToHalf)
    (RunOf(from.data() + begin, to.data() + begin, end - begin), nan, false);
  });
}

void HalfToFloat(absl::Span<const Half> from, absl::Span<float> to) {
  assert(from.size() == to.size());
  ParallelFor(from.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(HalfRunsToFloat)
    (RunOf(from.data() + begin, to.data() + begin, end - begin), false);
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

// Of other types than float, which has vectors.
void RunToHalf(Element element, const char* from, char* to, int64_t count, NanRule nan) {
  switch (element) {
    case Element::kHalf:
      if (nan == NanRule::kToInfinity) return ToHalves<Half>(from, to, count, nan);
      CopyBytes(from, to, count * static_cast<int64_t>(sizeof(Half)));
      return;
    case Element::kFloat:
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

// To other types than float.
void RunFromHalf(Element element, const char* from, char* to, int64_t count) {
  switch (element) {
    case Element::kHalf:
      CopyBytes(from, to, count * static_cast<int64_t>(sizeof(Half)));
      return;
    case Element::kFloat:
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
  CopyBytes(from, to, count * SizeOf(from_element));
}

// 16-bit elements whose magnitude is at least `low` and below `high`. Without branches, so that the
// loop is vectorized.
int64_t CountBetween(const char* data, int64_t count, uint32_t low, uint32_t high) {
  constexpr uint16_t kMagnitude = 0x7fff;
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
    found += static_cast<uint32_t>(bits & kMagnitude) - low < high - low ? 1 : 0;
  }
  return found;
}

// What a Tally counts, of types that are converted by ConvertRun().
int64_t CountOf(Element from_element, const char* from, Element to_element, int64_t count,
                NanRule nan) {
  if (from_element == Element::kBFloat16 && to_element == Element::kHalf) {
    const int64_t nans =
        nan == NanRule::kKeep ? 0 : CountBetween(from, count, 0x7f81, uint32_t{1} << 15);
    return nans + CountBetween(from, count, 0x4780, 0x7f80);  // 65536 is too large, 65280 is not
  }
  const bool keeps = from_element == Element::kHalf &&
                     (to_element == Element::kHalf || to_element == Element::kBFloat16);
  return keeps ? CountBetween(from, count, 0x7c00, uint32_t{1} << 15) : 0;
}

// Returns what a Tally counts, or 0.
int64_t ConvertRuns(Element from_element, Element to_element, const ConvertedRuns& runs,
                    NanRule nan, bool counts) {
  if (from_element == Element::kFloat && to_element == Element::kHalf) {
    return HWY_DYNAMIC_DISPATCH(FloatRunsToHalf)(runs, nan, counts);
  }
  if (from_element == Element::kHalf && to_element == Element::kFloat) {
    return HWY_DYNAMIC_DISPATCH(HalfRunsToFloat)(runs, counts);
  }
  if (from_element == to_element && nan == NanRule::kKeep && !counts) {
    const int64_t bytes = runs.count * SizeOf(from_element);
    for (int64_t run = 0; run < runs.runs; ++run) {
      CopyBytes(runs.from + run * runs.from_step, runs.to + run * runs.to_step, bytes);
    }
    return 0;
  }
  int64_t counted = 0;
  for (int64_t run = 0; run < runs.runs; ++run) {
    const char* from = runs.from + run * runs.from_step;
    ConvertRun(from_element, from, to_element, runs.to + run * runs.to_step, runs.count, nan);
    if (counts) counted += CountOf(from_element, from, to_element, runs.count, nan);
  }
  return counted;
}

// The tally of several threads.
class SharedTally {
 public:
  SharedTally(Element from_element, Tally* tally)
      : from_half_(from_element == Element::kHalf), tally_(tally) {}
  ~SharedTally() {
    if (tally_ != nullptr) (from_half_ ? tally_->not_finite : tally_->overflowed) += counted_;
  }

  bool counts() const { return tally_ != nullptr; }
  void Add(int64_t counted) {
    if (counted > 0) counted_.fetch_add(counted, std::memory_order_relaxed);
  }

 private:
  const bool from_half_;
  Tally* const tally_;
  std::atomic<int64_t> counted_{0};
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
  Extents outer = extents;
  std::fill(outer.begin() + first_axis, outer.end(), 1);
  const LoopNest<2> nest(outer, {from_layout.byte_strides, to_layout.byte_strides});
  SharedTally shared(from_layout.element, tally);
  const auto convert = [&](int64_t from_offset, int64_t to_offset, int64_t runs) {
    shared.Add(ConvertRuns(from_layout.element, to_layout.element,
                           {.from = static_cast<const char*>(from) + from_offset,
                            .to = static_cast<char*>(to) + to_offset,
                            .from_step = nest.row_stride(0),
                            .to_step = nest.row_stride(1),
                            .runs = runs,
                            .count = run},
                           nan, shared.counts()));
  };
  if (nest.rows() == 1) {
    return ParallelForItems(nest.row_size(), run, [&](int64_t begin, int64_t end) {
      convert(begin * nest.row_stride(0), begin * nest.row_stride(1), end - begin);
    });
  }
  ParallelForItems(nest.rows(), nest.row_size() * run, [&](int64_t begin, int64_t end) {
    nest.ForRows(begin, end,
                 [&](const std::array<int64_t, 2>& at) { convert(at[0], at[1], nest.row_size()); });
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
  SharedTally shared(from_element, tally);
  ParallelFor(count, kElementGrain, [&](int64_t begin, int64_t end) {
    const char* source = static_cast<const char*>(from) + begin * SizeOf(from_element);
    char* target = static_cast<char*>(to) + begin * SizeOf(to_element);
    for (int64_t done = begin; done < end; done += kElementGrain) {  // parts that stay in the cache
      const int64_t part = std::min<int64_t>(kElementGrain, end - done);
      shared.Add(
          ConvertRuns(from_element, to_element, RunOf(source, target, part), nan, shared.counts()));
      source += part * SizeOf(from_element);
      target += part * SizeOf(to_element);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
