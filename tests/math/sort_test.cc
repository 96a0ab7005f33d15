#include "math/reduce/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

// Lines of several lengths, with many equal elements: all of them or the first ones, in both
// orders, and with either of two equal elements first.
TEST(Sort, LinesOfAnyLength) {
  for (int64_t size : {1, 2, 31, 64, 100, 300, 2500}) {
    std::vector<Half> x = Numbers(3 * size);
    for (Half& value : x) value = ToHalf(std::round(ToFloat(value) * 40));
    for (int64_t count : {size, (size + 1) / 2, (size + 7) / 8}) {
      for (const bool descending : {false, true}) {
        for (const bool last_first : {false, true}) {
          std::vector<Half> values(3 * count), indices(3 * count);
          const int64_t lanes[] = {0};
          SortSpec spec{
              .lanes = lanes, .descending = descending, .count = count, .last_first = last_first};
          Sort(spec, {1, 1, 1, 3, size}, x, absl::MakeSpan(values));
          spec.indices = true;
          Sort(spec, {1, 1, 1, 3, size}, x, absl::MakeSpan(indices));
          for (int64_t line = 0; line < 3; ++line) {
            std::vector<int64_t> order(size);
            std::iota(order.begin(), order.end(), 0);
            if (last_first) std::reverse(order.begin(), order.end());
            const auto at = [&](int64_t i) { return ToFloat(x[line * size + i]); };
            std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
              return descending ? at(a) > at(b) : at(a) < at(b);
            });
            for (int64_t k = 0; k < count; ++k) {
              ASSERT_EQ(ToFloat(values[line * count + k]), at(order[k]));
              if (size <= 2048) {  // else fp16 does not have every index
                ASSERT_EQ(ToFloat(indices[line * count + k]), static_cast<float>(order[k]));
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace anemone::math
