// math/move/copy-inl.h: copies planes of short rows. Internal.
#if defined(ANEMONE_MATH_MOVE_COPY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_MOVE_COPY_INL_H_
#undef ANEMONE_MATH_MOVE_COPY_INL_H_
#else
#define ANEMONE_MATH_MOVE_COPY_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "math/core/interleave-inl.h"
#include "math/move/copy_bytes.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Rows of fewer elements are better handled many at once.
inline constexpr int64_t kShortRow = 32;

// to[i] = from[2 * i] for the first elements of `count`. Returns how many, which is not all: it
// reads to the next element in pairs.
inline int64_t TakeEverySecond(const Half* from, int64_t count, Half* to) {
  return ForVectorBlocks(count - 1, [&](auto d, int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> taken, skipped;
    hn::LoadInterleaved2(d, reinterpret_cast<const uint16_t*>(from + 2 * i), taken, skipped);
    hn::StoreU(taken, d, reinterpret_cast<uint16_t*>(to + i));
  });
}

inline void CopyRow(const Half* from, int64_t from_step, Half* to, int64_t to_step, int64_t count) {
  if (to_step == 1 && from_step == 1) {
    CopyBytes(from, to, count * static_cast<int64_t>(sizeof(Half)));
  } else if (to_step == 1 && from_step == 0) {
    FillHalfs(to, count, *from);
  } else {
    const bool takes = to_step == 1 && from_step == 2;
    for (int64_t i = takes ? TakeEverySecond(from, count, to) : 0; i < count; ++i) {
      to[i * to_step] = from[i * from_step];
    }
  }
}

// Repeats the first `size` elements until there are `count`.
inline void RepeatRun(Half* run, int64_t size, int64_t count) {
  constexpr int64_t kEnough = 1024;
  int64_t made = size, block = size;
  while (made < count) {
    const int64_t next = std::min(block, count - made);
    CopyBytes(run, run + made, next * static_cast<int64_t>(sizeof(Half)));
    made += next;
    if (block < kEnough) block = made;
  }
}

// The places of an array that is copied or written as `rows` rows.
struct PlaneSteps {
  int64_t row;   // from one row to the next
  int64_t step;  // from one element of a row to the next
};

// Copies `rows` rows of `size` elements.
inline void CopyPlane(const Half* from, PlaneSteps source, Half* to, PlaneSteps target,
                      int64_t rows, int64_t size) {
  const auto is_dense = [size](PlaneSteps of) { return of.step == 1 && of.row == size; };
  if (rows > 1 && size < kShortRow) {
    if (is_dense(target) && source.row == 1) {
      return InterleaveRuns(from, source.step, size, rows, to);
    }
    if (is_dense(source) && target.row == 1) {
      return SeparateRuns(from, size, rows, to, target.step);
    }
    if (is_dense(target) && source.row == 0) {
      CopyRow(from, source.step, to, 1, size);
      return RepeatRun(to, size, rows * size);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    CopyRow(from + i * source.row, source.step, to + i * target.row, target.step, size);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
