// The longest common subsequence, compared with the quadratic algorithm on random lists.
#include "partitioner/align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/cpu_seconds.h"

namespace anemone {
namespace {

using Texts = std::vector<std::string>;

size_t LongestByTable(const Texts& a, const Texts& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      best[i + 1][j + 1] = a[i] == b[j] ? best[i][j] + 1 : std::max(best[i][j + 1], best[i + 1][j]);
    }
  }
  return best[a.size()][b.size()];
}

Texts RandomTexts(std::mt19937& random) {
  Texts texts(random() % 12);
  for (std::string& text : texts) text = std::string(1, static_cast<char>('a' + random() % 3));
  return texts;
}

TEST(Aligned, FindsTheLongestCommonSubsequence) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const Texts a = RandomTexts(random), b = RandomTexts(random);
    const auto pairs = Aligned(a, b);
    ASSERT_EQ(pairs.size(), LongestByTable(a, b));
    for (size_t p = 0; p < pairs.size(); ++p) {
      ASSERT_EQ(a[pairs[p].first], b[pairs[p].second]);
      if (p == 0) continue;
      ASSERT_LT(pairs[p - 1].first, pairs[p].first);
      ASSERT_LT(pairs[p - 1].second, pairs[p].second);
    }
  }
}

TEST(Aligned, TakesLinearTimeForOneInsertion) {
  const auto seconds = [](int count) {
    Texts a;
    for (int i = 0; i < count; ++i) a.push_back(std::to_string(i));
    Texts b = a;
    b.insert(b.begin() + count / 2, "new");
    a.insert(a.begin() + count / 3, "old");
    return CpuSeconds([&] { EXPECT_EQ(Aligned(a, b).size(), count); });
  };
  EXPECT_LT(seconds(1'000'000), seconds(100'000) * kAtMostLinear);
}

TEST(Aligned, GivesUpOnListsThatShareNothing) {
  Texts a, b;
  for (int i = 0; i < 20'000; ++i)
    a.push_back(std::to_string(i)), b.push_back(std::to_string(-i - 1));
  a.insert(a.begin(), "first");
  b.insert(b.begin(), "first");
  EXPECT_EQ(Aligned(a, b).size(), 1);
}

}  // namespace
}  // namespace anemone
