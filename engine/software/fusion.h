// engine/software/fusion.h: which units run as one, so that what passes between them stays in the
// nearest cache: a unit, then those that go on from its result element by element.
//
//   for (const Chain& chain : FuseUnits(network)) ...   // in the order in which they run
//   RunChain(calls);                                    // the chain's units with their operands
#ifndef ANEMONE_ENGINE_SOFTWARE_FUSION_H_
#define ANEMONE_ENGINE_SOFTWARE_FUSION_H_

#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/network.h"
#include "engine/unit_kind.h"

namespace anemone {

// A unit of a chain writes in the place of unit `place`: its own, or that of a later one of the
// chain, which alone reads it and changes it there.
struct Link {
  int unit, place;
};
// All outputs have the same dims. A chain runs when its last unit would: by then every operand is
// there, and none that another chain needs before.
using Chain = std::vector<Link>;

// Every unit that is no view stands in one chain. Without `fuse` each stands alone.
std::vector<Chain> FuseUnits(const Network& network, bool fuse);

// A unit with what it reads and writes.
struct UnitCall {
  const Unit* unit = nullptr;
  const void* prepared = nullptr;
  absl::InlinedVector<ConstView, 4> in;
  View out;
};

// To the same bits as one after the other.
void RunChain(absl::Span<const UnitCall> calls);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_FUSION_H_
