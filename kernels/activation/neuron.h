// kernels/activation/neuron.h: for lowerings: functions of single elements (the unit Neuron).
#ifndef ANEMONE_KERNELS_ACTIVATION_NEURON_H_
#define ANEMONE_KERNELS_ACTIVATION_NEURON_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// The modes of the Neuron unit (enums.json NonLinearMode). The netplist names of kExp, kAtan and
// kSoftplus are not known, so only the software engine runs them. Lowerings use the modes before
// kSigmoid. Of the others, no source says which targets have them and what they compute, nor their
// netplist names, which here follow the pattern of the known ones; they can be checked but not run.
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
  kSigmoid,
  kReLUSigmoid,
  kSigmoidHard,
  kPReLU,
  kReLUN,
  kSwishHard,
  kDirac,
  kInt,
  kFrac,
  kClampedReLURsqrt,
  kSqr,
  kEqualZero,
  kNotEqualZero,
  kLessThanZero,
  kLessThanEqualZero,
  kGreaterThanEqualZero,
  kGreaterThanZero,
  kCustomLUT,
  kGELUSigmoidApproximation,
  kDegamma,
  kTrunc,
  kAtanPart1,
  kAtanPart2,
  kThresholdedReLU,
  kGamma,
};

// Their names in a netplist.
absl::Span<const char* const> NamesOf(NeuronType);

// A Neuron unit on `x`. The parameters `first` and `second` are rounded to fp16.
Operand Activated(NetworkBuilder& c, NeuronType type, const Operand& x, float first = 0,
                  float second = 0);

// The function of a Neuron unit without parameters, for units that apply it themselves.
struct NeuronFunction {
  Prepared table;  // to which the step refers
  math::ElementStep step;
};
absl::StatusOr<NeuronFunction> NeuronFunctionOf(NeuronType type);

// A unit that limits `x`, whose dims are given, to the finite numbers of fp16.
Unit FiniteUnit(const Operand& x, const Dims& dims);

// ln(x) as the engine computes it: Log2, then a gain of ln 2. The engine's ln(0) is -45440, which
// is -65536 times fp16(ln 2) (numerics.json ew-log). The relative error is below 1e-3.
Operand NaturalLog(NetworkBuilder& c, const Operand& x);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ACTIVATION_NEURON_H_
