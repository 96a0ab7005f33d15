// engine/software/fusion.h: which units run as one, so that what passes between them stays in the
// nearest cache: a unit, then those that change its result element by element.
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

// Units by number, each but the last read by the next one alone, whose output has its dims. A chain
// runs when its last unit would: by then every operand is there.
using Chain = std::vector<int>;

// Every unit that is no view stands in one chain. Without `fuse` each stands alone.
std::vector<Chain> FuseUnits(const Network& network, bool fuse);

// A unit with what it reads and writes. Inside a chain all write to the same place, and each but
// the first reads it from there.
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
