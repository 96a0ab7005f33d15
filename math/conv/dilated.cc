// Convolutions of one row whose taps are `dilation` positions apart. The positions with the same
// remainder by the dilation are a row whose taps are adjacent, so Winograd's products can be used:
// the input is split into these rows, and the rows of the result are interleaved.
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

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Splits one row of the input, with zeros for its padding and after its end. `rows` is the geometry
// of the split rows.
void SplitRow(const ConvGeometry& g, const ConvGeometry& rows, const Half* x, Half* to) {
  const int64_t size = rows.in_h * rows.in_w, inside = HWY_MIN(g.in_w, size - g.pad_left);
  Half* const padded = ThreadScratch<Half>(ScratchUse::kStage, size);
  std::fill_n(padded, g.pad_left, kHalfZero);
  std::copy_n(x, inside, padded + g.pad_left);
  std::fill(padded + g.pad_left + inside, padded + size, kHalfZero);
  SeparateRuns(padded, rows.in_h, rows.in_w, to, rows.in_w);
}

// Interleaves the rows of one output channel. The last columns of some rows are beyond the end.
void JoinRows(const ConvGeometry& g, const ConvGeometry& rows, const Half* from, Half* y) {
  const int64_t whole = g.out_w / rows.out_h;
  InterleaveRuns(from, rows.out_w, rows.out_h, whole, y);
  for (int64_t i = whole * rows.out_h; i < g.out_w; ++i) {
    y[i] = from[i % rows.out_h * rows.out_w + whole];
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(SplitRow);
HWY_EXPORT(JoinRows);

std::optional<ConvGeometry> SplitGeometry(const ConvGeometry& g) {
  const bool is_row = g.in_h == 1 && g.out_h == 1 && g.kernel_h == 1 && g.pad_top == 0;
  const bool is_padded = g.pad_left >= 0 && g.pad_left <= (g.kernel_w - 1) * g.dilation_w;
  if (!is_row || g.dilation_w == 1 || g.stride_w != 1 || !is_padded || !g.dense_output()) {
    return std::nullopt;
  }
  ConvGeometry rows = g;
  rows.dilation_w = rows.dilation_h = rows.stride_h = 1;
  rows.in_h = rows.out_h = g.dilation_w;
  rows.out_w = rows.y_row = CeilDiv(g.out_w, g.dilation_w);
  rows.in_w = rows.out_w + g.kernel_w - 1;
  rows.pad_left = 0;
  rows.y_plane = rows.positions();
  // With fewer channels, splitting and interleaving take the time that is saved, as do positions
  // beyond the end if they are more than an eighth.
  constexpr int64_t kFewChannels = 32;
  const bool pays = g.group_in >= kFewChannels && g.group_out >= kFewChannels &&
                    rows.positions() * 8 <= g.positions() * 9 && WinogradPays(rows);
  return pays ? std::optional(rows) : std::nullopt;
}

void RunDilated(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry &g = state.geometry, &rows = state.split->state().geometry;
  const int64_t in_planes = g.batch * g.groups * g.group_in, in_size = rows.in_h * rows.in_w;
  const int64_t out_planes = g.batch * g.groups * g.group_out, out_size = rows.positions();
  // Rounded up, so that layers of similar sizes use the same memory.
  constexpr int64_t kStep = (1 << 20) / sizeof(Half);
  const CallScratch<Half> in(RoundUp(in_planes * in_size, kStep));
  const CallScratch<Half> out(RoundUp(out_planes * out_size, kStep));
  ParallelForItems(in_planes, in_size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      HWY_DYNAMIC_DISPATCH(SplitRow)(g, rows, x + i * g.in_w, in.data() + i * in_size);
    }
  });
  Conv(*state.split, in.span().first(in_planes * in_size), out.span().first(out_planes * out_size));
  ParallelForItems(out_planes, out_size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      HWY_DYNAMIC_DISPATCH(JoinRows)(g, rows, out.data() + i * out_size, y + i * g.out_w);
      epilogue.FinishRuns(y + i * g.out_w, 1, g.out_w, 0);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
