// math/core/interleave-inl.h: interleaves runs of Halfs and transposes 8x8 blocks. Internal.
#if defined(ANEMONE_MATH_CORE_INTERLEAVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CORE_INTERLEAVE_INL_H_
#undef ANEMONE_MATH_CORE_INTERLEAVE_INL_H_
#else
#define ANEMONE_MATH_CORE_INTERLEAVE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "math/core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Interleaves `parts` runs of `count` that are `step` apart:
// to[j * parts + p] = from[p * step + j].
HWY_INLINE void InterleaveRuns(const Half* from, int64_t step, int64_t parts, int64_t count,
                               Half* to) {
  if (parts == 1) {
    std::copy_n(from, count, to);
    return;
  }
  const hn::ScalableTag<uint16_t> d;
  constexpr int64_t kRun = hn::MaxLanes(d);
  const auto store = [&](const auto& run, uint16_t* at) HWY_ATTR {
    if (parts == 2) {
      hn::StoreInterleaved2(run(0), run(1), d, at);
    } else {
      hn::StoreInterleaved4(run(0), run(1), run(2), run(3), d, at);
    }
  };
  int64_t j = 0;
  if (parts == 2 || parts == 4) {
    for (; j + kRun <= count; j += kRun) {
      const auto whole = [&](int64_t part) HWY_ATTR {
        return hn::LoadU(d, reinterpret_cast<const uint16_t*>(from + part * step + j));
      };
      store(whole, reinterpret_cast<uint16_t*>(to + j * parts));
    }
    if (j == count) return;
    HWY_ALIGN uint16_t last[4 * kRun];
    const auto rest = [&](int64_t part)
                          HWY_ATTR { return LoadFirstBits(d, from + part * step + j, count - j); };
    store(rest, last);
    const int64_t left = (count - j) * parts;
    for (int64_t i = 0; i < left; i += kRun) {
      StoreFirstBits(d, hn::Load(d, last + i), to + j * parts + i, HWY_MIN(left - i, kRun));
    }
    return;
  }
  for (; j < count; ++j) {
    for (int64_t p = 0; p < parts; ++p) to[j * parts + p] = from[p * step + j];
  }
}

// Transposes 8x8 Halfs by three perfect shuffles. Rows are `from_step` and `to_step` apart.
HWY_INLINE void TransposeHalves(const Half* from, int64_t from_step, Half* to, int64_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) to[j * to_step + i] = from[i * from_step + j];
  }
#else
  const hn::FixedTag<uint16_t, 8> d;
  hn::Vec<decltype(d)> rows[8], next[8];
  for (int i = 0; i < 8; ++i) {
    rows[i] = hn::LoadU(d, reinterpret_cast<const uint16_t*>(from + i * from_step));
  }
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + 4]);
      next[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + 4]);
    }
    for (int i = 0; i < 8; ++i) rows[i] = next[i];
  }
  for (int i = 0; i < 8; ++i) {
    hn::StoreU(rows[i], d, reinterpret_cast<uint16_t*>(to + i * to_step));
  }
#endif
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
