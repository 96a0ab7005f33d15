// math/conv/pool.h: maximum and average over sliding 2-D windows.
//
//   PoolShape shape{.planes = 64, .in_h = 112, .in_w = 112, .out_h = 56, .out_w = 56,
//                   .window = {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2,
//                              .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}};
//   MaxPool(shape, x, y);
//   AveragePool(shape, AverageDivisor::kInside, x, y);
//
// The caller chooses out_h and out_w, so rounding up (ONNX ceil_mode) needs nothing here: a window
// may reach past the padding. Padding never wins a maximum; a window wholly outside gives -inf
// (MaxPool) or 0 (AveragePool). A NaN inside a window makes that output a NaN.
#ifndef ANEMONE_MATH_CONV_POOL_H_
#define ANEMONE_MATH_CONV_POOL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/conv/window.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"

namespace anemone::math {

// x is (planes, in_h, in_w), y is (planes, out_h, out_w): N, D and C together are the planes.
struct PoolShape {
  int64_t planes = 1;
  int64_t in_h = 1, in_w = 1;
  int64_t out_h = 1, out_w = 1;
  Window window;
};

// What an average divides by: the window's elements inside the input, or inside input plus pads.
enum class AverageDivisor { kInside, kInsideAndPads };

// The maximum is one of the window's elements, bit for bit; of zeros +0 if there is one.
void MaxPool(const PoolShape& shape, absl::Span<const Half> x, absl::Span<Half> y,
             const Epilogue& epilogue = {});

// fp32 sum in row order, one division, one rounding.
void AveragePool(const PoolShape& shape, AverageDivisor divisor, absl::Span<const Half> x,
                 absl::Span<Half> y, const Epilogue& epilogue = {});

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_POOL_H_
