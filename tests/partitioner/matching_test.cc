#include "partitioner/matching.h"

#include "gtest/gtest.h"

namespace anemone {
namespace {

using Texts = std::vector<std::string>;

TEST(Matching, PairsInOrderThenByUniqueKeys) {
  const Texts a = {"x", "y", "z", "", "w", "w"}, b = {"z", "x", "y", "", "w"};
  Matching matching(a.size(), b.size());
  matching.InOrder(a, b);
  EXPECT_EQ(matching.pairs(), 3u);  // x, y and one w; z is not in order
  EXPECT_EQ(matching.of_a(0), 1);
  EXPECT_EQ(matching.of_a(1), 2);
  EXPECT_EQ(matching.of_a(2), Matching::kUnmatched);
  matching.ByUniqueKey(a, b);
  EXPECT_EQ(matching.of_a(2), 0);
  EXPECT_EQ(matching.of_b(0), 2);
  EXPECT_EQ(matching.of_a(3), Matching::kUnmatched);  // without a key
  EXPECT_EQ(matching.pairs(), 4u);
}

TEST(Matching, AKeyOfTwoItemsIsNotUnique) {
  const Texts a = {"p", "x", "x"}, b = {"x", "q"};
  Matching matching(a.size(), b.size());
  matching.ByUniqueKey(a, b);
  EXPECT_EQ(matching.pairs(), 0u);
  matching.Pair(1, 0);
  EXPECT_EQ(matching.of_b(0), 1);
  matching.InOrder(a, b);
  EXPECT_EQ(matching.pairs(), 1u);
}

}  // namespace
}  // namespace anemone
