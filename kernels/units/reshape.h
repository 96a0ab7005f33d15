// kernels/units/reshape.h: for lowerings: changes the dims of an operand but not the order of its
// elements.
#ifndef ANEMONE_KERNELS_UNITS_RESHAPE_H_
#define ANEMONE_KERNELS_UNITS_RESHAPE_H_

#include <string>

#include "kernels/lowering.h"

namespace anemone {

class MilEmitter;

const UnitKind& ReshapeUnit();

// `x` under `dims` with the same element count. The elements keep the engine's memory order, N, D,
// C, H, W. No unit is added if `x` has these dims already.
Operand ReshapeToDims(NetworkBuilder& c, const Operand& x, const Dims& dims);

// ONNX stores rank 5 as N, C, D, H, W, but the engine as N, D, C, H, W. ToOnnxOrder() reorders the
// elements of an operand that holds a value of `rank` into ONNX's order, so that a reshape means
// the same as in ONNX.
Operand ToOnnxOrder(NetworkBuilder& c, const Operand& x, int rank);
// The inverse of ToOnnxOrder(): elements in ONNX's order as a value of `shape`, under
// PlaceShape(shape).
Operand FromOnnxOrder(NetworkBuilder& c, const Operand& flat, absl::Span<const int64_t> shape);

// ONNX's Reshape: `x`, which holds a value of `rank`, as a value of shape `to`, by ToOnnxOrder()
// and FromOnnxOrder(). Refused (frontend) above rank 5.
Operand ReshapeInOnnxOrder(NetworkBuilder& c, const Operand& x, int rank,
                           absl::Span<const int64_t> to);

// Writes MIL: reshapes `x` from dims `from` to dims `to`. The elements keep the engine's order.
std::string WriteReshaped(MilEmitter& e, std::string x, const Dims& from, const Dims& to);

// Writes MIL for operations that do not accept rank 5. WriteFlatBottom() gives bottom `i` as N, C,
// H, W; kUnimplemented if it has a depth above 1. WriteFlatResult() makes `y`, N, C, H, W, the
// result of a unit of `dims`. FlatShape() is the shape N, C, H, W of `dims`.
absl::StatusOr<std::string> WriteFlatBottom(MilEmitter& e, size_t i);
void WriteFlatResult(MilEmitter& e, std::string y, const Dims& dims);
std::vector<int64_t> FlatShape(const Dims& dims);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_RESHAPE_H_
