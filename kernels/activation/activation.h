// kernels/activation/activation.h: for lowerings: activation functions that need
// several units.
#ifndef ANEMONE_KERNELS_ACTIVATION_ACTIVATION_H_
#define ANEMONE_KERNELS_ACTIVATION_ACTIVATION_H_

#include "kernels/lowering.h"

namespace anemone {

// clamp(x * scale + bias, 0, 1), composed as in netplist.md.
Operand HardSigmoid(NetworkBuilder& c, Operand x, double scale, double bias);

// x * clamp(x / 6 + 0.5, 0, 1). The error of the clamped factor is at most one ulp, 2^-11.
Operand HardSwish(NetworkBuilder& c, const Operand& x);

// ln(1 + exp(x)), computed as max(x, 0) - ln(sigmoid(|x|)), which does not overflow. The engine's
// Softplus mode returns 0 for x above 10.4 (numerics.json ew-softplus). The absolute error is below
// 1e-3.
Operand Softplus(NetworkBuilder& c, Operand x);

// x / (1 + |x|).
Operand Softsign(NetworkBuilder& c, const Operand& x);

// x * (x > alpha), composed as in netplist.md.
Operand ThresholdedRelu(NetworkBuilder& c, const Operand& x, float alpha);

// max(x, 0) + slope * min(x, 0). `slopes` are broadcast to x. The engine's PReLU mode computes the
// same numbers, but its netplist form is not known.
Operand PRelu(NetworkBuilder& c, Operand x, const Operand& slopes);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ACTIVATION_ACTIVATION_H_
