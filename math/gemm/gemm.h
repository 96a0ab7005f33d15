// math/gemm/gemm.h: batched matrix products C = A * B (+ bias), where A is M x K and B is K x N.
//
//   // y (8 x 1000) = x (8 x 512) * w^T, with w stored as 1000 x 512 as in a linear layer
//   PackedMatrix w = PackMatrix(512, 1000, MatrixOrder::kColumnMajor, weights);     // once
//   Gemm({.m = 8, .k = 512, .n = 1000}, x, RowMajor(512), w, bias, y, RowMajor(1000));
//   // 12 heads of an attention, with no constant operand: scores = q * k^T for each head
//   Gemm({.m = 128, .k = 64, .n = 128, .batch = {1, 1, 12}}, q, q_layout, k, k_layout, {}, scores,
//        RowMajor(128, 128));
//
// c[i, j] = Half(bias[j] + sum over k of a[i, k] * b[k, j]), then the epilogue. Products are exact,
// the sum is fp32 in the order of k for every element, and there is one rounding. So the bits are
// the same on every machine, for any number of threads, packed or not. K = 0 gives the bias.
//
// If N is 1 and rows of A are contiguous, the sum is that of 32 partial sums (term k is added to
// sum k % 32) instead, which is the same on every machine, too.
//
// An exception: packed codes with scales are multiplied as integers (code_products.cc), with
// errors of at most 2^-15 of the largest of 32 elements of a row of A; on Arm only with M up to 8.
// If the values of A are on a grid of 8-bit codes, and B has 8-bit codes with one scale per column
// or is on a grid too, a processor with AVX512-VNNI multiplies the codes (byte_products.cc): the
// sum is exact, and values are not rounded to fp16 before they are multiplied.
//
// Cost: with M up to 8 and a packed B, reading B as stored: with M = 1 at 90 % of memory's speed,
// with codes at 75 to 85 %. If B is not packed, each call rearranges it: K * N element moves, which
// matter only for small M.
#ifndef ANEMONE_MATH_GEMM_GEMM_H_
#define ANEMONE_MATH_GEMM_GEMM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"
#include "math/core/shared_pack.h"
#include "math/gemm/code_grid.h"
#include "math/move/convert.h"

namespace anemone::math {

struct GemmShape {
  int64_t m = 1, k = 1, n = 1;
  std::array<int64_t, 3> batch = {1, 1, 1};  // outermost first
};

// Strides in elements: element (i, j) of a matrix of the batch is at i * row + j * col + the sum of
// the batch indices times `batch`. A stride of 0 repeats (broadcasts); not allowed for C.
struct MatrixLayout {
  int64_t row = 0, col = 1;
  std::array<int64_t, 3> batch = {0, 0, 0};
};

// The offset of matrix `copy` of the batch, counted with the innermost batch index fastest.
inline int64_t OffsetOf(const GemmShape& shape, const MatrixLayout& layout, int64_t copy) {
  const auto& [outer, middle, inner] = layout.batch;
  return copy / (shape.batch[1] * shape.batch[2]) * outer +
         copy / shape.batch[2] % shape.batch[1] * middle + copy % shape.batch[2] * inner;
}

// A dense row-major matrix. For a batch of dense matrices, `rows` is the number of rows of each.
inline MatrixLayout RowMajor(int64_t columns, int64_t rows = 0) {
  return {columns, 1, {0, 0, rows * columns}};
}
inline MatrixLayout ColumnMajor(int64_t rows) { return {1, rows, {0, 0, 0}}; }

enum class MatrixOrder {
  kRowMajor,     // stored K x N, as ONNX MatMul's second operand
  kColumnMajor,  // stored N x K, as the weight of a linear layer
};

inline MatrixLayout LayoutOf(MatrixOrder order, int64_t k, int64_t n) {
  return order == MatrixOrder::kRowMajor ? RowMajor(n) : ColumnMajor(k);
}

struct CodedWeights;

// A constant B in the order in which the kernel reads it, as Half or in the compressed form it was
// given in. Matrices of equal constants share it (math/core/shared_pack.h).
class PackedMatrix {
 public:
  PackedMatrix();
  PackedMatrix(PackedMatrix&&) noexcept;
  PackedMatrix& operator=(PackedMatrix&&) noexcept;
  ~PackedMatrix();

  int64_t bytes() const;  // memory held

  struct State;
  const State& state() const { return *state_; }  // for gemm.cc
  explicit PackedMatrix(std::shared_ptr<const State> state);

 private:
  std::shared_ptr<const State> state_;
};

// Packs a K x N matrix. `coded` is the compressed form of the same values, or null
// (weight_panels.h). `id` is that of the constant as it is stored.
PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, HalfReader values,
                        const CodedWeights* coded = nullptr, ConstantId id = {});
PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, absl::Span<const Half> values);
PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, absl::Span<const float> values);

// The grids of all values of the operands, if they have one.
struct OperandGrids {
  std::optional<CodeGrid> a = std::nullopt, b = std::nullopt;
};

// Spans start at element (0, 0) of batch (0, 0, 0). `bias` is empty or has n values. `c` must not
// overlap `a` or `b`.
void Gemm(const GemmShape& shape, absl::Span<const Half> a, const MatrixLayout& a_layout,
          absl::Span<const Half> b, const MatrixLayout& b_layout, absl::Span<const float> bias,
          absl::Span<Half> c, const MatrixLayout& c_layout, const Epilogue& epilogue = {},
          const OperandGrids& grids = {});

// The same with one packed B for the whole batch. shape.k and shape.n must be those of
// PackMatrix().
void Gemm(const GemmShape& shape, absl::Span<const Half> a, const MatrixLayout& a_layout,
          const PackedMatrix& b, absl::Span<const float> bias, absl::Span<Half> c,
          const MatrixLayout& c_layout, const Epilogue& epilogue = {},
          std::optional<CodeGrid> a_grid = std::nullopt);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_GEMM_H_
