// math/move/convert.h: arrays of other types to Half and back, dense or strided.
//
//   FloatToHalf(values, halves, NanRule::kToInfinity);   // what an engine port does
//   HalfToFloat(halves, values);                         // exact
//   // A dense float tensor into a surface whose rows are 64 bytes apart:
//   const Extents e = {1, 1, 3, 5, 7};
//   ConvertStrided(e, tensor, DenseLayout(Element::kFloat, e),
//                  surface, {Element::kHalf, {960, 960, 320, 64, 2}}, NanRule::kToInfinity);
//
// Rounding is ties-to-even, overflow is infinity of that sign. Large arrays are split over the
// threads of the caller's oneTBB arena; results do not depend on the split.
#ifndef ANEMONE_MATH_MOVE_CONVERT_H_
#define ANEMONE_MATH_MOVE_CONVERT_H_

#include <array>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// What becomes of a NaN on its way into a Half. The engine has no NaN inside: at a port every NaN,
// whatever its sign and payload, becomes +infinity (numerics_notes.md section 1).
enum class NanRule { kKeep, kToInfinity };

// Both spans have the same size and do not overlap.
void FloatToHalf(absl::Span<const float> from, absl::Span<Half> to, NanRule nan = NanRule::kKeep);
void HalfToFloat(absl::Span<const Half> from, absl::Span<float> to);

// Writes elements [first, first + to.size()) of a constant to `to`. Lets a weight be packed from
// any stored form (mapped file, another type, a fill) without a second copy of it in memory.
using HalfReader = absl::FunctionRef<void(int64_t first, absl::Span<Half> to)>;

enum class Element : uint8_t {
  kHalf,
  kFloat,
  kDouble,
  kBFloat16,
  kBool,  // one byte; to bool: anything but zero is 1
  kUInt8,
  kInt8,
  kUInt16,
  kInt16,
  kUInt32,
  kInt32,
  kUInt64,
  kInt64,
};

int64_t SizeOf(Element element);

// An array of any type: where its elements lie, in bytes. W is contiguous: byte_strides[kAxisW]
// must be SizeOf(element) unless that extent is 1. Data need not be aligned to its type.
struct Layout {
  Element element = Element::kHalf;
  std::array<int64_t, kRank> byte_strides{};
};

Layout DenseLayout(Element element, const Extents& extents);

// Converts `extents` elements. One of the two elements is kHalf, or both are the same. A Half
// becomes an integer by rounding ties-to-even and saturating, NaN becomes 0; an integer becomes a
// Half with one rounding. `from` and `to` do not overlap.
void ConvertStrided(const Extents& extents, const void* from, const Layout& from_layout, void* to,
                    const Layout& to_layout, NanRule nan = NanRule::kKeep);

// The dense case: `count` elements, one after the other.
void Convert(int64_t count, Element from_element, const void* from, Element to_element, void* to,
             NanRule nan = NanRule::kKeep);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_CONVERT_H_
