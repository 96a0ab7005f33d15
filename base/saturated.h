// base/saturated.h: sums and products of sizes that a model decides. Whatever is above kSaturated
// is more than any machine has, so it becomes kSaturated instead of an overflow.
//
//   const int64_t bytes = SaturatedProduct(int64_t{1} << 40, int64_t{1} << 40);  // kSaturated
#ifndef ANEMONE_BASE_SATURATED_H_
#define ANEMONE_BASE_SATURATED_H_

#include <algorithm>
#include <cstdint>

namespace anemone {

inline constexpr int64_t kSaturated = int64_t{1} << 61;  // so that two of them still have a sum

// Of numbers that are not negative.
inline int64_t SaturatedSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kSaturated : std::min(sum, kSaturated);
}
inline int64_t SaturatedProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kSaturated : std::min(product, kSaturated);
}

}  // namespace anemone

#endif  // ANEMONE_BASE_SATURATED_H_
