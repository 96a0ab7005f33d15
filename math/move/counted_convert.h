// math/move/counted_convert.h: ConvertStrided() that counts the numbers which fp16 cannot hold,
// while they are in the cache.
//
//   Tally tally;
//   ConvertStrided(extents, floats, from_layout, halves, to_layout, NanRule::kToInfinity, &tally);
//   if (tally.overflowed > 0) Warn();
#ifndef ANEMONE_MATH_MOVE_COUNTED_CONVERT_H_
#define ANEMONE_MATH_MOVE_COUNTED_CONVERT_H_

#include <cstdint>

#include "math/move/convert.h"

namespace anemone::math {

// What a conversion to or from Half met. Elements of other types than Half, float and bfloat16 are
// not counted.
struct Tally {
  // To Half: elements that became infinite: finite ones, and with NanRule::kToInfinity also NaNs.
  int64_t overflowed = 0;
  int64_t not_finite = 0;  // from Half: infinities and NaNs
};

// As in convert.h; adds to `tally`, which may be null.
void ConvertStrided(const Extents& extents, const void* from, const Layout& from_layout, void* to,
                    const Layout& to_layout, NanRule nan, Tally* tally);
void Convert(int64_t count, Element from_element, const void* from, Element to_element, void* to,
             NanRule nan, Tally* tally);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_COUNTED_CONVERT_H_
