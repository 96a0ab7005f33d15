// math/gemm/gemm.h: batched matrix products, C = A * B (+ bias), A is M x K, B is K x N.
//
//   // y (8 x 1000) = x (8 x 512) * w^T, w stored 1000 x 512 as a linear layer has it
//   PackedMatrix w = PackMatrix(512, 1000, MatrixOrder::kColumnMajor, weights);     // once
//   Gemm({.m = 8, .k = 512, .n = 1000}, x, RowMajor(512), w, bias, y, RowMajor(1000));
//   // heads of attention, both operands computed: scores = q * k^T per batch
//   Gemm({.m = 128, .k = 64, .n = 128, .batch = {1, 1, 12}}, q, q_layout, k, k_layout, {}, s, ...);
//
// c[i, j] = Half(clamp(bias[j] + sum over k of a[i, k] * b[k, j])): exact products, fp32 sum in the
// order of k for every element, one rounding; the same bits on every machine, for any number of
// threads, packed or not. K = 0 gives the bias. Not so larger products with a packed B, which take
// fewer products (strassen_gemm.cc): there sums differ by some 1e-6 of the largest values around
// them, and by instruction set, but not by the number of threads or the place in the batch.
//
// Cost: M up to 8 with a packed B reads B once at memory speed (2 bytes per weight). Without
// packing, B is rearranged in each call: K * N element moves, which shows only for small M.
#ifndef ANEMONE_MATH_GEMM_GEMM_H_
#define ANEMONE_MATH_GEMM_GEMM_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"
#include "math/move/convert.h"

namespace anemone::math {

struct GemmShape {
  int64_t m = 1, k = 1, n = 1;
  std::array<int64_t, 3> batch = {1, 1, 1};  // outermost first
};

// Where element (i, j) of matrix b lies: i * row + j * col + the batch indices times `batch`, in
// elements. A stride of 0 repeats (broadcasts); C has no repeats.
struct MatrixLayout {
  int64_t row = 0, col = 1;
  std::array<int64_t, 3> batch = {0, 0, 0};
};

// Where product `copy` of the batch, counted with the innermost index first to change, begins.
inline int64_t OffsetOf(const GemmShape& shape, const MatrixLayout& layout, int64_t copy) {
  const auto& [outer, middle, inner] = layout.batch;
  return copy / (shape.batch[1] * shape.batch[2]) * outer +
         copy / shape.batch[2] % shape.batch[1] * middle + copy % shape.batch[2] * inner;
}

// `rows`: of each matrix of a batch, which follow one another.
inline MatrixLayout RowMajor(int64_t columns, int64_t rows = 0) {
  return {columns, 1, {0, 0, rows * columns}};
}
inline MatrixLayout ColumnMajor(int64_t rows) { return {1, rows, {0, 0, 0}}; }

enum class MatrixOrder {
  kRowMajor,     // stored K x N: ONNX MatMul's second operand
  kColumnMajor,  // stored N x K: the weight of a linear layer
};

inline MatrixLayout LayoutOf(MatrixOrder order, int64_t k, int64_t n) {
  return order == MatrixOrder::kRowMajor ? RowMajor(n) : ColumnMajor(k);
}

struct CodedWeights;

// A constant B in the order the kernel reads it, as Half or in the
// compressed form it came in.
class PackedMatrix {
 public:
  PackedMatrix();
  PackedMatrix(PackedMatrix&&) noexcept;
  PackedMatrix& operator=(PackedMatrix&&) noexcept;
  ~PackedMatrix();

  int64_t bytes() const;

  struct State;
  const State& state() const { return *state_; }  // for gemm.cc
  explicit PackedMatrix(std::unique_ptr<const State> state);

 private:
  std::unique_ptr<const State> state_;
};

// `coded`: how the same values are stored, if they are compressed (weight_panels.h).
PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, HalfReader values,
                        const CodedWeights* coded = nullptr);
PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, absl::Span<const Half> values);
PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, absl::Span<const float> values);

// Spans start at element (0, 0) of batch (0, 0, 0). `bias` is empty or has n values. `c` overlaps
// neither operand.
void Gemm(const GemmShape& shape, absl::Span<const Half> a, const MatrixLayout& a_layout,
          absl::Span<const Half> b, const MatrixLayout& b_layout, absl::Span<const float> bias,
          absl::Span<Half> c, const MatrixLayout& c_layout, const Epilogue& epilogue = {});

// The same B for every batch; shape.k and shape.n are those of PackMatrix.
void Gemm(const GemmShape& shape, absl::Span<const Half> a, const MatrixLayout& a_layout,
          const PackedMatrix& b, absl::Span<const float> bias, absl::Span<Half> c,
          const MatrixLayout& c_layout, const Epilogue& epilogue = {});

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_GEMM_H_
