// kernels/shared/clamps.h: clamps before softmax and layer normalization (orion.json
// clamp-activations), for the option --clamp-activations.
#ifndef ANEMONE_KERNELS_SHARED_CLAMPS_H_
#define ANEMONE_KERNELS_SHARED_CLAMPS_H_

#include "engine/network.h"

namespace anemone {

// Inserts a unit before each Softmax and LayerNormalization that limits its input to the finite
// numbers of fp16. Inputs that are constants, or that such a unit has limited, get none.
void ClampActivations(Network& network);

// Whether a unit contains a softmax whose input is not a value of the network (SDPA).
bool HidesSoftmax(const Network& network);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_CLAMPS_H_
