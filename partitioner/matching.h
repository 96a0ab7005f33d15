// partitioner/matching.h: pairs the items of two lists, such as the nodes of two models, by texts
// that describe them. A caller uses the surest texts first: each call pairs what earlier ones left.
//
//   Matching matching(names_a.size(), names_b.size());
//   matching.InOrder(names_a, names_b);
//   matching.ByUniqueKey(names_a, names_b);
//   const int other = matching.of_a(0);  // the item of b that item 0 of a is, or kUnmatched
#ifndef ANEMONE_PARTITIONER_MATCHING_H_
#define ANEMONE_PARTITIONER_MATCHING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace anemone {

class Matching {
 public:
  static constexpr int kUnmatched = -1;
  using Keys = absl::Span<const std::string>;  // one for each item; "" is paired with nothing

  Matching(size_t a, size_t b) : of_a_(a, kUnmatched), of_b_(b, kUnmatched) {}

  // Pairs items with equal keys, where the order of both lists allows it (align.h).
  void InOrder(Keys a, Keys b);
  // Pairs items with a key that one left item of each list has, wherever they are.
  void ByUniqueKey(Keys a, Keys b);
  void Pair(int a, int b);

  int of_a(size_t a) const { return of_a_[a]; }
  int of_b(size_t b) const { return of_b_[b]; }
  size_t pairs() const { return pairs_; }

 private:
  std::vector<int> of_a_, of_b_;
  size_t pairs_ = 0;
};

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_MATCHING_H_
