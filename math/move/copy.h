// math/move/copy.h: copies blocks of Halfs: slice, concat, pad, broadcast, tile.
//
//   CopyBlock({1, 1, 64, 8, 8}, x + offset, x_strides, y, y_strides);    // slice or concat
//   CopyBlock(y_extents, x, {0, 0, 1, 0, 0}, y, DenseStrides(y_extents));  // broadcast along C
//   Pad(x_extents, before, after, PadMode::kConstant, kHalfZero, x_span, y_span);
//
// Bits are copied unchanged. Runs that are contiguous in both arrays are copied at once.
#ifndef ANEMONE_MATH_MOVE_COPY_H_
#define ANEMONE_MATH_MOVE_COPY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// to[sum i * to_strides] = from[sum i * from_strides] for every index i below `extents`, which may
// be 0. Source strides may be 0 or negative. Destinations must be distinct. Source and destination
// must not overlap.
void CopyBlock(const Extents& extents, const Half* from, const Strides& from_strides, Half* to,
               const Strides& to_strides);

// out[i] = in[starts + i * steps]. No step may be 0; every index must be inside `in`.
void Slice(const Extents& in_extents, const Extents& starts, const Extents& steps,
           const Extents& out_extents, absl::Span<const Half> in, absl::Span<Half> out);

// Writes `in` into `out` at `offset` along `axis`. To concatenate, call it once per input.
void Insert(const Extents& in_extents, int axis, int64_t offset, const Extents& out_extents,
            absl::Span<const Half> in, absl::Span<Half> out);

// Repeats `in` along each axis where its extent is 1. The other extents must equal those of `out`.
void Broadcast(const Extents& in_extents, const Extents& out_extents, absl::Span<const Half> in,
               absl::Span<Half> out);

// out[i] = in[i mod in_extents], where the extents of `out` are in_extents * repeats.
void Tile(const Extents& in_extents, const Extents& repeats, absl::Span<const Half> in,
          absl::Span<Half> out);

enum class PadMode : uint8_t {
  kConstant,
  kEdge,     // repeats the border element
  kReflect,  // mirrors without repeating the border element; pads must be below the extent
  kWrap,     // continues from the other side
};

// With kConstant, `before` and `after` may be negative, which removes elements.
void Pad(const Extents& in_extents, const Extents& before, const Extents& after, PadMode mode,
         Half value, absl::Span<const Half> in, absl::Span<Half> out);

void Fill(Half value, absl::Span<Half> out);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_COPY_H_
