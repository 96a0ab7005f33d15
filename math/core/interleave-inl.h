// math/core/interleave-inl.h: interleaves and separates runs of Halfs, and transposes tiles of a
// matrix in registers. Internal.
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

// Transposes at most 8x8 Halfs: to[j * to_step + i] = row(i)[j] for i < rows, j < columns. Touches
// no other memory.
template <class Row>
HWY_INLINE void TransposeBlock(const Row& row, int64_t rows, int64_t columns, Half* to,
                               int64_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * to_step + i] = row(i)[j];
  }
#else
  const hn::FixedTag<uint16_t, 8> d;
  hn::Vec<decltype(d)> lines[8], next[8];
  for (int i = 0; i < 8; ++i) {
    lines[i] = hn::Zero(d);
    if (i >= rows) continue;
    lines[i] = columns == 8 ? hn::LoadU(d, reinterpret_cast<const uint16_t*>(row(i)))
                            : LoadFirstBits(d, row(i), columns);
  }
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = hn::InterleaveLower(d, lines[i], lines[i + 4]);
      next[2 * i + 1] = hn::InterleaveUpper(d, lines[i], lines[i + 4]);
    }
    for (int i = 0; i < 8; ++i) lines[i] = next[i];
  }
  for (int i = 0; i < 8; ++i) {
    if (i >= columns) break;
    if (rows == 8) {
      hn::StoreU(lines[i], d, reinterpret_cast<uint16_t*>(to + i * to_step));
    } else {
      StoreFirstBits(d, lines[i], to + i * to_step, rows);
    }
  }
#endif
}

// The same for any number of rows and columns. Whole blocks overlap at the ends, so that most
// elements are in one.
template <class Row>
HWY_INLINE void TransposeTile(const Row& row, int64_t rows, int64_t columns, Half* to,
                              int64_t to_step) {
  for (int64_t i = 0; i < rows; i += 8) {
    const int64_t first = rows < 8 ? 0 : HWY_MIN(i, rows - 8);
    for (int64_t j = 0; j < columns; j += 8) {
      const int64_t left = columns < 8 ? 0 : HWY_MIN(j, columns - 8);
      const auto line = [&](int64_t k) HWY_ATTR { return row(first + k) + left; };
      Half* at = to + left * to_step + first;
      if (rows >= 8 && columns >= 8) {
        TransposeBlock(line, 8, 8, at, to_step);
      } else {
        TransposeBlock(line, HWY_MIN(rows, 8), HWY_MIN(columns, 8), at, to_step);
      }
    }
  }
}

// Calls body(d, j) for blocks of Lanes(d) elements at j, first of long and then of short vectors,
// and returns how many elements are in blocks.
template <class Body>
HWY_INLINE int64_t ForVectorBlocks(int64_t count, const Body& body) {
  int64_t j = 0;
  const hn::ScalableTag<uint16_t> all;
  for (; j + static_cast<int64_t>(hn::Lanes(all)) <= count; j += hn::Lanes(all)) body(all, j);
  const hn::CappedTag<uint16_t, 8> few;
  for (; j + static_cast<int64_t>(hn::Lanes(few)) <= count; j += hn::Lanes(few)) body(few, j);
  return j;
}

// Runs that one instruction interleaves.
constexpr bool AreFewRuns(int64_t parts) { return parts >= 2 && parts <= 4; }

// Interleaves `parts` runs of `count` that are `step` apart:
// to[j * parts + p] = from[p * step + j].
HWY_INLINE void InterleaveRuns(const Half* from, int64_t step, int64_t parts, int64_t count,
                               Half* to) {
  if (parts == 1) {
    std::copy_n(from, count, to);
    return;
  }
  const auto interleave = [&](auto d, int64_t j) HWY_ATTR {
    const auto run = [&](int64_t part) HWY_ATTR {
      return hn::LoadU(d, reinterpret_cast<const uint16_t*>(from + part * step + j));
    };
    auto* const at = reinterpret_cast<uint16_t*>(to + j * parts);
    if (parts == 2) return hn::StoreInterleaved2(run(0), run(1), d, at);
    if (parts == 3) return hn::StoreInterleaved3(run(0), run(1), run(2), d, at);
    hn::StoreInterleaved4(run(0), run(1), run(2), run(3), d, at);
  };
  const int64_t j = AreFewRuns(parts) ? ForVectorBlocks(count, interleave) : 0;
  TransposeTile([&](int64_t p) HWY_ATTR { return from + p * step + j; }, parts, count - j,
                to + j * parts, parts);
}

// The inverse: to[p * step + j] = from[j * parts + p].
HWY_INLINE void SeparateRuns(const Half* from, int64_t parts, int64_t count, Half* to,
                             int64_t step) {
  const auto separate = [&](auto d, int64_t j) HWY_ATTR {
    hn::Vec<decltype(d)> run[4];
    const auto* at = reinterpret_cast<const uint16_t*>(from + j * parts);
    if (parts == 2) {
      hn::LoadInterleaved2(d, at, run[0], run[1]);
    } else if (parts == 3) {
      hn::LoadInterleaved3(d, at, run[0], run[1], run[2]);
    } else {
      hn::LoadInterleaved4(d, at, run[0], run[1], run[2], run[3]);
    }
    for (int64_t p = 0; p < parts; ++p) {
      hn::StoreU(run[p], d, reinterpret_cast<uint16_t*>(to + p * step + j));
    }
  };
  const int64_t j = AreFewRuns(parts) ? ForVectorBlocks(count, separate) : 0;
  TransposeTile([&](int64_t i) HWY_ATTR { return from + (j + i) * parts; }, count - j, parts,
                to + j, step);
}

// Transposes 8x8 Halfs. Rows are `from_step` and `to_step` apart.
HWY_INLINE void TransposeHalves(const Half* from, int64_t from_step, Half* to, int64_t to_step) {
  TransposeBlock([&](int64_t i) HWY_ATTR { return from + i * from_step; }, 8, 8, to, to_step);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
