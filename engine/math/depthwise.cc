// Convolutions with one input channel per group: each output is a short direct sum, so nothing is
// unfolded; a plane is staged once as float and the taps read shifted runs of it.
#include <cstdint>

#include "engine/math/conv_state.h"
#include "engine/math/panels.h"
#include "engine/math/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/math/depthwise.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "engine/math/stage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// One output channel over some rows of its plane.
struct DepthwiseRows {
  const ConvGeometry* geometry;
  const Stage* stage;
  const float* staged;
  const int64_t* offsets;  // of each tap in the stage
  const float* weights;    // of each tap
  float bias;
  Half* y;  // the plane
};

// kRows x kVectors sums from (row, column) on, rounded.
template <int kRows, int kVectors>
HWY_INLINE void StoreOutputs(const DepthwiseRows& d, int64_t row, int64_t column,
                             const VF (&sum)[kRows][kVectors]) {
  const ConvGeometry& g = *d.geometry;
  const VF bias = hn::Set(DF(), d.bias);
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    Half* to = d.y + g.y_first + (row + r) * g.y_row + column * g.y_column;
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      const VH y = Narrow(hn::Add(sum[r][v], bias));
      const int64_t count = HWY_MIN(g.out_w - column - v * kLanes, kLanes);
      if (g.y_column == 1 && count == kLanes) {
        StoreBits(y, to + v * kLanes);
      } else if (g.y_column == 1) {
        StoreBitsN(y, to + v * kLanes, count);
      } else {
        HWY_ALIGN Half halves[kLanes];
        StoreBits(y, halves);
        for (int64_t i = 0; i < count; ++i) to[(v * kLanes + i) * g.y_column] = halves[i];
      }
    }
  }
}

// kRows x kVectors outputs, all sums in registers, by any kernel.
template <int kRows, int kVectors>
HWY_INLINE void AnyTile(const DepthwiseRows& d, int64_t row, int64_t column) {
  const DF df;
  const int64_t row_step = d.stage->stride_h * d.stage->row_size;
  const float* from = d.staged + d.stage->RowOffset(row) + column;
  VF sum[kRows][kVectors];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(df);
  }
  for (int64_t t = 0; t < d.geometry->taps(); ++t) {
    const VF w = hn::Set(df, d.weights[t]);
    const float* x = from + d.offsets[t];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = hn::MulAdd(w, hn::LoadU(df, x + r * row_step + v * kLanes), sum[r][v]);
      }
    }
  }
  StoreOutputs(d, row, column, sum);
}

// The same by a kernel of kTaps x kTaps whose rows of outputs are kStride apart: a row of the stage
// is read once for all outputs that it belongs to. Sums run in the same order.
template <int kTaps, int kStride, int kRows, int kVectors>
HWY_INLINE void SquareTile(const DepthwiseRows& d, int64_t row, int64_t column) {
  const DF df;
  const float* from = d.staged + d.stage->RowOffset(row) + column;
  VF sum[kRows][kVectors];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(df);
  }
  HWY_UNROLL(11)
  for (int i = 0; i < (kRows - 1) * kStride + kTaps; ++i, from += d.stage->row_size) {
    HWY_UNROLL(5)
    for (int j = 0; j < kTaps; ++j) {
      VF x[kVectors];
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(df, from + d.offsets[j] + v * kLanes);
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const int tap = i - r * kStride;
        if (tap < 0 || tap >= kTaps) continue;
        const VF w = hn::Set(df, d.weights[tap * kTaps + j]);
        HWY_UNROLL(2)
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(w, x[v], sum[r][v]);
      }
    }
  }
  StoreOutputs(d, row, column, sum);
}

// The rows [first, last] by tiles: those of four rows, and the rest. Tile::Run<kRows, kVectors>().
template <class Tile>
HWY_INLINE void TileRows(const DepthwiseRows& d, int64_t first, int64_t last) {
  const int64_t width = d.geometry->out_w;
  const auto rows = [&]<int kRows>(int64_t row) HWY_ATTR {
    int64_t column = 0;
    for (; width - column > kLanes; column += 2 * kLanes) {
      Tile::template Run<kRows, 2>(d, row, column);
    }
    if (column < width) Tile::template Run<kRows, 1>(d, row, column);
  };
  int64_t row = first;
  for (; row + 4 <= last + 1; row += 4) rows.template operator()<4>(row);
  if (row + 2 <= last + 1) {
    rows.template operator()<2>(row);
    row += 2;
  }
  if (row <= last) rows.template operator()<1>(row);
}

struct Any {
  template <int kRows, int kVectors>
  static HWY_INLINE void Run(const DepthwiseRows& d, int64_t row, int64_t column) {
    AnyTile<kRows, kVectors>(d, row, column);
  }
};
template <int kTaps, int kStride>
struct Square {
  template <int kRows, int kVectors>
  static HWY_INLINE void Run(const DepthwiseRows& d, int64_t row, int64_t column) {
    SquareTile<kTaps, kStride, kRows, kVectors>(d, row, column);
  }
};

void PlaneRows(const DepthwiseRows& d, int64_t first, int64_t last) {
  const ConvGeometry& g = *d.geometry;
  const Stage& s = *d.stage;
  const int64_t taps = g.kernel_h == g.kernel_w && s.dilation_h == 1 ? g.kernel_h : 0;
  if (taps == 3 && s.stride_h == 1) return TileRows<Square<3, 1>>(d, first, last);
  if (taps == 3 && s.stride_h == 2) return TileRows<Square<3, 2>>(d, first, last);
  if (taps == 5 && s.stride_h == 1) return TileRows<Square<5, 1>>(d, first, last);
  if (taps == 5 && s.stride_h == 2) return TileRows<Square<5, 2>>(d, first, last);
  TileRows<Any>(d, first, last);
}

// Rows [first, last] of the outputs of input planes [begin, end), counted over images and channels.
void ComputeDepthwise(const PackedConv::State& state, int64_t begin, int64_t end, int64_t first,
                      int64_t last, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  const Stage stage = PlanStage(g, first * g.out_w, (last - first + 1) * g.out_w);
  const int64_t* taps = TapOffsets(g, stage);
  // A tile of two vectors may read a whole one past the end.
  float* staged = ThreadScratch<float>(ScratchUse::kStage, stage.channel_size + 2 * kLanes);
  StageOutside(stage, 0.0f, 1, staged);
  const int64_t count = (last - first + 1) * g.out_w;
  int64_t finished = begin;
  for (int64_t plane = begin; plane < end; ++plane) {
    StageChannel(g, stage, x + plane * g.in_h * g.in_w, staged);
    for (int64_t o = 0; o < g.group_out; ++o) {
      const int64_t out_channel = plane % g.groups * g.group_out + o;
      const DepthwiseRows rows{&g,
                               &stage,
                               staged,
                               taps,
                               state.taps.data() + out_channel * g.taps(),
                               state.bias[out_channel],
                               y + (plane * g.group_out + o) * g.y_plane};
      PlaneRows(rows, first, last);
    }
    const int64_t planes = (plane + 1 - finished) * g.group_out;
    if (!g.dense_output() || (planes * count < kNearElements && plane + 1 < end)) continue;
    epilogue.FinishRuns(y + finished * g.group_out * g.y_plane + first * g.out_w, planes, count,
                        g.y_plane);
    finished = plane + 1;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeDepthwise);

void RunDepthwise(const PackedConv::State& state, const Half* x, Half* y,
                  const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  const int64_t cost = g.out_w * g.group_out * g.taps() / 8;
  ForBands(g, g.batch * g.groups, cost,
           [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
             HWY_DYNAMIC_DISPATCH(ComputeDepthwise)(state, begin, end, first, last, x, y, epilogue);
           });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
