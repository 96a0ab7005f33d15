// math/gemm/gemm_operands.h: the pointers and strides of one matrix product, for its kernels.
// Internal.
#ifndef ANEMONE_MATH_GEMM_GEMM_OPERANDS_H_
#define ANEMONE_MATH_GEMM_GEMM_OPERANDS_H_

#include <cstdint>
#include <optional>

#include "math/core/epilogue.h"
#include "math/core/half.h"
#include "math/gemm/code_grid.h"
#include "math/gemm/panels.h"
#include "math/gemm/weight_panels.h"

namespace anemone::math {

// One product of the batch: pointers to element (0, 0) and strides in elements.
struct GemmOperands {
  int64_t m = 0, k = 0, n = 0;
  const Half* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const Half* b = nullptr;  // B is either here, with strides,
  int64_t b_row = 0, b_column = 0;
  const WeightPanels* b_panels = nullptr;  // or here, packed as [n / 48][k][48]
  std::optional<CodeGrid> a_grid;          // of all values of A
  std::optional<CodeGrid> b_grid;          // of all values of `b`
  const float* bias = nullptr;
  Half* c = nullptr;
  int64_t c_row = 0, c_column = 0;
  Epilogue epilogue;
};

// One row, or a few, times packed, dense weights (few_rows-inl.h).
struct RowProduct {
  int64_t rows = 1, a_step = 0, to_step = 0;  // steps: from one row to the next
  const float* a = nullptr;
  int64_t depth = 0;
  const Half* panels = nullptr;  // [column / 48][depth][48]
  const float* bias = nullptr;   // or null
  Half* to = nullptr;
};
// The columns that are computed together, on any instruction set, divide this.
inline constexpr int64_t kRowColumns = 2 * kPanelColumns;

// The epilogue is applied to this many columns at a time, while they are in the cache.
inline constexpr int64_t kFinishedColumns = 4 * kRowColumns;

// A block of the product with a packed, dense B (gemm.cc), for the calling thread alone.
void MultiplyStreamed(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                      int64_t columns);

// The values of a packed matrix as [column / 48][k][48] (gemm.cc).
class PackedMatrix;
const WeightPanels& PanelsOf(const PackedMatrix& matrix);

// Products with affine codes as integers (code_products.cc): whether that is possible, and faster
// than floats; how the product is divided into tasks; and one task.
bool CodesPay(const GemmOperands& g);
Cut CodesCut(const GemmOperands& g, int64_t copies, int64_t threads);
void MultiplyByCodes(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                     int64_t columns);
// Whether they use AVX512-VNNI, by default if the processor has it. SetVnni() returns the value
// before, and is for tests.
bool SetVnni(bool uses);
bool UsesVnni();

// Products of codes of 8 bits (byte_products.cc): whether the processor has instructions for them;
// whether both operands are such codes; and one task of CodesCut(). Up to kMostByteTerms terms the
// sums fit 32 bits.
inline constexpr int64_t kMostByteTerms = 1 << 15;
inline constexpr int64_t kQuad = 4;  // codes of a word
bool MultipliesBytes();
bool BytesPay(const GemmOperands& g);
void MultiplyByBytes(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                     int64_t columns);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_GEMM_OPERANDS_H_
