// math/gemm/gemm_operands.h: one matrix product as its kernel sees it. Internal.
#ifndef ANEMONE_MATH_GEMM_GEMM_OPERANDS_H_
#define ANEMONE_MATH_GEMM_GEMM_OPERANDS_H_

#include <cstdint>

#include "math/core/epilogue.h"
#include "math/core/half.h"
#include "math/gemm/panels.h"
#include "math/gemm/weight_panels.h"

namespace anemone::math {

// One product of the batch: pointers to element (0, 0) and strides in elements.
struct GemmOperands {
  int64_t m = 0, k = 0, n = 0;
  const Half* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const Half* b = nullptr;  // with strides, or
  int64_t b_row = 0, b_column = 0;
  const WeightPanels* b_panels = nullptr;  // packed, [n / 48][k][48]
  const uint8_t* even_columns = nullptr;   // of b_panels, [pass][n / 96]: as strassen_gemm.cc
  const float* bias = nullptr;
  Half* c = nullptr;
  int64_t c_row = 0, c_column = 0;
  Epilogue epilogue;
};

// The values of a packed matrix, [column / 48][k][48] (gemm.cc).
class PackedMatrix;
const WeightPanels& PanelsOf(const PackedMatrix& matrix);

// Large products by fewer products of quarters (strassen_gemm.cc): whether that pays; what a task
// takes, whole groups of rows and pairs of columns; one task.
bool StrassenPays(const GemmOperands& g);
Cut StrassenCut(const GemmOperands& g, int64_t copies, int64_t threads);
void MultiplyByStrassen(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                        int64_t columns);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_GEMM_OPERANDS_H_
