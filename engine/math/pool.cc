#include "engine/math/pool.h"

#include <cassert>

#include "engine/math/conv_state.h"
#include "engine/math/panels.h"
#include "engine/math/parallel.h"
#include "engine/math/reduce.h"
#include "engine/math/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/math/pool.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "engine/math/stage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

struct Maximum {  // of numbers
  static constexpr bool kAverage = false;
  static HWY_INLINE VF Fold(VF a, VF b) { return hn::Max(a, b); }
};
struct MaximumNan {
  static constexpr bool kAverage = false;
  static HWY_INLINE VF Fold(VF a, VF b) { return MaxNan(a, b); }
};
struct Average {
  static constexpr bool kAverage = true;
  static HWY_INLINE VF Fold(VF a, VF b) { return hn::Add(a, b); }
};

HWY_INLINE bool HasNan(const Half* x, int64_t count) {
  const hn::ScalableTag<uint16_t> d;
  const int64_t lanes = hn::Lanes(d);
  const auto magnitude = hn::Set(d, 0x7fff);
  auto largest = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::LoadU(d, reinterpret_cast<const uint16_t*>(x + i));
    largest = hn::Max(largest, hn::And(bits, magnitude));
  }
  for (; i < count; ++i) {
    if (IsNan(x[i])) return true;
  }
  return !hn::AllFalse(d, hn::Gt(largest, hn::Set(d, 0x7c00)));
}

// Output rows [first, last] of one staged plane. Averages divide by the product of a row's and a
// column's count.
template <class Op>
HWY_INLINE void PoolRows(const ConvGeometry& g, const Stage& stage, const float* staged,
                         const int64_t* taps, int64_t first, int64_t last, const float* row_counts,
                         const float* column_counts, Half* y) {
  const DF df;
  for (int64_t row = first; row <= last; ++row) {
    const float* from = staged + stage.RowOffset(row);
    for (int64_t j = 0; j < g.out_w; j += kLanes) {
      const int64_t count = HWY_MIN(g.out_w - j, kLanes);
      VF result = hn::LoadU(df, from + taps[0] + j);
      for (int64_t t = 1; t < g.taps(); ++t) {
        result = Op::Fold(result, hn::LoadU(df, from + taps[t] + j));
      }
      if (Op::kAverage) {
        const float* columns = column_counts + j;
        const VF counts = count == kLanes ? hn::LoadU(df, columns) : LoadFloatN(columns, count);
        const VF divisor = hn::Mul(counts, hn::Set(df, row_counts[row]));
        result = hn::Div(result, hn::Max(divisor, hn::Set(df, 1.0f)));
      }
      if (count == kLanes) {
        StoreHalf(result, y + row * g.out_w + j);
      } else {
        StoreHalfN(result, y + row * g.out_w + j, count);
      }
    }
  }
}

// Rows [first, last] of planes [begin, end): averages if there are counts, else maxima.
void PoolPlanes(const ConvGeometry& g, int64_t begin, int64_t end, int64_t first, int64_t last,
                const float* row_counts, const float* column_counts, const Half* x, Half* y) {
  const Stage stage = PlanStage(g, first * g.out_w, (last - first + 1) * g.out_w);
  const int64_t* taps = TapOffsets(g, stage);
  float* staged = ThreadScratch<float>(ScratchUse::kStage, stage.channel_size + kLanes);
  const bool average = row_counts != nullptr;
  const float outside = average ? 0.0f : -hwy::HighestValue<float>() * 2.0f;
  StageOutside(stage, outside, 1, staged);
  for (int64_t plane = begin; plane < end; ++plane) {
    const Half* from = x + plane * g.in_h * g.in_w;
    Half* to = y + plane * g.positions();
    StageChannel(g, stage, from, staged);
    if (average) {
      PoolRows<Average>(g, stage, staged, taps, first, last, row_counts, column_counts, to);
    } else if (HasNan(from, g.in_h * g.in_w)) {
      PoolRows<MaximumNan>(g, stage, staged, taps, first, last, row_counts, column_counts, to);
    } else {
      PoolRows<Maximum>(g, stage, staged, taps, first, last, row_counts, column_counts, to);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(PoolPlanes);

namespace {

ConvGeometry PoolGeometry(const PoolShape& shape) {
  const Window& w = shape.window;
  ConvGeometry g;
  g.in_h = shape.in_h, g.in_w = shape.in_w;
  g.out_h = shape.out_h, g.out_w = shape.out_w;
  g.kernel_h = w.kernel_h, g.kernel_w = w.kernel_w;
  g.stride_h = w.stride_h, g.stride_w = w.stride_w;
  g.dilation_h = w.dilation_h, g.dilation_w = w.dilation_w;
  g.pad_top = w.pad_top, g.pad_left = w.pad_left;
  return g;
}

// Whether the only window is the plane itself.
bool IsGlobal(const PoolShape& shape) {
  const Window& w = shape.window;
  return shape.out_h == 1 && shape.out_w == 1 && w.pad_top == 0 && w.pad_left == 0 &&
         w.kernel_h == shape.in_h && w.kernel_w == shape.in_w && w.dilation_h == 1 &&
         w.dilation_w == 1;
}

// How many of each window's positions, along one axis, are counted by an average.
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

void RunPool(const PoolShape& shape, const ConvGeometry& g, absl::Span<const float> row_counts,
             absl::Span<const float> column_counts, const Half* x, Half* y) {
  ForBands(g, shape.planes, g.out_w * g.taps() / 4,
           [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
             HWY_DYNAMIC_DISPATCH(PoolPlanes)
             (g, begin, end, first, last, row_counts.data(), column_counts.data(), x, y);
           });
}

}  // namespace

void MaxPool(const PoolShape& shape, absl::Span<const Half> x, absl::Span<Half> y) {
  assert(static_cast<int64_t>(x.size()) == shape.planes * shape.in_h * shape.in_w);
  assert(static_cast<int64_t>(y.size()) == shape.planes * shape.out_h * shape.out_w);
  if (IsGlobal(shape)) {
    return Reduce(ReduceOp::kMax, {1, 1, shape.planes, shape.in_h, shape.in_w},
                  AxisSet({kAxisH, kAxisW}), x, y);
  }
  RunPool(shape, PoolGeometry(shape), {}, {}, x.data(), y.data());
}

void AveragePool(const PoolShape& shape, AverageDivisor divisor, absl::Span<const Half> x,
                 absl::Span<Half> y) {
  assert(static_cast<int64_t>(x.size()) == shape.planes * shape.in_h * shape.in_w);
  assert(static_cast<int64_t>(y.size()) == shape.planes * shape.out_h * shape.out_w);
  if (IsGlobal(shape)) {
    return Reduce(ReduceOp::kMean, {1, 1, shape.planes, shape.in_h, shape.in_w},
                  AxisSet({kAxisH, kAxisW}), x, y);
  }
  const ConvGeometry g = PoolGeometry(shape);
  const Window& w = shape.window;
  const CallScratch<float> rows(g.out_h), columns(g.out_w);
  CountInside(g.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom, divisor,
              rows.span());
  CountInside(g.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right, divisor,
              columns.span());
  RunPool(shape, g, rows.span(), columns.span(), x.data(), y.data());
}

}  // namespace anemone::math
#endif  // HWY_ONCE
