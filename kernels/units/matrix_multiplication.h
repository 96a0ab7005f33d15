// kernels/units/matrix_multiplication.h: matrix products, for lowerings.
//
// A unit multiplies A (N, C = rows, H, W = K) by B (N, C = K, H, W = columns) into
// (N, C = rows, H, W = columns): channel against width. N and H are batch axes, repeated where they
// are 1 on one side.
#ifndef ANEMONE_KERNELS_UNITS_MATRIX_MULTIPLICATION_H_
#define ANEMONE_KERNELS_UNITS_MATRIX_MULTIPLICATION_H_

#include <optional>
#include <vector>

#include "kernels/lowering.h"
#include "math/gemm/gemm.h"

namespace anemone {

namespace math {
inline absl::Span<const char* const> NamesOf(MatrixOrder) {
  static constexpr const char* kNames[] = {"RowMajor", "ColumnMajor"};
  return kNames;
}
}  // namespace math

// How a constant factor lies, where it is not as the compilers' own files have it: in no netplist,
// but in what must hold a network as it is.
inline constexpr const char kWeightOrder[] = "WeightOrder";

// A constant K x N matrix, in the order its tensor stores it.
struct ConstantMatrix {
  Tensor values;
  int64_t k = 1, n = 1;
  math::MatrixOrder order = math::MatrixOrder::kRowMajor;

  // The values under the two extents of that order.
  Tensor Matrix() const {
    return values.Reshaped(order == math::MatrixOrder::kRowMajor ? std::vector{k, n}
                                                                 : std::vector{n, k});
  }
};

Operand MatrixProduct(NetworkBuilder& c, const Operand& a, const Operand& b);

// B is a weight of the unit: packed once per program, and not kept beside its packed form.
Operand MatrixProduct(NetworkBuilder& c, const Operand& a, const ConstantMatrix& b);

// `value` as the right operand of ONNX's MatMul, if it is one constant matrix (or vector) for all
// of the left.
std::optional<ConstantMatrix> ConstantRight(const GraphView& view, ValueId value);

// (rows, columns) as (columns, rows), rounded to fp16.
Tensor TransposedMatrix(const Tensor& matrix, int64_t rows, int64_t columns);

// Design rules of a product by a constant of so many elements.
void WarnOfConstantFactor(int64_t elements, const Target& target, WarningList& list);

// A value of rank 0..4 under other dims of its element count: a constant is simply listed under
// them, anything else is reshaped.
Operand InAs(LowerContext& c, ValueId value, const Dims& dims);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_MATRIX_MULTIPLICATION_H_
