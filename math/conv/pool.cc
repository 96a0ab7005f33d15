#include "math/conv/pool.h"

#include <algorithm>
#include <cassert>

#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"
#include "math/reduce/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/pool.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/conv/stage-inl.h"
#include "math/conv/tap_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The operations of pools. kOutside: the bits of a Half with which padding is filled.
struct Maximum {  // for numbers without NaN
  static constexpr bool kAverage = false;
  static constexpr uint16_t kOutside = 0xfc00;
  static HWY_INLINE VF Fold(VF a, VF b) { return LargerOf(a, b); }
  // Maps bits to signed integers with the order of the numbers, -0 below +0, and back.
  template <class D>
  static HWY_INLINE hn::Vec<D> InOrder(const D d, hn::Vec<D> bits) {
    const hn::RebindToSigned<D> ds;
    const auto sign = hn::BitCast(d, hn::ShiftRight<15>(hn::BitCast(ds, bits)));
    return hn::Xor(bits, hn::And(sign, hn::Set(d, 0x7fff)));
  }
};
struct MaximumNan {
  static constexpr bool kAverage = false;
  static HWY_INLINE VF Fold(VF a, VF b) { return MaxNan(a, b); }
};
struct Average {
  static constexpr bool kAverage = true;
  static constexpr uint16_t kOutside = 0;
  static HWY_INLINE VF Fold(VF a, VF b) { return hn::Add(a, b); }
};

HWY_INLINE bool HasNan(const Half* x, int64_t count) {
  const hn::ScalableTag<uint16_t> d;
  const int64_t lanes = hn::Lanes(d);
  auto largest = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::LoadU(d, reinterpret_cast<const uint16_t*>(x + i));
    largest = hn::Max(largest, hn::And(bits, hn::Set(d, 0x7fff)));
  }
  return !hn::AllFalse(d, hn::Gt(largest, hn::Set(d, 0x7c00))) ||
         std::any_of(x + i, x + count, IsNan);
}

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
template <class Op>
HWY_INLINE void PoolStaged(const ConvGeometry& g, const Stage& stage, const float* staged,
                           const int64_t* taps, int64_t first, int64_t last, const Counts& counts,
                           Half* y) {
  const DF df;
  for (int64_t row = first; row <= last; ++row) {
    const float* from = staged + stage.RowOffset(row);
    for (int64_t j = 0; j < g.out_w; j += kLanes) {
      const int64_t count = HWY_MIN(g.out_w - j, kLanes);
      VF result = hn::LoadU(df, from + taps[0] + j);
      if (Op::kAverage) result = hn::Add(hn::Zero(df), result);  // so that no sum is -0
      for (int64_t t = 1; t < g.taps(); ++t) {
        result = Op::Fold(result, hn::LoadU(df, from + taps[t] + j));
      }
      if (Op::kAverage) result = Averaged(df, result, counts, row, j);
      if (count == kLanes) {
        StoreHalf(result, y + row * g.out_w + j);
      } else {
        StoreHalfN(result, y + row * g.out_w + j, count);
      }
    }
  }
}

template <class D>
HWY_INLINE hn::Vec<D> MaxSigned(const D d, hn::Vec<D> a, hn::Vec<D> b) {
  const hn::RebindToSigned<D> ds;
  return hn::BitCast(d, hn::Max(hn::BitCast(ds, a), hn::BitCast(ds, b)));
}

// Computes kRows x `columns` maxima from (row, column) on, for the plane that begins at x.
template <class Op, int kRows, int kTaps, int kStride, class D>
HWY_INLINE void MaximumTile(const ConvGeometry& g, const Readable& input, const Half* x,
                            const TapColumns<kTaps, kStride, Op::kOutside, D>& taps, int64_t row,
                            int64_t column, int64_t columns, Half* y) {
  using Taps = TapColumns<kTaps, kStride, Op::kOutside, D>;
  const typename Taps::DL dl;
  using V = hn::Vec<typename Taps::DL>;
  V result[kRows];
  HWY_UNROLL(7)
  for (int r = 0; r < kRows; ++r) result[r] = Op::InOrder(dl, hn::Set(dl, Op::kOutside));
  const int64_t top = row * kStride - g.pad_top;
  HWY_UNROLL(17)
  for (int i = 0; i < (kRows - 1) * kStride + kTaps; ++i) {
    if (top + i < 0 || top + i >= g.in_h) continue;
    V loads[Taps::kLoads];
    taps.Load(input, x + (top + i) * g.in_w, loads);
    V most = Op::InOrder(dl, loads[0]);
    [[maybe_unused]] V odd = most;  // with stride 2: the maximum of the odd taps, in high halves
    HWY_UNROLL(5)
    for (int j = 1; j < Taps::kLoads; ++j) {
      most = MaxSigned(dl, most, Op::InOrder(dl, loads[j]));
      if (j * kStride + 1 < kTaps) odd = most;
    }
    if constexpr (kStride == 2) {
      const hn::Rebind<uint32_t, D> pairs;
      most = MaxSigned(dl, most, hn::BitCast(dl, hn::ShiftRight<16>(hn::BitCast(pairs, odd))));
    }
    HWY_UNROLL(7)
    for (int r = 0; r < kRows; ++r) {
      const int tap = i - r * kStride;
      if (tap >= 0 && tap < kTaps) result[r] = MaxSigned(dl, result[r], most);
    }
  }
  HWY_UNROLL(7)
  for (int r = 0; r < kRows; ++r) {
    const hn::Rebind<uint16_t, D> halves;
    Half* const to = y + (row + r) * g.out_w + column;
    result[r] = Op::InOrder(dl, result[r]);
    if constexpr (kStride == 1) {
      StoreFirstBits(halves, result[r], to, columns);
    } else {
      const auto pairs = hn::BitCast(hn::Rebind<uint32_t, D>(), result[r]);
      StoreFirstBits(halves, hn::TruncateTo(halves, pairs), to, columns);
    }
  }
}

// The same for averages. Sums are in the order of taps.
template <int kRows, int kTaps, int kStride, class D>
HWY_INLINE void AverageTile(const D d, const ConvGeometry& g, const Readable& input, const Half* x,
                            const TapColumns<kTaps, kStride, Average::kOutside, D>& taps,
                            int64_t row, int64_t column, int64_t columns, const Counts& counts,
                            Half* y) {
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

// Computes output rows [first, last] directly from the input. Returns false for less common
// windows, which need a stage.
template <class Op>
HWY_INLINE bool PoolDirect(const ConvGeometry& g, const Readable& input, const Half* x,
                           int64_t first, int64_t last, const Counts& counts, Half* y) {
  if constexpr (ANEMONE_MATH_NATIVE_HALF) {
    const bool is_dense = g.dilation_h == 1 && g.dilation_w == 1;
    if (!is_dense || g.kernel_h != g.kernel_w || g.stride_h != g.stride_w) return false;
    return WithOneOf<2, 3, 5>(g.kernel_w, [&](auto kernel) HWY_ATTR {
      return WithOneOf<1, 2>(g.stride_w, [&](auto stride) HWY_ATTR {
        WithLanesFor(g.out_w, [&](auto d) HWY_ATTR {
          constexpr int64_t kColumns = hn::MaxLanes(decltype(d)());
          for (int64_t column = 0; column < g.out_w; column += kColumns) {
            const TapColumns<kernel, stride, Op::kOutside, decltype(d)> taps(g, column);
            ForTileRows(first, last, [&](auto rows, int64_t row) HWY_ATTR {
              const int64_t columns = HWY_MIN(g.out_w - column, kColumns);
              if constexpr (Op::kAverage) {
                AverageTile<rows>(d, g, input, x, taps, row, column, columns, counts, y);
              } else {
                MaximumTile<Op, rows>(g, input, x, taps, row, column, columns, y);
              }
            });
          }
        });
        return true;
      });
    });
  }
  return false;
}

// Computes rows [first, last] of planes [begin, end): averages if row_counts is not null, else
// maxima.
void PoolPlanes(const ConvGeometry& g, int64_t begin, int64_t end, int64_t first, int64_t last,
                const float* row_counts, const float* column_counts, const Half* x, Half* y) {
  const Counts counts{row_counts, column_counts};
  const bool average = row_counts != nullptr;
  const int64_t in_size = g.in_h * g.in_w;
  const Readable input{x, x + g.batch * in_size};
  const Stage stage = PlanStage(g, first * g.out_w, (last - first + 1) * g.out_w);
  const int64_t* taps = TapOffsets(g, stage);
  float* staged = nullptr;
  for (int64_t plane = begin; plane < end; ++plane) {
    const Half* from = x + plane * in_size;
    Half* to = y + plane * g.positions();
    const auto direct = [&](auto op) HWY_ATTR {
      return PoolDirect<decltype(op)>(g, input, from, first, last, counts, to);
    };
    const bool has_nan = !average && HasNan(from, in_size);
    if (average ? direct(Average()) : !has_nan && direct(Maximum())) continue;
    if (staged == nullptr) {
      staged = ThreadScratch<float>(ScratchUse::kStage, stage.channel_size + kLanes);
      const uint16_t outside = average ? Average::kOutside : Maximum::kOutside;
      StageOutside(stage, ToFloat(Half{outside}), 1, staged);
    }
    StageChannel(g, stage, from, staged);
    const auto run = [&](auto op) HWY_ATTR {
      PoolStaged<decltype(op)>(g, stage, staged, taps, first, last, counts, to);
    };
    if (average) {
      run(Average());
    } else if (has_nan) {
      run(MaximumNan());
    } else {
      run(Maximum());
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

void RunPool(const PoolShape& shape, const ConvGeometry& g, absl::Span<const float> row_counts,
             absl::Span<const float> column_counts, const Half* x, Half* y,
             const Epilogue& epilogue) {
  ForBands(g, shape.planes, g.out_w * g.taps() / 4,
           [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
             HWY_DYNAMIC_DISPATCH(PoolPlanes)
             (g, begin, end, first, last, row_counts.data(), column_counts.data(), x, y);
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

void MaxPool(const PoolShape& shape, absl::Span<const Half> x, absl::Span<Half> y,
             const Epilogue& epilogue) {
  assert(static_cast<int64_t>(x.size()) == shape.planes * shape.in_h * shape.in_w);
  assert(static_cast<int64_t>(y.size()) == shape.planes * shape.out_h * shape.out_w);
  if (IsGlobal(shape)) {
    return PoolGlobally(shape, ReduceOp::kMax, x, y, epilogue);
  }
  RunPool(shape, PoolGeometry(shape), {}, {}, x.data(), y.data(), epilogue);
}

void AveragePool(const PoolShape& shape, AverageDivisor divisor, absl::Span<const Half> x,
                 absl::Span<Half> y, const Epilogue& epilogue) {
  assert(static_cast<int64_t>(x.size()) == shape.planes * shape.in_h * shape.in_w);
  assert(static_cast<int64_t>(y.size()) == shape.planes * shape.out_h * shape.out_w);
  if (IsGlobal(shape)) {
    return PoolGlobally(shape, ReduceOp::kMean, x, y, epilogue);
  }
  const ConvGeometry g = PoolGeometry(shape);
  const Window& w = shape.window;
  const CallScratch<float> rows(g.out_h), columns(g.out_w + kMostLanes);
  CountInside(g.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom, divisor,
              rows.span());
  CountInside(g.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right, divisor,
              columns.span());  // also after the last column, for whole vectors
  RunPool(shape, g, rows.span(), columns.span(), x.data(), y.data(), epilogue);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
