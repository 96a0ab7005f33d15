// engine/math/gemm_operands.h: one matrix product as its kernel sees it. Internal.
#ifndef ENGINE_MATH_GEMM_OPERANDS_H_
#define ENGINE_MATH_GEMM_OPERANDS_H_

#include <cstdint>

#include "engine/math/epilogue.h"
#include "engine/math/half.h"
#include "engine/math/weight_panels.h"

namespace anemone::math {

// One product of the batch: pointers to element (0, 0) and strides in elements.
struct GemmOperands {
  int64_t m = 0, k = 0, n = 0;
  const Half* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const Half* b = nullptr;  // with strides, or
  int64_t b_row = 0, b_column = 0;
  const WeightPanels* b_panels = nullptr;  // packed, [n / 48][k][48]
  const float* bias = nullptr;
  Half* c = nullptr;
  int64_t c_row = 0, c_column = 0;
  Epilogue epilogue;
};

// The values of a packed matrix, [column / 48][k][48] (gemm.cc).
class PackedMatrix;
const WeightPanels& PanelsOf(const PackedMatrix& matrix);

}  // namespace anemone::math

#endif  // ENGINE_MATH_GEMM_OPERANDS_H_
