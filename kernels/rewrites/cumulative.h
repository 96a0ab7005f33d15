// kernels/rewrites/cumulative.h: running sums along an axis, for lowerings.
#ifndef ANEMONE_KERNELS_REWRITES_CUMULATIVE_H_
#define ANEMONE_KERNELS_REWRITES_CUMULATIVE_H_

#include "kernels/lowering.h"

namespace anemone {

// Replaces each element along `axis` by the sum of the elements up to it, by a product with one
// matrix of ones and zeros. If `exclusive`, the sum does not include the element itself; if
// `reverse`, the sum starts at the other end.
Operand RunningSums(NetworkBuilder& c, const Operand& x, Axis axis, bool exclusive = false,
                    bool reverse = false);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_REWRITES_CUMULATIVE_H_
