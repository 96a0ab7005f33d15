// engine/software/fusion.h: finds chains of units that run together, so that the values between
// them stay in the L1 cache. A chain is a unit followed by elementwise units that work on its
// result.
//
//   std::vector<Chain> chains = FuseUnits(network, views, /*fuse=*/true);  // in their order
//   RunChain(calls);  // the units of one chain, with operands
#ifndef ANEMONE_ENGINE_SOFTWARE_FUSION_H_
#define ANEMONE_ENGINE_SOFTWARE_FUSION_H_

#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/network.h"
#include "engine/software/views.h"
#include "engine/unit_kind.h"

namespace anemone {

// A unit of a chain. It writes to the memory of unit `place`: itself, or a later unit of the chain,
// which is the only reader and updates the values in place. If only units of the chain read the
// result (`is_inner`), it need not be written at all.
struct Link {
  int unit, place;
  bool is_inner = false;
};
// The units have outputs of the same dims. A chain runs at the position of its last unit: every
// operand is available by then, and no unit before that position reads a result of the chain.
using Chain = std::vector<Link>;

// Puts every unit that is not one of the views into one chain. If `fuse` is false, each unit is a
// chain.
std::vector<Chain> FuseUnits(const Network& network, const Views& views, bool fuse);

// A unit with its operands and its output.
struct UnitCall {
  const Unit* unit = nullptr;
  const void* prepared = nullptr;
  absl::InlinedVector<ConstView, 4> in;
  View out;
  bool is_inner = false;  // see Link
};

// Runs the units. The results have the same bits as if the units ran one after the other.
void RunChain(absl::Span<const UnitCall> calls);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_FUSION_H_
