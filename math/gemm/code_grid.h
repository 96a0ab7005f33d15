// math/gemm/code_grid.h: values that are codes of 8 bits, as after QuantizeLinear ->
// DequantizeLinear.
#ifndef ANEMONE_MATH_GEMM_CODE_GRID_H_
#define ANEMONE_MATH_GEMM_CODE_GRID_H_

namespace anemone::math {

// The values scale * (low + code), rounded to Half, for codes 0 to 255 or fewer. 0 is one of them,
// and `scale` is at least 2^-14 and all values are finite, so that each code has a Half of its own.
// Products of two operands on grids can be computed from the codes (byte_products.cc).
struct CodeGrid {
  float scale = 1;
  int low = 0;  // -255 to 0
  bool operator==(const CodeGrid&) const = default;
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_CODE_GRID_H_
