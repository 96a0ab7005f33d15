#include "partitioner/align.h"

#include <algorithm>

namespace anemone {
namespace {

constexpr int kMostChanges = 2000;

// Myers' greedy algorithm. On diagonal k = x - y, `furthest` is the largest x that d changes reach.
std::vector<std::pair<int, int>> ByFewestChanges(absl::Span<const std::string> a,
                                                 absl::Span<const std::string> b) {
  const int n = static_cast<int>(a.size()), m = static_cast<int>(b.size());
  const int most = std::min(n + m, kMostChanges);
  std::vector<int> furthest(2 * static_cast<size_t>(most) + 3);
  std::vector<std::vector<int>> rounds;  // `furthest` from -d to d, before each round
  const auto at = [&](int k) -> int& { return furthest[k + most + 1]; };
  // Whether the path to diagonal k comes from the diagonal above, by a step in b.
  const auto comes_from_above = [](int d, int k, int below, int above) {
    return k == -d || (k != d && below < above);
  };
  for (int d = 0; d <= most; ++d) {
    rounds.emplace_back(furthest.begin() + (most - d), furthest.begin() + (most + d + 3));
    for (int k = -d; k <= d; k += 2) {
      int x = comes_from_above(d, k, at(k - 1), at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      while (x < n && x - k < m && x - k >= 0 && a[x] == b[x - k]) ++x;
      at(k) = x;
      if (x < n || x - k < m) continue;
      // Walk back.
      std::vector<std::pair<int, int>> pairs;
      for (int step = d, diagonal = k, end = n; step >= 0; --step) {
        const std::vector<int>& before = rounds[step];  // from diagonal -step - 1
        const auto was = [&](int j) { return before[j + step + 1]; };
        const bool from_above =
            comes_from_above(step, diagonal, was(diagonal - 1), was(diagonal + 1));
        const int previous = from_above ? diagonal + 1 : diagonal - 1;
        const int begin = step == 0 ? 0 : from_above ? was(previous) : was(previous) + 1;
        for (int i = end - 1; i >= begin; --i) pairs.emplace_back(i, i - diagonal);
        end = step == 0 ? 0 : was(previous);
        diagonal = previous;
      }
      std::reverse(pairs.begin(), pairs.end());
      return pairs;
    }
  }
  return {};
}

}  // namespace

std::vector<std::pair<int, int>> Aligned(absl::Span<const std::string> a,
                                         absl::Span<const std::string> b) {
  size_t first = 0, last = 0;
  while (first < std::min(a.size(), b.size()) && a[first] == b[first]) ++first;
  while (last < std::min(a.size(), b.size()) - first &&
         a[a.size() - 1 - last] == b[b.size() - 1 - last]) {
    ++last;
  }
  std::vector<std::pair<int, int>> pairs;
  for (size_t i = 0; i < first; ++i) pairs.emplace_back(i, i);
  for (const auto& [i, j] : ByFewestChanges(a.subspan(first, a.size() - first - last),
                                            b.subspan(first, b.size() - first - last))) {
    pairs.emplace_back(i + static_cast<int>(first), j + static_cast<int>(first));
  }
  for (size_t i = last; i > 0; --i) pairs.emplace_back(a.size() - i, b.size() - i);
  return pairs;
}

}  // namespace anemone
