// kernels/elementwise/elementwise.h: for lowerings: operations on the elements of one or two
// tensors (the unit ElementWise).
#ifndef ANEMONE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define ANEMONE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// The types of the ElementWise unit (enums.json ZinIrEWType). Comparisons give 1 or 0. Netplists
// were seen with Add, Sub, Mult, Min, Max, Equal, NotEqual, LessThan, GreaterThan and Abs. The
// names of the others are known from the enumeration only.
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
  // One operand:
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

// An operation on two operands, which are broadcast along their axes of extent 1.
Operand Combined(NetworkBuilder& c, ElementWiseType type, const Operand& a, const Operand& b);

// An operation on one operand.
Operand Mapped(NetworkBuilder& c, ElementWiseType type, const Operand& x);

// |x|.
Operand Absolute(NetworkBuilder& c, const Operand& x);

// A constant of one element, and a constant of `dims` with all elements equal.
Operand ScalarConstant(NetworkBuilder& c, float value);
Operand Filled(NetworkBuilder& c, float value, const Dims& dims);

// Graph value `value` as an operand of a node whose output has `shape`. As in ONNX, axes of extent
// 1 are prepended until it has the rank of `shape`. A constant is reshaped at compile time, without
// a unit.
Operand AlignedOperand(LowerContext& c, ValueId value, absl::Span<const int64_t> shape);
Operand AlignedConstant(NetworkBuilder& c, const Tensor& tensor, absl::Span<const int64_t> shape);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
