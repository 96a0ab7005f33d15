// engine/loops.h: a loop is a unit that stands for many: those of all steps of a recurrence. It is
// for plans that are only run (partitioner/planner.h), whose cost then does not grow with the
// number of steps. What is judged of a loop is true of its units, and its results have their bits.
//
//   if (HasLoops(network)) {
//     ANEMONE_ASSIGN_OR_RETURN(network, Unrolled(network, target, route));
//   }
#ifndef ANEMONE_ENGINE_LOOPS_H_
#define ANEMONE_ENGINE_LOOPS_H_

#include "absl/status/statusor.h"
#include "engine/network.h"

namespace anemone {

// The type of the one kind that is a loop. Its `compose` appends the units.
inline constexpr char kLoopType[] = "Recurrence";

bool HasLoops(const Network& network);

// The network with the units of its loops. They are named after the loop: "y#3", the last one "y".
absl::StatusOr<Network> Unrolled(const Network& network, const Target& target, Route route);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_LOOPS_H_
