// math/conv/window.h: the sliding window of convolutions and pooling.
//
//   Window w{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2,
//            .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
//   WindowedSize(224, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top + w.pad_bottom);  // 112
#ifndef ANEMONE_MATH_CONV_WINDOW_H_
#define ANEMONE_MATH_CONV_WINDOW_H_

#include <cstdint>

namespace anemone::math {

// Kernel, stride and dilation must be at least 1, pads at least 0.
struct Window {
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

// An image of one column is treated as one row, because vectors run along rows.
inline bool IsOneColumn(int64_t in_w, int64_t out_w, const Window& w) {
  return in_w == 1 && out_w == 1 && w.kernel_w == 1 && w.pad_left == 0;
}
// The window with rows as columns.
inline Window Turned(const Window& w) {
  return {w.kernel_w,   w.kernel_h, w.stride_w, w.stride_h,  w.dilation_w,
          w.dilation_h, w.pad_left, w.pad_top,  w.pad_right, w.pad_bottom};
}

// The number of positions of a window along one axis, rounded down; 0 if the kernel does not fit.
inline int64_t WindowedSize(int64_t size, int64_t kernel, int64_t stride, int64_t dilation,
                            int64_t pads) {
  const int64_t span = size + pads - dilation * (kernel - 1) - 1;
  return span < 0 ? 0 : span / stride + 1;
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_WINDOW_H_
