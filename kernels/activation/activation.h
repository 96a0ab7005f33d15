// kernels/activation/activation.h: activations that are several units, for lowerings.
#ifndef ANEMONE_KERNELS_ACTIVATION_ACTIVATION_H_
#define ANEMONE_KERNELS_ACTIVATION_ACTIVATION_H_

#include "kernels/lowering.h"

namespace anemone {

// clamp(x * scale + bias, 0, 1), as netplist.md composes it.
Operand HardSigmoid(NetworkBuilder& c, Operand x, double scale, double bias);

// x * clamp(x / 6 + 0.5, 0, 1): the gate is within an ulp, which is 2^-11.
Operand HardSwish(NetworkBuilder& c, const Operand& x);

// max(x, 0) - ln(sigmoid(|x|)): nothing overflows, where the engine's own log(1 + exp(x)) falls to
// 0 from 10.4 on (numerics.json ew-softplus). Absolute error below 1e-3.
Operand Softplus(NetworkBuilder& c, Operand x);

// x / (1 + |x|).
Operand Softsign(NetworkBuilder& c, const Operand& x);

// x * (x > alpha), as netplist.md composes it.
Operand ThresholdedRelu(NetworkBuilder& c, const Operand& x, float alpha);

// max(x, 0) + slope * min(x, 0), the same numbers as the engine's own mode, whose netplist form is
// not known. `slopes` are repeated to x.
Operand PRelu(NetworkBuilder& c, Operand x, const Operand& slopes);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ACTIVATION_ACTIVATION_H_
