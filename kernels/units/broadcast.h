// kernels/units/broadcast.h: repeating axes of extent 1, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_BROADCAST_H_
#define ANEMONE_KERNELS_UNITS_BROADCAST_H_

#include "kernels/lowering.h"

namespace anemone {

// `x` with every axis of extent 1 repeated to that of `dims`; the other axes are those of `dims`.
// No unit if the dims are x's own.
Operand Broadcasted(NetworkBuilder& c, const Operand& x, const Dims& dims);

// x's elements along `axis`, `times` times: each in its place (a, a, b, b) if `each`, else the
// whole row (a, b, a, b). A Broadcast between Reshapes, exact on every target.
Operand Repeated(NetworkBuilder& c, const Operand& x, Axis axis, int64_t times, bool each);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_BROADCAST_H_
