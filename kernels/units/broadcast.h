// kernels/units/broadcast.h: for lowerings: repeats elements along axes.
#ifndef ANEMONE_KERNELS_UNITS_BROADCAST_H_
#define ANEMONE_KERNELS_UNITS_BROADCAST_H_

#include "kernels/lowering.h"

namespace anemone {

// `x` broadcast to `dims`: every axis either has the extent of `dims` already or has extent 1 and
// is repeated. No unit is added if `x` has these dims already.
Operand Broadcasted(NetworkBuilder& c, const Operand& x, const Dims& dims);

// The elements of `x` along `axis`, each repeated `times` times: element by element (a, a, b, b) if
// `each`, otherwise as a whole row (a, b, a, b). A Broadcast between two Reshapes, which is exact
// on every target.
Operand Repeated(NetworkBuilder& c, const Operand& x, Axis axis, int64_t times, bool each);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_BROADCAST_H_
