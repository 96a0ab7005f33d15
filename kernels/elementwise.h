// kernels/elementwise.h: operations on two tensors, for lowerings.
#ifndef ANEMONE_KERNELS_ELEMENTWISE_H_
#define ANEMONE_KERNELS_ELEMENTWISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// The types of the ElementWise unit (enums.json ZinIrEWType) that lowerings use. Comparisons give
// 1 or 0. The netplist's spelling of kDiv and kPower is not known: only the software device runs
// them yet.
enum class ElementWiseType : uint8_t {
  kAdd,
  kSub,
  kMult,
  kDiv,
  kPower,
  kMin,
  kMax,
  kEqual,
  kNotEqual,
  kLessThan,
  kGreaterThan,
};

// `a` and `b`, each repeated along its axes of extent 1.
absl::StatusOr<Operand> Combined(NetworkBuilder& c, ElementWiseType type, const Operand& a,
                                 const Operand& b);

// |x|.
absl::StatusOr<Operand> Absolute(NetworkBuilder& c, const Operand& x);

// A constant of one element.
Operand ScalarConstant(NetworkBuilder& c, float value);

// Graph value `value` as an operand of a node whose output has `shape`: its axes are those of that
// rank, ones put in front, as ONNX aligns shapes of different ranks. A constant is laid out anew at
// no price.
absl::StatusOr<Operand> AlignedOperand(LowerContext& c, ValueId value,
                                       absl::Span<const int64_t> shape);
absl::StatusOr<Operand> AlignedConstant(NetworkBuilder& c, const Tensor& tensor,
                                        absl::Span<const int64_t> shape);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ELEMENTWISE_H_
