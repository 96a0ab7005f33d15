// kernels/layout/moves.h: chains of units that only change the order of elements.
#ifndef ANEMONE_KERNELS_LAYOUT_MOVES_H_
#define ANEMONE_KERNELS_LAYOUT_MOVES_H_

#include "engine/network.h"
#include "engine/target.h"
#include "engine/verdict.h"

namespace anemone {

// Joins each chain of Transpose units, with views between them, into at most one Transpose unit,
// where the chain as a whole permutes at most four axes. The number of Transpose units does not
// grow. Units that are no longer read stay; CleanUp() removes them. A new unit has the name of the
// unit that it replaces, and the views next to it have no name.
Network JoinTransposes(const Network& network, const Target& target, Route route);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LAYOUT_MOVES_H_
