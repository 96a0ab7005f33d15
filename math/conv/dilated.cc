// Convolutions whose taps are `dilation` positions apart. The rows and columns with the same
// remainder by the dilation are an image whose taps are adjacent, so Winograd's products can be
// used: the input is split into these images, and those of the result are interleaved.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/dilated.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"

// Where the parts of one plane are: the one of rows i, i + dilation_h, .. and columns j, j +
// dilation_w, .. is at i * row_step + j * column_step.
#ifndef ANEMONE_MATH_CONV_DILATED_PARTS
#define ANEMONE_MATH_CONV_DILATED_PARTS
namespace anemone::math {
struct PlaneParts {
  int64_t by_rows, by_columns;  // the dilations; 1 where there is one tap
  int64_t rows, columns;        // of each
  int64_t row_step, column_step;
};
}  // namespace anemone::math
#endif

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Splits one plane of the input, with zeros for its padding and after its end.
void SplitPlane(const ConvGeometry& g, const PlaneParts& parts, const Half* x, Half* to) {
  const int64_t size = parts.by_columns * parts.columns;
  const int64_t inside = HWY_MIN(g.in_w, size - g.pad_left);
  Half* const padded = ThreadScratch<Half>(ScratchUse::kStage, size);
  std::fill_n(padded, size, kHalfZero);
  for (int64_t i = 0; i < parts.rows * parts.by_rows; ++i) {
    const int64_t from = i - g.pad_top;
    if (from >= 0 && from < g.in_h) {
      std::copy_n(x + from * g.in_w, inside, padded + g.pad_left);
    } else {
      std::fill_n(padded + g.pad_left, inside, kHalfZero);
    }
    SeparateRuns(padded, parts.by_columns, parts.columns,
                 to + i % parts.by_rows * parts.row_step + i / parts.by_rows * parts.columns,
                 parts.column_step);
  }
}

// Interleaves the parts of one output plane. The last rows and columns of some are beyond its end.
void JoinPlane(const ConvGeometry& g, const PlaneParts& parts, const Half* from, Half* y) {
  const int64_t whole = g.out_w / parts.by_columns;
  for (int64_t i = 0; i < g.out_h; ++i, y += g.out_w) {
    const Half* const row =
        from + i % parts.by_rows * parts.row_step + i / parts.by_rows * parts.columns;
    InterleaveRuns(row, parts.column_step, parts.by_columns, whole, y);
    for (int64_t j = whole * parts.by_columns; j < g.out_w; ++j) {
      y[j] = row[j % parts.by_columns * parts.column_step + whole];
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(SplitPlane);
HWY_EXPORT(JoinPlane);

namespace {

int64_t DilationOf(int64_t taps, int64_t dilation) { return taps == 1 ? 1 : dilation; }

// Taps above or below a single row read padding, which rows of one image do not have.
bool IsRow(const ConvGeometry& g) { return g.in_h == 1 && g.out_h == 1 && g.kernel_h == 1; }

// The parts of a plane of [rows][columns], if an image has `channels` of them. Those of one row are
// the rows of one image, others are images.
PlaneParts PartsOf(const ConvGeometry& g, int64_t channels, int64_t rows, int64_t columns) {
  PlaneParts parts = {.by_rows = DilationOf(g.kernel_h, g.dilation_h),
                      .by_columns = DilationOf(g.kernel_w, g.dilation_w),
                      .rows = rows,
                      .columns = columns};
  if (IsRow(g)) {
    parts.rows = 1;
    parts.column_step = columns;
  } else {
    parts.column_step = channels * rows * columns;
  }
  parts.row_step = parts.by_columns * parts.column_step;
  return parts;
}

}  // namespace

std::optional<ConvGeometry> SplitGeometry(const ConvGeometry& g) {
  const int64_t by_rows = DilationOf(g.kernel_h, g.dilation_h);
  const int64_t by_columns = DilationOf(g.kernel_w, g.dilation_w);
  const auto is_padded = [](int64_t pad, int64_t taps, int64_t dilation) {
    return pad >= 0 && pad <= (taps - 1) * dilation;
  };
  if (by_rows * by_columns == 1 || g.stride_h != 1 || g.stride_w != 1 || !g.dense_output() ||
      !is_padded(g.pad_top, g.kernel_h, by_rows) ||
      !is_padded(g.pad_left, g.kernel_w, by_columns)) {
    return std::nullopt;
  }
  ConvGeometry split = g;
  split.dilation_w = split.dilation_h = 1;
  split.pad_top = split.pad_left = 0;
  split.out_h = CeilDiv(g.out_h, by_rows);
  split.out_w = split.y_row = CeilDiv(g.out_w, by_columns);
  split.in_h = split.out_h + g.kernel_h - 1;
  split.in_w = split.out_w + g.kernel_w - 1;
  if (IsRow(g)) {
    split.in_h = split.out_h = by_columns;
  } else {
    split.batch *= by_rows * by_columns;
  }
  split.y_plane = split.positions();
  // With fewer channels, splitting and interleaving take the time that is saved, as do positions
  // beyond the end if they are more than an eighth.
  constexpr int64_t kFewChannels = 32;
  const bool pays = g.group_in >= kFewChannels && g.group_out >= kFewChannels &&
                    split.batch * split.positions() * 8 <= g.batch * g.positions() * 9 &&
                    WinogradPays(split);
  return pays ? std::optional(split) : std::nullopt;
}

void RunDilated(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry &g = state.geometry, &split = state.split->state().geometry;
  const int64_t in_channels = g.groups * g.group_in, out_channels = g.groups * g.group_out;
  const int64_t images = split.batch / g.batch;  // for each of the input
  const int64_t in_size = split.in_h * split.in_w, out_size = split.positions();
  const int64_t in_count = split.batch * in_channels * in_size;
  const int64_t out_count = split.batch * out_channels * out_size;
  // Rounded up, so that layers of similar sizes use the same memory.
  constexpr int64_t kStep = (1 << 20) / sizeof(Half);
  const CallScratch<Half> in(RoundUp(in_count, kStep)), out(RoundUp(out_count, kStep));
  const PlaneParts from = PartsOf(g, in_channels, split.in_h, split.in_w);
  const PlaneParts to = PartsOf(g, out_channels, split.out_h, split.out_w);
  const auto first = [&](int64_t plane, int64_t channels) {
    return plane / channels * images * channels + plane % channels;
  };
  ParallelForItems(g.batch * in_channels, images * in_size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      HWY_DYNAMIC_DISPATCH(SplitPlane)
      (g, from, x + i * g.in_h * g.in_w, in.data() + first(i, in_channels) * in_size);
    }
  });
  Conv(*state.split, in.span().first(in_count), out.span().first(out_count));
  ParallelForItems(g.batch * out_channels, images * out_size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Half* const plane = y + i * g.positions();
      HWY_DYNAMIC_DISPATCH(JoinPlane)
      (g, to, out.data() + first(i, out_channels) * out_size, plane);
      epilogue.FinishRuns(plane, 1, g.positions(), 0);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
