// kernels/units/matrix_multiplication.h: for lowerings: matrix products.
//
// A unit multiplies A (N, C = rows, H, W = K) by B (N, C = K, H, W = columns) into
// (N, C = rows, H, W = columns). N and H are batch axes; if an operand has extent 1 there, it is
// repeated.
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

// The JSON key for the order of a constant factor, if it is not the order of the compiler's files.
// A netplist does not have this key. It is for formats that store a network without loss.
inline constexpr const char kWeightOrder[] = "WeightOrder";

// A constant K x N matrix. `order` says how `values` stores it.
struct ConstantMatrix {
  Tensor values;
  int64_t k = 1, n = 1;
  math::MatrixOrder order = math::MatrixOrder::kRowMajor;

  // The values as a tensor of rank 2: K x N if row-major, N x K if column-major.
  Tensor Matrix() const {
    return values.Reshaped(order == math::MatrixOrder::kRowMajor ? std::vector{k, n}
                                                                 : std::vector{n, k});
  }
};

Operand MatrixProduct(NetworkBuilder& c, const Operand& a, const Operand& b);

// B is a weight of the unit. It is packed once per program; only the packed form is kept.
Operand MatrixProduct(NetworkBuilder& c, const Operand& a, const ConstantMatrix& b);

// The weight of a MatrixMultiplication unit; nullopt if it has none or is of another kind.
std::optional<ConstantMatrix> FactorOfProduct(const Unit& unit);

// `value` as the right operand of ONNX's MatMul, if it is a constant matrix or vector without batch
// axes.
std::optional<ConstantMatrix> ConstantRight(const GraphView& view, ValueId value);

// Transposes a rows x columns matrix to columns x rows. A compressed matrix stays compressed if
// that is possible, others are rounded to fp16.
Tensor TransposedMatrix(const Tensor& matrix, int64_t rows, int64_t columns);

// Adds the warnings about a product with a constant of this number of elements.
void WarnOfConstantFactor(int64_t elements, const Target& target, WarningList& list);

// A value of rank 0..4 under other dims with the same element count. A constant gets these dims
// directly; any other value is reshaped by a unit.
Operand InAs(LowerContext& c, ValueId value, const Dims& dims);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_MATRIX_MULTIPLICATION_H_
