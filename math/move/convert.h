// math/move/convert.h: converts arrays between Half and other types, dense or strided.
//
//   FloatToHalf(values, halves, NanRule::kToInfinity);   // as at an input port of the engine
//   HalfToFloat(halves, values);                         // exact
//   // A dense float tensor into a surface whose rows are 64 bytes apart:
//   const Extents e = {1, 1, 3, 5, 7};
//   ConvertStrided(e, tensor, DenseLayout(Element::kFloat, e),
//                  surface, {Element::kHalf, {960, 960, 320, 64, 2}}, NanRule::kToInfinity);
//
// Rounding is ties-to-even; overflow gives an infinity. Large arrays are divided among the threads
// of the caller's oneTBB arena; results do not depend on the division.
#ifndef ANEMONE_MATH_MOVE_CONVERT_H_
#define ANEMONE_MATH_MOVE_CONVERT_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// What a NaN becomes when converted to Half. The engine has no NaN internally: at a port every NaN,
// of any sign and payload, becomes +infinity (numerics_notes.md section 1).
enum class NanRule { kKeep, kToInfinity };

// Both spans must have the same size and must not overlap.
void FloatToHalf(absl::Span<const float> from, absl::Span<Half> to, NanRule nan = NanRule::kKeep);
void HalfToFloat(absl::Span<const Half> from, absl::Span<float> to);

// A function that writes elements [first, first + to.size()) of a constant to `to`. With it a
// weight can be packed from any stored form (mapped file, another type, a fill) without a second
// copy in memory.
using HalfReader = absl::FunctionRef<void(int64_t first, absl::Span<Half> to)>;

// A HalfReader of values in memory.
inline auto ReaderOf(absl::Span<const Half> values) {
  return [values](int64_t first, absl::Span<Half> to) {
    std::copy_n(values.data() + first, to.size(), to.data());
  };
}

enum class Element : uint8_t {
  kHalf,
  kFloat,
  kDouble,
  kBFloat16,
  kBool,  // one byte; converting to bool gives 1 for every nonzero value
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

// The element type and strides, in bytes, of an array. byte_strides[kAxisW] must be SizeOf(element)
// unless the extent of W is 1. The data need not be aligned to its type.
struct Layout {
  Element element = Element::kHalf;
  std::array<int64_t, kRank> byte_strides{};
};

Layout DenseLayout(Element element, const Extents& extents);

// Converts an array of `extents`. One of the two element types must be kHalf, or both the same. To
// integers, a Half is rounded ties-to-even and saturated, and a NaN becomes 0. From integers, there
// is one rounding. `from` and `to` must not overlap.
void ConvertStrided(const Extents& extents, const void* from, const Layout& from_layout, void* to,
                    const Layout& to_layout, NanRule nan = NanRule::kKeep);

// The same for `count` contiguous elements.
void Convert(int64_t count, Element from_element, const void* from, Element to_element, void* to,
             NanRule nan = NanRule::kKeep);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_CONVERT_H_
