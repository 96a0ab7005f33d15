// kernels/elementwise/elementwise.h: operations on two tensors, for lowerings.
#ifndef ANEMONE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define ANEMONE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// The types of the ElementWise unit (enums.json ZinIrEWType). Comparisons give 1 or 0. Seen in a
// netplist: Add to Max without Div and Power, Equal, NotEqual, LessThan, GreaterThan, Abs; of the
// others only the enumeration's spelling is known.
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
  kLessThanEqual,
  kGreaterThan,
  kGreaterThanEqual,
  // Of one operand:
  kAbs,
  kSquare,
  kEqualZero,
  kNotEqualZero,
  kLessThanZero,
  kLessThanEqualZero,
  kGreaterThanZero,
  kGreaterThanEqualZero,
};

absl::Span<const char* const> NamesOf(ElementWiseType);

// `a` and `b`, each repeated along its axes of extent 1.
Operand Combined(NetworkBuilder& c, ElementWiseType type, const Operand& a, const Operand& b);

// A type of one operand.
Operand Mapped(NetworkBuilder& c, ElementWiseType type, const Operand& x);

// |x|.
Operand Absolute(NetworkBuilder& c, const Operand& x);

// A constant of one element, and one of as many as `dims` have, all the same.
Operand ScalarConstant(NetworkBuilder& c, float value);
Operand Filled(NetworkBuilder& c, float value, const Dims& dims);

// Graph value `value` as an operand of a node whose output has `shape`: its axes are those of that
// rank, ones put in front, as ONNX aligns shapes of different ranks. A constant is laid out anew at
// no price.
Operand AlignedOperand(LowerContext& c, ValueId value, absl::Span<const int64_t> shape);
Operand AlignedConstant(NetworkBuilder& c, const Tensor& tensor, absl::Span<const int64_t> shape);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
