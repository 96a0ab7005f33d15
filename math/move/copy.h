// math/move/copy.h: moving blocks without arithmetic: slice, concat, pad, repeat, tile.
//
//   CopyBlock({1, 1, 64, 8, 8}, x + offset, x_strides, y, y_strides);    // slice or concat
//   CopyBlock(y_extents, x, {0, 0, 1, 0, 0}, y, DenseStrides(y_extents));  // broadcast
//   Pad(x_extents, before, after, PadMode::kConstant, kHalfZero, x, y);
//
// Bits are moved, never changed. Runs that are contiguous on both sides move as one.
#ifndef ANEMONE_MATH_MOVE_COPY_H_
#define ANEMONE_MATH_MOVE_COPY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// to[sum i * to_strides] = from[sum i * from_strides] for every index below `extents`, of which
// some may be 0. Source strides may be 0 or negative; destinations are distinct. No overlap.
void CopyBlock(const Extents& extents, const Half* from, const Strides& from_strides, Half* to,
               const Strides& to_strides);

// out[i] = in[starts + i * steps]. Every step is not 0, every index is inside `in`.
void Slice(const Extents& in_extents, const Extents& starts, const Extents& steps,
           const Extents& out_extents, absl::Span<const Half> in, absl::Span<Half> out);

// Writes `in` into `out` at `offset` along `axis`: concatenation is one call per input.
void Insert(const Extents& in_extents, int axis, int64_t offset, const Extents& out_extents,
            absl::Span<const Half> in, absl::Span<Half> out);

// Each extent of `in` is 1 or that of `out`.
void Broadcast(const Extents& in_extents, const Extents& out_extents, absl::Span<const Half> in,
               absl::Span<Half> out);

// out_extents = in_extents * repeats, in[i mod in_extents].
void Tile(const Extents& in_extents, const Extents& repeats, absl::Span<const Half> in,
          absl::Span<Half> out);

enum class PadMode : uint8_t {
  kConstant,
  kEdge,     // repeats the border element
  kReflect,  // mirrors without the border element; pads below the extent
  kWrap,     // continues from the other side
};

// `before` and `after` may be negative (then elements are cut off) with kConstant.
void Pad(const Extents& in_extents, const Extents& before, const Extents& after, PadMode mode,
         Half value, absl::Span<const Half> in, absl::Span<Half> out);

void Fill(Half value, absl::Span<Half> out);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_COPY_H_
