#include "partitioner/matching.h"

#include <map>
#include <utility>

#include "partitioner/align.h"

namespace anemone {
namespace {

// The items that have no partner yet and have a key, with their keys.
struct Left {
  std::vector<int> items;
  std::vector<std::string> keys;
};

Left LeftOf(const std::vector<int>& partners, Matching::Keys keys) {
  Left left;
  for (size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] != Matching::kUnmatched || keys[i].empty()) continue;
    left.items.push_back(static_cast<int>(i));
    left.keys.push_back(keys[i]);
  }
  return left;
}

}  // namespace

void Matching::Pair(int a, int b) {
  of_a_[a] = b;
  of_b_[b] = a;
  ++pairs_;
}

void Matching::InOrder(Keys a, Keys b) {
  const Left left_a = LeftOf(of_a_, a), left_b = LeftOf(of_b_, b);
  for (const auto& [i, j] : Aligned(left_a.keys, left_b.keys)) {
    Pair(left_a.items[i], left_b.items[j]);
  }
}

void Matching::ByUniqueKey(Keys a, Keys b) {
  const Left left_a = LeftOf(of_a_, a), left_b = LeftOf(of_b_, b);
  std::map<std::string, std::pair<std::vector<int>, std::vector<int>>> found;
  for (size_t i = 0; i < left_a.items.size(); ++i) {
    found[left_a.keys[i]].first.push_back(left_a.items[i]);
  }
  for (size_t i = 0; i < left_b.items.size(); ++i) {
    found[left_b.keys[i]].second.push_back(left_b.items[i]);
  }
  for (const auto& [key, items] : found) {
    if (items.first.size() == 1 && items.second.size() == 1) {
      Pair(items.first.front(), items.second.front());
    }
  }
}

}  // namespace anemone
