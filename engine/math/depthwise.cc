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

// kRows x kVectors outputs from (row, column) on, all sums in registers.
template <int kRows, int kVectors>
HWY_INLINE void DepthwiseTile(const DepthwiseRows& d, int64_t row, int64_t column) {
  const DF df;
  const ConvGeometry& g = *d.geometry;
  const int64_t row_step = d.stage->stride_h * d.stage->row_size;
  const float* from = d.staged + d.stage->RowOffset(row) + column;
  VF sum[kRows][kVectors];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(df);
  }
  for (int64_t t = 0; t < g.taps(); ++t) {
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
  const VF bias = hn::Set(df, d.bias);
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

// Narrow planes take several rows at once, wide ones several vectors: four sums in flight.
template <int kRows>
HWY_INLINE void DepthwiseRow(const DepthwiseRows& d, int64_t row) {
  int64_t column = 0;
  const int64_t width = d.geometry->out_w;
  for (; width - column > 3 * kLanes; column += 4 * kLanes) {
    DepthwiseTile<kRows, 4>(d, row, column);
  }
  for (; width - column > kLanes; column += 2 * kLanes) DepthwiseTile<kRows, 2>(d, row, column);
  if (column < width) DepthwiseTile<kRows, 1>(d, row, column);
}

// Rows [first, last] of the outputs of input planes [begin, end), counted over images and channels.
void ComputeDepthwise(const PackedConv::State& state, int64_t begin, int64_t end, int64_t first,
                      int64_t last, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  const Stage stage = PlanStage(g, first * g.out_w, (last - first + 1) * g.out_w);
  const int64_t* taps = TapOffsets(g, stage);
  // A tile of four vectors may read three whole ones past the end.
  float* staged = ThreadScratch<float>(ScratchUse::kStage, stage.channel_size + 4 * kLanes);
  for (int64_t plane = begin; plane < end; ++plane) {
    StageChannel(g, stage, 0.0f, x + plane * g.in_h * g.in_w, staged);
    for (int64_t o = 0; o < g.group_out; ++o) {
      const int64_t out_channel = plane % g.groups * g.group_out + o;
      const DepthwiseRows rows{&g,
                               &stage,
                               staged,
                               taps,
                               state.taps.data() + out_channel * g.taps(),
                               state.bias[out_channel],
                               y + (plane * g.group_out + o) * g.y_plane};
      int64_t row = first;
      if (g.out_w <= 2 * kLanes) {
        for (; row + 4 <= last + 1; row += 4) DepthwiseRow<4>(rows, row);
      }
      for (; row <= last; ++row) DepthwiseRow<1>(rows, row);
      if (g.dense_output()) {
        epilogue.Finish(rows.y + first * g.out_w, (last - first + 1) * g.out_w);
      }
    }
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
