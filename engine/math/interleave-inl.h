// engine/math/interleave-inl.h: runs of elements that take turns. Internal.
#if defined(ENGINE_MATH_INTERLEAVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENGINE_MATH_INTERLEAVE_INL_H_
#undef ENGINE_MATH_INTERLEAVE_INL_H_
#else
#define ENGINE_MATH_INTERLEAVE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "engine/math/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// to[j * parts + p] = from[p * step + j], for j < count: `parts` runs, `step` apart.
HWY_INLINE void InterleaveRuns(const Half* from, int64_t step, int64_t parts, int64_t count,
                               Half* to) {
  if (parts == 1) {
    std::copy_n(from, count, to);
    return;
  }
  const hn::ScalableTag<uint16_t> d;
  const int64_t lanes = hn::Lanes(d);
  const auto run = [&](int64_t part, int64_t j) HWY_ATTR {
    return hn::LoadU(d, reinterpret_cast<const uint16_t*>(from + part * step + j));
  };
  int64_t j = 0;
  for (; parts == 2 && j + lanes <= count; j += lanes) {
    hn::StoreInterleaved2(run(0, j), run(1, j), d, reinterpret_cast<uint16_t*>(to + j * parts));
  }
  for (; parts == 4 && j + lanes <= count; j += lanes) {
    hn::StoreInterleaved4(run(0, j), run(1, j), run(2, j), run(3, j), d,
                          reinterpret_cast<uint16_t*>(to + j * parts));
  }
  for (; j < count; ++j) {
    for (int64_t p = 0; p < parts; ++p) to[j * parts + p] = from[p * step + j];
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
