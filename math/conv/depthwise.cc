// Convolutions with one input channel per group. Each output is a short direct sum, so nothing is
// unfolded. Common kernels read the input in place (depthwise-inl.h). For others a plane is staged
// once as float, and the taps read shifted runs of it.
#include <cstdint>
#include <iterator>
#include <limits>

#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/depthwise.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/conv/depthwise-inl.h"
#include "math/conv/stage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// One output channel whose input is staged.
struct StagedPlane {
  const ConvGeometry* geometry;
  const float* weights;  // one per tap
  float bias;
  Limits limits;
  Half* y;
  const Stage* stage;
  const float* staged;
  const int64_t* offsets;  // of each tap in the stage
};

// Computes kRows rows of kVectors vectors of outputs from (row, column) on, with all sums in
// registers.
template <int kRows, int kVectors>
HWY_INLINE void StagedTile(const StagedPlane& p, int64_t row, int64_t column) {
  const DF df;
  const ConvGeometry& g = *p.geometry;
  const int64_t row_step = p.stage->stride_h * p.stage->row_size;
  const float* from = p.staged + p.stage->RowOffset(row) + column;
  VF sum[kRows][kVectors];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(df);
  }
  for (int64_t t = 0; t < g.taps(); ++t) {
    const VF w = hn::Set(df, p.weights[t]);
    const float* x = from + p.offsets[t];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = hn::MulAdd(w, hn::LoadU(df, x + r * row_step + v * kLanes), sum[r][v]);
      }
    }
  }
  const VF bias = hn::Set(df, p.bias);
  const VF lo = hn::Set(df, p.limits.lo), hi = hn::Set(df, p.limits.hi);
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    Half* to = p.y + g.y_first + (row + r) * g.y_row + column * g.y_column;
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      const VH y = Narrow(AtMost(hi, AtLeast(lo, hn::Add(sum[r][v], bias))));
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

// Computes rows [first, last] in tiles of four rows, then of two and one.
void StagedRows(const StagedPlane& p, int64_t first, int64_t last) {
  const int64_t width = p.geometry->out_w;
  const auto rows = [&]<int kRows>(int64_t row) HWY_ATTR {
    int64_t column = 0;
    for (; width - column > kLanes; column += 2 * kLanes) StagedTile<kRows, 2>(p, row, column);
    if (column < width) StagedTile<kRows, 1>(p, row, column);
  };
  int64_t row = first;
  for (; row + 4 <= last + 1; row += 4) rows.template operator()<4>(row);
  if (row + 2 <= last + 1) {
    rows.template operator()<2>(row);
    row += 2;
  }
  if (row <= last) rows.template operator()<1>(row);
}

// Whether depthwise-inl.h has code for this convolution. If so, calls run(d, taps, row stride,
// column stride); all arguments except d are compile-time constants.
template <class Run>
HWY_INLINE bool WithDirect(const PackedConv::State& state, const Run& run) {
  if constexpr (ANEMONE_MATH_NATIVE_HALF) {
    const ConvGeometry& g = state.geometry;
    const bool is_dilated = g.dilation_h > 1 || g.dilation_w > 1;
    const bool is_strided = g.stride_h > 1 || g.stride_w > 1;
    if (g.kernel_h != g.kernel_w || !g.dense_output() || (is_dilated && is_strided)) return false;
    // An infinite or NaN tap gives a NaN with the zeros of the padding, which this code skips.
    if (!state.weights->finite_taps) return false;
    return WithOneOf<1, 3, 5, 7>(g.kernel_w, [&](auto taps) HWY_ATTR {
      return WithOneOf<1, 2>(g.stride_h, [&](auto rows) HWY_ATTR {
        return WithOneOf<1, 2>(g.stride_w, [&](auto columns) HWY_ATTR {
          WithLanesFor(g.out_w, [&](auto d) HWY_ATTR { run(d, taps, rows, columns); });
          return true;
        });
      });
    });
  }
  return false;
}

// Computes output rows [first, last] for input planes [begin, end), counted over images and
// channels.
void ComputeDepthwise(const PackedConv::State& state, int64_t begin, int64_t end, int64_t first,
                      int64_t last, const Half* x, Half* y, const Epilogue& epilogue) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const ConvGeometry& g = state.geometry;
  const Epilogue rest = epilogue.rest();
  const Limits limits =
      epilogue.limits() != nullptr ? *epilogue.limits() : Limits{-kInfinity, kInfinity};
  const int64_t in_size = g.in_h * g.in_w;
  const int64_t count = (last - first + 1) * g.out_w;
  int64_t finished = begin;
  // For each plane calls stage(plane of x), then run(weights, bias, y) for each of its output
  // channels. Calls finish() when results are needed.
  const auto for_channels = [&](const auto& stage, const auto& run, const auto& finish) HWY_ATTR {
    for (int64_t plane = begin; plane < end; ++plane) {
      stage(x + plane * in_size);
      for (int64_t o = 0; o < g.group_out; ++o) {
        const int64_t channel = plane % g.groups * g.group_out + o;
        run(state.weights->taps.data() + channel * g.taps(), state.bias[channel],
            y + (plane * g.group_out + o) * g.y_plane);
      }
      const int64_t planes = (plane + 1 - finished) * g.group_out;
      if (planes * count < kNearElements && plane + 1 < end) continue;
      finish();
      if (!g.dense_output()) continue;
      rest.FinishRuns(y + finished * g.group_out * g.y_plane + first * g.out_w, planes, count,
                      g.y_plane);
      finished = plane + 1;
    }
  };
  const bool direct =
      WithDirect(state, [&](auto d, auto taps, auto row_step, auto column_step) HWY_ATTR {
        const Readable input = {x, x + g.batch * g.groups * in_size};
        const DepthwiseRows<taps, row_step, column_step, decltype(d)> rows(g, input, first, last);
        const Half* near = x;
        DepthwiseChannel channels[16];
        DepthwiseChannel* next = channels;
        const auto compute = [&]() HWY_ATTR {
          rows.Compute(channels, next);
          next = channels;
        };
        for_channels([&](const Half* plane) { near = plane; },
                     [&](const float* weights, float bias, Half* to) HWY_ATTR {
                       *next++ = {weights, bias, near, to, limits};
                       if (next == std::end(channels)) compute();
                     },
                     compute);
      });
  if (direct) return;
  const Stage stage = PlanStage(g, first * g.out_w, count);
  const int64_t* taps = TapOffsets(g, stage);
  // A tile of two vectors may read a whole vector past the end.
  float* staged = ThreadScratch<float>(ScratchUse::kStage, stage.channel_size + 2 * kLanes);
  StageOutside(stage, 0.0f, 1, staged);
  for_channels([&](const Half* plane) HWY_ATTR { StageChannel(g, stage, plane, staged); },
               [&](const float* weights, float bias, Half* to) HWY_ATTR {
                 StagedRows({&g, weights, bias, limits, to, &stage, staged, taps}, first, last);
               },
               [] {});
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
