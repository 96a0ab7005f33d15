// base/disjoint_sets.h: numbers in sets that are joined step by step.
//
//   DisjointSets sets(4);  // {0} {1} {2} {3}
//   sets.Join(0, 2);       // {0, 2} {1} {3}
//   const bool together = sets.Find(0) == sets.Find(2);  // true
#ifndef ANEMONE_BASE_DISJOINT_SETS_H_
#define ANEMONE_BASE_DISJOINT_SETS_H_

#include <cstddef>
#include <numeric>
#include <vector>

namespace anemone {

class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // A member that stands for the set of `i`. Shortens the way for the next call.
  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The member of `b` stands for both.
  void Join(int a, int b) { parent_[Find(a)] = Find(b); }

 private:
  std::vector<int> parent_;
};

}  // namespace anemone

#endif  // ANEMONE_BASE_DISJOINT_SETS_H_
