// kernels/rewrites/cumulative.h: running sums, for lowerings.
#ifndef ANEMONE_KERNELS_REWRITES_CUMULATIVE_H_
#define ANEMONE_KERNELS_REWRITES_CUMULATIVE_H_

#include "kernels/lowering.h"

namespace anemone {

// `x` with each element along `axis` the sum of all up to it, by one matrix of ones and zeros:
// without itself if `exclusive`, from the other end if `reverse`.
Operand RunningSums(NetworkBuilder& c, const Operand& x, Axis axis, bool exclusive = false,
                    bool reverse = false);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_REWRITES_CUMULATIVE_H_
