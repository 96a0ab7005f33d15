// kernels/activation/neuron.h: functions of one element, for lowerings.
#ifndef ANEMONE_KERNELS_ACTIVATION_NEURON_H_
#define ANEMONE_KERNELS_ACTIVATION_NEURON_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// The modes of the Neuron unit that lowerings use (enums.json NonLinearMode). The netplist's
// spelling of kExp, kAtan and kSoftplus is not known: only the software device runs them yet.
enum class NeuronType : uint8_t {
  kReLU,
  kClampedReLU,  // first: ReluMin, second: ReluMax
  kLeakyReLU,    // first: ReluSlope
  kELU,          // first: EluAlpha
  kSigmoidHighPrecision,
  kTanh,
  kGELU,  // by erf
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
  kRoundNearest,  // a half away from 0
  kSoftplus,      // MIL's own, which falls to 0 from 10.4 on (numerics.json ew-softplus)
};

// As a netplist spells them.
absl::Span<const char* const> NamesOf(NeuronType);

// A Neuron unit over `x`. The parameters are rounded to fp16.
Operand Activated(NetworkBuilder& c, NeuronType type, const Operand& x, float first = 0,
                  float second = 0);

// ln(x) as the engine takes it: Log2, then a gain of ln 2. The engine's own ln(0) is -45440, which
// is -65536 times fp16(ln 2) (numerics.json ew-log). Relative error below 1e-3.
Operand NaturalLog(NetworkBuilder& c, const Operand& x);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ACTIVATION_NEURON_H_
