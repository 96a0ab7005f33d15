#include "base/transpose_bytes.h"

#include <algorithm>
#include <cstring>

namespace anemone {
namespace {

constexpr int64_t kBlock = 16;
using Line = uint8_t __attribute__((vector_size(kBlock)));

// Transposes 16x16 bytes: four times, lines are interleaved with those of the other half. Loops are
// unrolled, so that lines stay in registers.
void TransposeBlock(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step) {
  Line lines[kBlock], next[kBlock];
#pragma GCC unroll 16
  for (int i = 0; i < kBlock; ++i) std::memcpy(&lines[i], from + i * from_step, kBlock);
#pragma GCC unroll 4
  for (int step = 0; step < 4; ++step) {
#pragma GCC unroll 8
    for (int i = 0; i < kBlock / 2; ++i) {
      const Line &a = lines[i], &b = lines[i + kBlock / 2];
      next[2 * i] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                14, 30, 15, 31);
    }
    std::copy(next, next + kBlock, lines);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kBlock; ++i) std::memcpy(to + i * to_step, &lines[i], kBlock);
}

}  // namespace

void TransposeBytes(const std::byte* from, int64_t rows, int64_t columns, std::byte* to) {
  const auto transpose = [&](int64_t i, int64_t j) {
    if (i + kBlock <= rows && j + kBlock <= columns) {
      return TransposeBlock(from + i * columns + j, columns, to + j * rows + i, rows);
    }
    for (int64_t k = i; k < std::min(i + kBlock, rows); ++k) {
      for (int64_t l = j; l < std::min(j + kBlock, columns); ++l) {
        to[l * rows + k] = from[k * columns + l];
      }
    }
  };
  // Strips of one cache line of each row, whose columns are filled from the first row to the last.
  constexpr int64_t kStrip = 64;
  for (int64_t left = 0; left < columns; left += kStrip) {
    for (int64_t i = 0; i < rows; i += kBlock) {
      for (int64_t j = left; j < std::min(left + kStrip, columns); j += kBlock) transpose(i, j);
    }
  }
}

}  // namespace anemone
