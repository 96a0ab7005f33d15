// engine/repeats.h: finds units that repeat another one, such as those of the steps of an unrolled
// recurrence. What follows from a unit's parameters and shapes, such as its verdict, is computed
// once for all of them.
//
//   Repeats repeats(network);
//   for (int i = 0; i < static_cast<int>(network.units.size()); ++i) {
//     if (repeats.Of(i) >= 0) continue;  // its verdict is that of the unit before it
//   }
#ifndef ANEMONE_ENGINE_REPEATS_H_
#define ANEMONE_ENGINE_REPEATS_H_

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "engine/network.h"

namespace anemone {

// Whether units that read `a` and `b` get equal Bottoms: the same dims and formats, and the same
// constants of the network.
bool SameBottoms(const Network& network, absl::Span<const Operand> a, absl::Span<const Operand> b);

// Whether the weights are the same in memory.
bool SameWeights(const Unit& a, const Unit& b);

class Repeats {
 public:
  explicit Repeats(const Network& network) : network_(network) {}

  // The last unit before `i` of the same kind that has the same parameters (in memory: copies of a
  // unit share them), equal bottoms and an equal output; -1 if there is none. Weights may differ.
  // Must be called for every unit, in order.
  int Of(int i);

 private:
  const Network& network_;
  absl::flat_hash_map<const void*, int> by_params_;  // the last unit
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_REPEATS_H_
