// math/move/copy_bytes.h: copies short rows without a call of memcpy(), which costs more than they
// do, and fills rows. Internal.
#ifndef ANEMONE_MATH_MOVE_COPY_BYTES_H_
#define ANEMONE_MATH_MOVE_COPY_BYTES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "math/core/half.h"

namespace anemone::math {

// Two pieces of kPiece bytes, which together are `bytes` long and may overlap.
template <int kPiece>
inline void CopyEnds(const char* from, char* to, int64_t bytes) {
  char first[kPiece], last[kPiece];
  std::memcpy(first, from, kPiece);
  std::memcpy(last, from + bytes - kPiece, kPiece);
  std::memcpy(to, first, kPiece);
  std::memcpy(to + bytes - kPiece, last, kPiece);
}

// std::fill_n() takes the value by reference, so that it reads it again for each element of a
// class.
inline void FillHalfs(Half* to, int64_t count, Half value) {
  std::fill_n(reinterpret_cast<uint16_t*>(to), count, value.bits);
}

// `from` and `to` must not overlap.
inline void CopyBytes(const void* from, void* to, int64_t bytes) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  if (bytes > 256) {
    std::memcpy(target, source, static_cast<size_t>(bytes));
  } else if (bytes > 64) {
    for (int64_t i = 0; i + 32 < bytes; i += 32) std::memcpy(target + i, source + i, 32);
    std::memcpy(target + bytes - 32, source + bytes - 32, 32);
  } else if (bytes >= 32) {
    CopyEnds<32>(source, target, bytes);
  } else if (bytes >= 16) {
    CopyEnds<16>(source, target, bytes);
  } else if (bytes >= 8) {
    CopyEnds<8>(source, target, bytes);
  } else if (bytes >= 4) {
    CopyEnds<4>(source, target, bytes);
  } else {
    for (int64_t i = 0; i < bytes; ++i) target[i] = source[i];
  }
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_COPY_BYTES_H_
