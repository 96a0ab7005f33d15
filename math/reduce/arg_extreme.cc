#include "math/reduce/arg_extreme.h"

#include <algorithm>
#include <cassert>

#include "math/core/loop_nest.h"
#include "math/core/order_key.h"
#include "math/core/parallel.h"

namespace anemone::math {
namespace {

Half IndexAsHalf(int64_t index) { return ToHalf(static_cast<float>(index)); }

// A key that is largest for the extreme element.
template <Extreme kExtreme>
int16_t KeyOf(Half x) {
  const int16_t key = OrderKey(x);
  return kExtreme == Extreme::kMax ? key : static_cast<int16_t>(-key);
}

// How much larger a later key must be to replace the best one.
template <bool kLast>
constexpr int kLead = kLast ? 0 : 1;

template <Extreme kExtreme, bool kLast>
void ArgRow(const Half* x, int64_t count, Half* y) {
  int16_t best = KeyOf<kExtreme>(x[0]);
  int64_t at = 0;
  for (int64_t i = 1; i < count; ++i) {
    const int16_t key = KeyOf<kExtreme>(x[i]);
    if (key < best + kLead<kLast>) continue;
    best = key;
    at = i;
  }
  *y = IndexAsHalf(at);
}

// Columns handled at a time, so that keys and indices stay in the first-level cache.
constexpr int64_t kStrip = 256;

// Handles columns [0, width) of a (count x stride) plane. `width` is at most kStrip.
template <Extreme kExtreme, bool kLast>
void ArgColumns(const Half* x, int64_t count, int64_t stride, int64_t width, Half* y) {
  int16_t best[kStrip];
  int32_t at[kStrip] = {};
  for (int64_t j = 0; j < width; ++j) best[j] = KeyOf<kExtreme>(x[j]);
  for (int64_t i = 1; i < count; ++i) {
    const Half* row = x + i * stride;
    for (int64_t j = 0; j < width; ++j) {
      const int16_t key = KeyOf<kExtreme>(row[j]);
      at[j] = key >= best[j] + kLead<kLast> ? static_cast<int32_t>(i) : at[j];
      best[j] = std::max(best[j], key);
    }
  }
  for (int64_t j = 0; j < width; ++j) y[j] = IndexAsHalf(at[j]);
}

template <Extreme kExtreme, bool kLast>
void ArgAxis(const AxisRun& run, const Half* x, Half* y) {
  if (run.inner == 1) {
    return ParallelForItems(run.outer, run.count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ArgRow<kExtreme, kLast>(x + i * run.count, run.count, y + i);
    });
  }
  const int64_t strips = (run.inner + kStrip - 1) / kStrip;
  ParallelForItems(run.outer * strips, run.count * kStrip, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t plane = item / strips, column = item % strips * kStrip;
      ArgColumns<kExtreme, kLast>(x + plane * run.count * run.inner + column, run.count, run.inner,
                                  std::min(kStrip, run.inner - column),
                                  y + plane * run.inner + column);
    }
  });
}

// Handles the window that begins at (top, left), which may be in the padding.
template <Extreme kExtreme, bool kLast>
Half ArgWindow(const PoolShape& shape, const Half* plane, int64_t top, int64_t left) {
  const Window& w = shape.window;
  const int64_t bottom = std::min(top + w.kernel_h, shape.in_h);
  const int64_t right = std::min(left + w.kernel_w, shape.in_w);
  int best = -0x8000;  // below every key
  int64_t at = 0;
  for (int64_t h = std::max<int64_t>(top, 0); h < bottom; ++h) {
    for (int64_t i = std::max<int64_t>(left, 0); i < right; ++i) {
      const int key = KeyOf<kExtreme>(plane[h * shape.in_w + i]);
      if (key < best + kLead<kLast>) continue;
      best = key;
      at = (h - top) * w.kernel_w + i - left;
    }
  }
  return IndexAsHalf(at);
}

template <Extreme kExtreme, bool kLast>
void ArgWindows(const PoolShape& shape, const Half* x, Half* y) {
  const Window& w = shape.window;
  assert(w.dilation_h == 1 && w.dilation_w == 1);
  ParallelForItems(shape.planes * shape.out_h, shape.out_w * w.kernel_h * w.kernel_w,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const Half* plane = x + row / shape.out_h * shape.in_h * shape.in_w;
                       const int64_t top = row % shape.out_h * w.stride_h - w.pad_top;
                       for (int64_t j = 0; j < shape.out_w; ++j) {
                         y[row * shape.out_w + j] = ArgWindow<kExtreme, kLast>(
                             shape, plane, top, j * w.stride_w - w.pad_left);
                       }
                     }
                   });
}

}  // namespace

void ArgExtreme(Extreme extreme, const Extents& extents, int axis, absl::Span<const Half> x,
                absl::Span<Half> y, bool takes_last) {
  assert(static_cast<int64_t>(x.size()) == Count(extents));
  AxisRun run;
  FindAxisRun(extents, AxisSet({axis}), &run);  // one axis is one run
  constexpr auto kMax = Extreme::kMax, kMin = Extreme::kMin;
  const auto walk = extreme == kMax ? (takes_last ? ArgAxis<kMax, true> : ArgAxis<kMax, false>)
                                    : (takes_last ? ArgAxis<kMin, true> : ArgAxis<kMin, false>);
  walk(run, x.data(), y.data());
}

void WindowArgExtreme(Extreme extreme, const PoolShape& shape, absl::Span<const Half> x,
                      absl::Span<Half> y, bool takes_last) {
  constexpr auto kMax = Extreme::kMax, kMin = Extreme::kMin;
  const auto walk = extreme == kMax
                        ? (takes_last ? ArgWindows<kMax, true> : ArgWindows<kMax, false>)
                        : (takes_last ? ArgWindows<kMin, true> : ArgWindows<kMin, false>);
  walk(shape, x.data(), y.data());
}

}  // namespace anemone::math
