// kernels/units/reshape.h: laying the same bytes out under other dims, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_RESHAPE_H_
#define ANEMONE_KERNELS_UNITS_RESHAPE_H_

#include <string>

#include "kernels/lowering.h"

namespace anemone {

class MilEmitter;

const UnitKind& ReshapeUnit();

// `x` under `dims` of the same element count, in memory order N, D, C, H, W. No unit if the dims
// are x's own.
Operand ReshapeToDims(NetworkBuilder& c, const Operand& x, const Dims& dims);

// ONNX orders rank 5 N, C, D, H, W but the engine's memory is N, D, C, H, W. ToOnnxOrder() brings
// an operand that holds a value of `rank` into ONNX's order, so that a Reshape means what ONNX
// means; FromOnnxOrder() brings such bytes to where PlaceShape(shape) has them.
Operand ToOnnxOrder(NetworkBuilder& c, const Operand& x, int rank);
Operand FromOnnxOrder(NetworkBuilder& c, const Operand& flat, absl::Span<const int64_t> shape);

// `x`, which holds a value of `rank`, as one of shape `to`: both of these. Refused (frontend) above
// rank 5.
Operand ReshapeInOnnxOrder(NetworkBuilder& c, const Operand& x, int rank,
                           absl::Span<const int64_t> to);

// In MIL: `x`, of dims `from`, under dims `to`, the elements in the engine's order.
std::string WriteReshaped(MilEmitter& e, std::string x, const Dims& from, const Dims& to);

// In MIL, for operations that take no rank 5: bottom `i` as N, C, H, W, and such a value as the
// unit's result of `dims`. kUnimplemented if the bottom has a depth.
absl::StatusOr<std::string> WriteFlatBottom(MilEmitter& e, size_t i);
void WriteFlatResult(MilEmitter& e, std::string y, const Dims& dims);
std::vector<int64_t> FlatShape(const Dims& dims);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_RESHAPE_H_
