#include "math/conv/pool.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"
#include "math/reduce/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/pool.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/conv/max_pool-inl.h"
#include "math/conv/stage-inl.h"
#include "math/conv/tap_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// An average is divided by the product of the counts of its row and its column. `columns` has one
// vector more than needed, so that whole vectors can be read.
struct Counts {
  const float *rows, *columns;
};

template <class D>
HWY_INLINE hn::Vec<D> Averaged(const D d, hn::Vec<D> sums, const Counts& counts, int64_t row,
                               int64_t column) {
  const auto columns = hn::LoadU(d, counts.columns + column);
  const auto divisor = hn::Mul(columns, hn::Set(d, counts.rows[row]));
  return hn::Div(sums, hn::Max(divisor, hn::Set(d, 1.0f)));
}

// Computes output rows [first, last] of one staged plane.
HWY_INLINE void AverageStaged(const ConvGeometry& g, const Stage& stage, const float* staged,
                              const int64_t* taps, int64_t first, int64_t last,
                              const Counts& counts, Half* y) {
  const DF df;
  for (int64_t row = first; row <= last; ++row) {
    const float* from = staged + stage.RowOffset(row);
    for (int64_t j = 0; j < g.out_w; j += kLanes) {
      const int64_t count = HWY_MIN(g.out_w - j, kLanes);
      VF sum = hn::Zero(df);  // so that no sum is -0
      for (int64_t t = 0; t < g.taps(); ++t) {
        sum = hn::Add(sum, hn::LoadU(df, from + taps[t] + j));
      }
      sum = Averaged(df, sum, counts, row, j);
      if (count == kLanes) {
        StoreHalf(sum, y + row * g.out_w + j);
      } else {
        StoreHalfN(sum, y + row * g.out_w + j, count);
      }
    }
  }
}

// Computes kRows x `columns` averages from (row, column) on, for the plane that begins at x. Sums
// are in the order of taps.
template <int kRows, int kTaps, int kStride, class D>
HWY_INLINE void AverageTile(const D d, const ConvGeometry& g, const Readable& input, const Half* x,
                            const TapColumns<kTaps, kStride, D>& taps, int64_t row, int64_t column,
                            int64_t columns, const Counts& counts, Half* y) {
  hn::Vec<D> result[kRows];
  HWY_UNROLL(7)
  for (int r = 0; r < kRows; ++r) result[r] = hn::Zero(d);
  const int64_t top = row * kStride - g.pad_top;
  HWY_UNROLL(17)
  for (int i = 0; i < (kRows - 1) * kStride + kTaps; ++i) {
    if (top + i < 0 || top + i >= g.in_h) continue;
    hn::Vec<D> from[kTaps];
    taps.LoadTaps(input, x + (top + i) * g.in_w, from);
    HWY_UNROLL(7)
    for (int r = 0; r < kRows; ++r) {
      const int tap = i - r * kStride;
      if (tap < 0 || tap >= kTaps) continue;
      HWY_UNROLL(5)
      for (int j = 0; j < kTaps; ++j) result[r] = hn::Add(result[r], from[j]);
    }
  }
  HWY_UNROLL(7)
  for (int r = 0; r < kRows; ++r) {
    const auto average = Averaged(d, result[r], counts, row + r, column);
    StoreFirst(d, average, y + (row + r) * g.out_w + column, columns);
  }
}

// Calls run(kernel, stride), with constants, if the windows are common ones, and returns whether
// they are.
template <class Run>
HWY_INLINE bool WithCommonWindow(const ConvGeometry& g, const Run& run) {
  if (g.dilation_h != 1 || g.dilation_w != 1) return false;
  if (g.kernel_h != g.kernel_w || g.stride_h != g.stride_w) return false;
  return WithOneOf<2, 3, 5>(g.kernel_w, [&](auto kernel) HWY_ATTR {
    return WithOneOf<1, 2>(g.stride_w, [&](auto stride) HWY_ATTR {
      run(kernel, stride);
      return true;
    });
  });
}

// Common windows are summed in the order of taps on every instruction set.
bool IsCommon(const ConvGeometry& g) {
  return WithCommonWindow(g, [](auto, auto) {});
}

// The sums of kLanes windows of a row, of which `count` are used.
HWY_INLINE VF WindowSums(const ConvGeometry& g, const float* from, int64_t count) {
  const DF df;
  VF sum = hn::Zero(df);
  if (g.stride_w > 2) {
    HWY_ALIGN float sums[kLanes] = {};
    for (int64_t j = 0; j < count; ++j, from += g.stride_w) {
      for (int64_t k = 0; k < g.kernel_w; ++k) sums[j] += from[k * g.dilation_w];
    }
    return hn::Load(df, sums);
  }
  for (int64_t k = 0; k < g.kernel_w; ++k, from += g.dilation_w) {
    VF next = hn::LoadU(df, from), odd;
    if (g.stride_w == 2) hn::LoadInterleaved2(df, from, next, odd);
    sum = hn::Add(sum, next);
  }
  return sum;
}

// Computes output rows [first, last] of one plane for other windows: for each row of outputs, first
// the sums of the input's columns, then those of the windows. `sums` has zeros for the padding,
// space for the columns of the input, and two vectors more.
HWY_INLINE void AverageByColumns(const ConvGeometry& g, const Half* x, int64_t first, int64_t last,
                                 const Counts& counts, float* sums, Half* y) {
  const DF df;
  for (int64_t i = first; i <= last; ++i) {
    const int64_t top = i * g.stride_h - g.pad_top;
    for (int64_t column = 0; column < g.in_w; column += kLanes) {
      const int64_t rest = g.in_w - column;
      VF sum = hn::Zero(df);  // so that no sum is -0
      for (int64_t k = 0; k < g.kernel_h; ++k) {
        const int64_t at = top + k * g.dilation_h;
        if (at < 0 || at >= g.in_h) continue;
        const Half* from = x + at * g.in_w + column;
        sum = hn::Add(sum, rest >= kLanes ? LoadHalf(from) : LoadHalfN(from, rest));
      }
      hn::StoreU(sum, df, sums + g.pad_left + column);
    }
    for (int64_t j = 0; j < g.out_w; j += kLanes) {
      const int64_t count = HWY_MIN(g.out_w - j, kLanes);
      const VF average = Averaged(df, WindowSums(g, sums + j * g.stride_w, count), counts, i, j);
      Half* const to = y + i * g.out_w + j;
      count == kLanes ? StoreHalf(average, to) : StoreHalfN(average, to, count);
    }
  }
}

// Computes output rows [first, last] of common windows directly from the input. Returns false if
// they need a stage.
HWY_INLINE bool AverageDirect(const ConvGeometry& g, const Readable& input, const Half* x,
                              int64_t first, int64_t last, const Counts& counts, Half* y) {
  if constexpr (ANEMONE_MATH_NATIVE_HALF) {
    return WithCommonWindow(g, [&](auto kernel, auto stride) HWY_ATTR {
      WithLanesFor(g.out_w, [&](auto d) HWY_ATTR {
        constexpr int64_t kColumns = hn::MaxLanes(decltype(d)());
        for (int64_t column = 0; column < g.out_w; column += kColumns) {
          const TapColumns<kernel, stride, decltype(d)> taps(g, column);
          ForTileRows(first, last, [&](auto rows, int64_t row) HWY_ATTR {
            const int64_t columns = HWY_MIN(g.out_w - column, kColumns);
            AverageTile<rows>(d, g, input, x, taps, row, column, columns, counts, y);
          });
        }
      });
    });
  }
  return false;
}

// Computes rows [first, last] of planes [begin, end).
void AveragePlanes(const ConvGeometry& g, int64_t begin, int64_t end, int64_t first, int64_t last,
                   const float* row_counts, const float* column_counts, const Half* x, Half* y) {
  const Counts counts{row_counts, column_counts};
  const int64_t in_size = g.in_h * g.in_w;
  if (!IsCommon(g)) {
    const int64_t read = (g.out_w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1;
    const int64_t size = HWY_MAX(read, g.pad_left + g.in_w) + 2 * kLanes;
    float* const sums = ThreadScratch<float>(ScratchUse::kStage, size);
    std::fill_n(sums, size, 0.0f);
    for (int64_t plane = begin; plane < end; ++plane) {
      AverageByColumns(g, x + plane * in_size, first, last, counts, sums,
                       y + plane * g.positions());
    }
    return;
  }
  const Readable input{x, x + g.batch * in_size};
  const Stage stage = PlanStage(g, first * g.out_w, (last - first + 1) * g.out_w);
  const int64_t* taps = TapOffsets(g, stage);
  float* staged = nullptr;
  for (int64_t plane = begin; plane < end; ++plane) {
    const Half* from = x + plane * in_size;
    Half* to = y + plane * g.positions();
    if (AverageDirect(g, input, from, first, last, counts, to)) continue;
    if (staged == nullptr) {
      staged = ThreadScratch<float>(ScratchUse::kStage, stage.channel_size + kLanes);
      StageOutside(stage, 0.0f, 1, staged);
    }
    StageChannel(g, stage, from, staged);
    AverageStaged(g, stage, staged, taps, first, last, counts, to);
  }
}

void MaxPlanes(const ConvGeometry& g, int64_t begin, int64_t end, int64_t first, int64_t last,
               const Half* x, Half* y) {
  MaxPoolRows(g, first, last)
      .Compute(x + begin * g.in_h * g.in_w, end - begin, y + begin * g.positions());
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(AveragePlanes);
HWY_EXPORT(MaxPlanes);

namespace {

ConvGeometry PoolGeometry(const PoolShape& shape) {
  const Window& w = shape.window;
  ConvGeometry g;
  g.batch = shape.planes;
  g.in_h = shape.in_h, g.in_w = shape.in_w;
  g.out_h = shape.out_h, g.out_w = shape.out_w;
  g.kernel_h = w.kernel_h, g.kernel_w = w.kernel_w;
  g.stride_h = w.stride_h, g.stride_w = w.stride_w;
  g.dilation_h = w.dilation_h, g.dilation_w = w.dilation_w;
  g.pad_top = w.pad_top, g.pad_left = w.pad_left;
  return g;
}

// Whether there is one window, which covers the plane.
bool IsGlobal(const PoolShape& shape) {
  const Window& w = shape.window;
  return shape.out_h == 1 && shape.out_w == 1 && w.pad_top == 0 && w.pad_left == 0 &&
         w.kernel_h == shape.in_h && w.kernel_w == shape.in_w && w.dilation_h == 1 &&
         w.dilation_w == 1;
}

// Writes, for each window along one axis, the number of positions that an average counts.
void CountInside(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_before,
                 int64_t pad_after, AverageDivisor divisor, absl::Span<float> counts) {
  const bool pads = divisor == AverageDivisor::kInsideAndPads;
  const int64_t low = pads ? -pad_before : 0;
  const int64_t high = pads ? in + pad_after : in;
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t count = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = static_cast<int64_t>(i) * stride - pad_before + k * dilation;
      if (at >= low && at < high) ++count;
    }
    counts[i] = static_cast<float>(count);
  }
}

// Calls pool(begin, end, first, last) in parallel, for planes [begin, end) and output rows [first,
// last]. An output costs as much as `reads` loads.
template <class Pool>
void RunPool(const ConvGeometry& g, int64_t reads, Half* y, const Epilogue& epilogue,
             const Pool& pool) {
  ForBands(g, g.batch, g.out_w * reads / 4,
           [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
             pool(begin, end, first, last);
             epilogue.FinishRuns(y + begin * g.positions() + first * g.out_w, end - begin,
                                 (last - first + 1) * g.out_w, g.positions());
           });
}

// Pools whole planes.
void PoolGlobally(const PoolShape& shape, ReduceOp op, absl::Span<const Half> x, absl::Span<Half> y,
                  const Epilogue& epilogue) {
  Reduce(op, {1, 1, shape.planes, shape.in_h, shape.in_w}, AxisSet({kAxisH, kAxisW}), x, y);
  epilogue.FinishAll(y.data(), shape.planes, 1, 1);
}

}  // namespace

PoolShape AsRows(PoolShape shape) {
  if (!IsOneColumn(shape.in_w, shape.out_w, shape.window)) return shape;
  std::swap(shape.in_h, shape.in_w);
  std::swap(shape.out_h, shape.out_w);
  shape.window = Turned(shape.window);
  return shape;
}

void MaxPool(const PoolShape& shape, absl::Span<const Half> x, absl::Span<Half> y,
             const Epilogue& epilogue) {
  assert(static_cast<int64_t>(x.size()) == shape.planes * shape.in_h * shape.in_w);
  assert(static_cast<int64_t>(y.size()) == shape.planes * shape.out_h * shape.out_w);
  if (IsGlobal(shape)) {
    return PoolGlobally(shape, ReduceOp::kMax, x, y, epilogue);
  }
  const ConvGeometry g = PoolGeometry(AsRows(shape));
  RunPool(g, g.kernel_h + g.kernel_w, y.data(), epilogue,
          [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
            HWY_DYNAMIC_DISPATCH(MaxPlanes)(g, begin, end, first, last, x.data(), y.data());
          });
}

void AveragePool(const PoolShape& shape, AverageDivisor divisor, absl::Span<const Half> x,
                 absl::Span<Half> y, const Epilogue& epilogue) {
  assert(static_cast<int64_t>(x.size()) == shape.planes * shape.in_h * shape.in_w);
  assert(static_cast<int64_t>(y.size()) == shape.planes * shape.out_h * shape.out_w);
  if (IsGlobal(shape)) {
    return PoolGlobally(shape, ReduceOp::kMean, x, y, epilogue);
  }
  const PoolShape turned = AsRows(shape);
  const ConvGeometry g = PoolGeometry(turned);
  const Window& w = turned.window;
  const CallScratch<float> rows(g.out_h), columns(g.out_w + kMostLanes);
  CountInside(g.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom, divisor,
              rows.span());
  CountInside(g.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right, divisor,
              columns.span());  // also after the last column, for whole vectors
  RunPool(g, g.taps(), y.data(), epilogue,
          [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
            HWY_DYNAMIC_DISPATCH(AveragePlanes)
            (g, begin, end, first, last, rows.data(), columns.data(), x.data(), y.data());
          });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
