// Convolutions of a batch of small images: lanes are images. Rows of positions would be shorter
// than vectors, so that unfolding them costs more than the products. With images as the last axis,
// each term of a position is a run of memory, which is read in place.
#include <algorithm>
#include <cstdint>

#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/image_lanes.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"
#include "math/gemm/kernel-inl.h"
#include "math/gemm/weight_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Where the terms of a position are, in [channel][row][column][48]. In the padding they are zeros,
// which follow the last channel.
HWY_INLINE void FindTerms(const ConvGeometry& g, int64_t position, int64_t* to) {
  const int64_t top = position / g.out_w * g.stride_h - g.pad_top;
  const int64_t left = position % g.out_w * g.stride_w - g.pad_left;
  const int64_t zeros = g.group_in * g.in_h * g.in_w;
  for (int64_t c = 0; c < g.group_in; ++c) {
    for (int64_t kh = 0; kh < g.kernel_h; ++kh) {
      const int64_t row = top + kh * g.dilation_h;
      const bool in_row = row >= 0 && row < g.in_h;
      for (int64_t kw = 0; kw < g.kernel_w; ++kw) {
        const int64_t column = left + kw * g.dilation_w;
        const bool inside = in_row && column >= 0 && column < g.in_w;
        *to++ = (inside ? (c * g.in_h + row) * g.in_w + column : zeros) * kPanelColumns;
      }
    }
  }
}

// Writes the positions of one phase to [channel][row][column][48].
HWY_INLINE void MultiplyPhase(const PackedConv::State& phase, const Half* x, int64_t images,
                              Half* y) {
  const ConvGeometry& g = phase.geometry;
  const int64_t depth = g.depth();
  float* const a =
      ThreadScratch<float>(ScratchUse::kPanelA, RoundUp(g.group_out, kTileRows) * depth);
  for (int64_t i = 0; i < g.group_out; i += kPanelRows) {
    FillPanel(phase.weights->panels, i / kPanelRows, 0, depth, a + i * depth);
  }
  int64_t* const terms = ThreadScratch<int64_t>(ScratchUse::kTaps, depth);
  for (int64_t position = 0; position < g.positions(); ++position) {
    FindTerms(g, position, terms);
    const int64_t at = g.y_first + position / g.out_w * g.y_row + position % g.out_w * g.y_column;
    for (int64_t i = 0; i < g.group_out; i += kTileRows) {
      const int64_t rows = HWY_MIN(g.group_out - i, kTileRows);
      const HalfTile to = {.to = y + (i * g.y_plane + at) * kPanelColumns,
                           .row_step = g.y_plane * kPanelColumns,
                           .row_bias = phase.bias.data() + i,
                           .rows = rows,
                           .columns = images};
      MultiplyTile(depth, a + i * depth, depth * kPanelRows, rows, UnpackedColumns<Half>{x, terms},
                   images, nullptr, to, Ahead());
    }
  }
}

// All phases of up to 48 images.
void MultiplyImages(absl::Span<const PackedConv::State* const> phases, const Half* x,
                    int64_t images, Half* y, const Epilogue& epilogue) {
  const ConvGeometry& g = phases[0]->geometry;
  const int64_t in_size = g.group_in * g.in_h * g.in_w, out_size = g.group_out * g.y_plane;
  Half* const in = ThreadScratch<Half>(ScratchUse::kStage, (in_size + 1) * kPanelColumns);
  Half* const out = ThreadScratch<Half>(ScratchUse::kStrips, out_size * kPanelColumns);
  TransposeTile([&](int64_t i) HWY_ATTR { return x + i * in_size; }, images, in_size, in,
                kPanelColumns);
  std::fill_n(in + in_size * kPanelColumns, kPanelColumns, kHalfZero);
  for (const PackedConv::State* phase : phases) MultiplyPhase(*phase, in, images, out);
  TransposeTile([&](int64_t i) HWY_ATTR { return out + i * kPanelColumns; }, out_size, images, y,
                out_size);
  epilogue.FinishRuns(y, images * g.group_out, g.y_plane, g.y_plane);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(MultiplyImages);

bool ImagesFillVectors(const ConvGeometry& g) {
  constexpr int64_t kLeastBatch = 2 * kMostLanes, kMostWeights = 1 << 16, kMostElements = 1 << 14;
  if (g.batch < kLeastBatch || !FillsVectors(g.batch)) return false;
  if (g.groups > 1 || g.out_w > kMostLanes || (g.pointwise() && g.dense_output())) return false;
  // The weights, and what the images read and write, stay in the second-level cache.
  return g.depth() > 0 && g.depth() <= kBlockDepth && g.group_out * g.depth() <= kMostWeights &&
         g.group_in * g.in_h * g.in_w + g.group_out * g.y_plane <= kMostElements;
}

void RunImageLanes(absl::Span<const PackedConv::State* const> phases, const Half* x, Half* y,
                   const Epilogue& epilogue) {
  const ConvGeometry& g = phases[0]->geometry;
  const int64_t in_size = g.group_in * g.in_h * g.in_w, out_size = g.group_out * g.y_plane;
  const int64_t parts = std::min(RoundUp(CeilDiv(g.batch, kPanelColumns), ThreadCount()),
                                 CeilDiv(g.batch, kMostLanes));
  const int64_t cost = out_size * g.depth() * g.batch / parts / 16;
  ParallelForItems(parts, cost, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const Part images(g.batch, kMostLanes, part, parts);
      HWY_DYNAMIC_DISPATCH(MultiplyImages)
      (phases, x + images.first * in_size, images.size(), y + images.first * out_size, epilogue);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
