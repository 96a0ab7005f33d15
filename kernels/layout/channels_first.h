// kernels/layout/channels_first.h: linear layers as 1x1 convolutions (Orion's constraint 17,
// orion.json; guide ch17 listing 17.1).
//
// A linear layer multiplies rows of K elements, which are along the width: (N, rows, 1, K). The
// engine's convolutions want them along the channels: (N, K, 1, rows). So a chain of linear layers
// and of the units between them that treat all rows alike (elementwise units, normalizations over
// K, slices, concatenations) is carried in that layout from end to end. Transpose units stand where
// the chain begins and ends, and join those that are there already (moves.h).
#ifndef ANEMONE_KERNELS_LAYOUT_CHANNELS_FIRST_H_
#define ANEMONE_KERNELS_LAYOUT_CHANNELS_FIRST_H_

#include <string>
#include <vector>

#include "engine/network.h"
#include "engine/target.h"
#include "engine/verdict.h"

namespace anemone {

// A linear layer that stays as it is, by the name of its unit, and the reason.
struct KeptLayer {
  std::string unit, why;
};

// Carries the chains of an accepted network that was cleaned up. A chain is carried if the target
// accepts all its units in the new layout, the network has no more units than before (views are not
// counted), and by the target's rates it is faster (layout_cost.h); where no rates are published,
// the number of units decides. Each chain is tried in a network of itself and the transposes around
// it. The network stays accepted and cleaned up. The units keep their names.
std::vector<KeptLayer> CarryChannelsFirst(Network& network, const Target& target, Route route);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LAYOUT_CHANNELS_FIRST_H_
