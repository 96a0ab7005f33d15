// math/conv/pool.h: maximum and average over sliding 2-D windows.
//
//   PoolShape shape{.planes = 64, .in_h = 112, .in_w = 112, .out_h = 56, .out_w = 56,
//                   .window = {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2,
//                              .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}};
//   MaxPool(shape, x, y);
//   AveragePool(shape, AverageDivisor::kInside, x, y);
//
// The caller chooses out_h and out_w. With ONNX's ceil_mode, windows may extend beyond the padding.
// Padding is never the maximum. A window without input elements gives -inf (MaxPool) or 0
// (AveragePool). A window that contains a NaN gives a NaN.
#ifndef ANEMONE_MATH_CONV_POOL_H_
#define ANEMONE_MATH_CONV_POOL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/conv/window.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"

namespace anemone::math {

// x is (planes, in_h, in_w) and y is (planes, out_h, out_w), where planes is N * D * C.
struct PoolShape {
  int64_t planes = 1;
  int64_t in_h = 1, in_w = 1;
  int64_t out_h = 1, out_w = 1;
  Window window;
};

// Vectors run along rows: the planes of one column become planes of one row. Internal.
PoolShape AsRows(PoolShape shape);

// What an average divides by: the number of the window's elements that are inside the input, or
// inside input and padding.
enum class AverageDivisor { kInside, kInsideAndPads };

// The result is one of the window's elements, bit for bit. +0 counts as greater than -0.
void MaxPool(const PoolShape& shape, absl::Span<const Half> x, absl::Span<Half> y,
             const Epilogue& epilogue = {});

// Sums in fp32 in row-major order, divides once and rounds once.
void AveragePool(const PoolShape& shape, AverageDivisor divisor, absl::Span<const Half> x,
                 absl::Span<Half> y, const Epilogue& epilogue = {});

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_POOL_H_
