// kernels/activation/neuron.h: for lowerings: functions of single elements (the unit Neuron).
#ifndef ANEMONE_KERNELS_ACTIVATION_NEURON_H_
#define ANEMONE_KERNELS_ACTIVATION_NEURON_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// The modes of the Neuron unit that lowerings use (enums.json NonLinearMode). The netplist names of
// kExp, kAtan and kSoftplus are not known, so only the software engine runs them.
enum class NeuronType : uint8_t {
  kReLU,
  kClampedReLU,  // first: ReluMin, second: ReluMax
  kLeakyReLU,    // first: ReluSlope
  kELU,          // first: EluAlpha
  kSigmoidHighPrecision,
  kTanh,
  kGELU,  // the exact form, by erf
  kSwish,
  kErf,
  kSqrt,
  kRsqrt,
  kInv,
  kExp,
  kLog2,
  kSin,
  kCos,
  kAtan,
  kSign,
  kFloor,
  kCeil,
  kExp2,
  kRoundNearest,  // halves away from 0
  kSoftplus,      // MIL's softplus; returns 0 above 10.4 (numerics.json ew-softplus)
};

// Their names in a netplist.
absl::Span<const char* const> NamesOf(NeuronType);

// A Neuron unit on `x`. The parameters `first` and `second` are rounded to fp16.
Operand Activated(NetworkBuilder& c, NeuronType type, const Operand& x, float first = 0,
                  float second = 0);

// ln(x) as the engine computes it: Log2, then a gain of ln 2. The engine's ln(0) is -45440, which
// is -65536 times fp16(ln 2) (numerics.json ew-log). The relative error is below 1e-3.
Operand NaturalLog(NetworkBuilder& c, const Operand& x);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ACTIVATION_NEURON_H_
