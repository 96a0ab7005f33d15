#include "math/conv/conv_transpose.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "math/conv/col2im.h"
#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/conv_transpose.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Interleaves row `row` of all phases of a channel, which are `plane` apart, to kernel_h rows of
// the output.
void PlacePhases(const ConvTransposeShape& shape, const Half* phases, int64_t plane, int64_t row,
                 Half* to) {
  const Window& w = shape.window;
  for (int64_t kh = 0; kh < w.kernel_h; ++kh, to += shape.out_w()) {
    InterleaveRuns(phases + kh * w.kernel_w * plane + row * shape.in_w, plane, w.kernel_w,
                   shape.in_w, to);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(PlacePhases);

namespace {

// Tap k of output o = phase + stride * q reads input (o + pad - k * dilation) / stride, if that is
// an integer.
PhaseAxis CutPhase(int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int64_t out_size,
                   int64_t phase) {
  PhaseAxis axis;
  axis.size = CeilDiv(out_size - phase, stride);
  for (int64_t k = kernel - 1; k >= 0; --k) {
    if ((phase + pad - k * dilation) % stride == 0) axis.taps.push_back(k);
  }
  if (axis.taps.empty()) return axis;
  // Taps that reach a phase are stride / gcd apart, so their inputs are dilation / gcd apart.
  axis.dilation = dilation / std::gcd(stride, dilation);
  axis.pad = -(phase + pad - axis.taps.front() * dilation) / stride;
  return axis;
}

ConvGeometry PhaseGeometry(const ConvTransposeShape& shape, const PhaseAxis& rows,
                           const PhaseAxis& columns, int64_t phase_h, int64_t phase_w) {
  ConvGeometry g;
  g.batch = shape.batch;
  g.groups = shape.groups;
  g.group_in = shape.in_channels / shape.groups;
  g.group_out = shape.out_channels / shape.groups;
  g.in_h = shape.in_h, g.in_w = shape.in_w;
  g.out_h = rows.size, g.out_w = columns.size;
  g.kernel_h = rows.taps.size(), g.kernel_w = columns.taps.size();
  g.dilation_h = rows.dilation, g.dilation_w = columns.dilation;
  g.pad_top = rows.pad, g.pad_left = columns.pad;
  g.y_plane = shape.out_h() * shape.out_w();
  g.y_first = phase_h * shape.out_w() + phase_w;
  g.y_row = shape.window.stride_h * shape.out_w();
  g.y_column = shape.window.stride_w;
  return g;
}

PackedConv PackPhase(const ConvTransposeShape& shape, const ConvGeometry& g, const PhaseAxis& rows,
                     const PhaseAxis& columns, absl::Span<const Half> weights,
                     absl::Span<const float> bias, ConstantId id) {
  const Window& w = shape.window;
  std::vector<int64_t> places;  // of the taps in the kernel
  for (const int64_t kh : rows.taps) {
    for (const int64_t kw : columns.taps) places.push_back(kh * w.kernel_w + kw);
  }
  // From (in channel, out channel of group, kh, kw) to (out channel, in channel of group, tap).
  const auto read = [&](int64_t first, absl::Span<Half> to) {
    if (to.empty()) return;  // there may be no taps
    int64_t channel = first / g.taps(), tap = first % g.taps();
    for (auto at = to.begin(); at != to.end(); ++channel, tap = 0) {
      const int64_t o = channel / g.group_in, c = channel % g.group_in;
      const int64_t in_channel = o / g.group_out * g.group_in + c;
      const Half* from =
          weights.data() + (in_channel * g.group_out + o % g.group_out) * w.kernel_h * w.kernel_w;
      for (; tap < g.taps() && at != to.end(); ++tap) *at++ = from[places[tap]];
    }
  };
  std::vector<int64_t> how = {w.kernel_h, w.kernel_w, g.kernel_h};
  how.insert(how.end(), rows.taps.begin(), rows.taps.end());
  how.insert(how.end(), columns.taps.begin(), columns.taps.end());
  return PackGeometry(g, read, bias, nullptr, id.Derived(how));
}

// Whether the outputs of each input are a block that no other input contributes to.
bool PhasesAreChannels(const ConvTransposeShape& shape) {
  const Window& w = shape.window;
  return w.kernel_h * w.kernel_w > 1 && w.kernel_h == w.stride_h && w.kernel_w == w.stride_w &&
         w.dilation_h == 1 && w.dilation_w == 1 && shape.out_h() == shape.in_h * w.stride_h &&
         shape.out_w() == shape.in_w * w.stride_w && w.pad_top == 0 && w.pad_left == 0;
}

// The weights as (out channel, kernel_h, kernel_w, in channel of group).
std::vector<Half> ByTaps(const ConvTransposeShape& shape, absl::Span<const Half> weights) {
  const int64_t taps = shape.window.kernel_h * shape.window.kernel_w;
  const int64_t group_in = shape.in_channels / shape.groups;
  const int64_t group_out = shape.out_channels / shape.groups * taps;
  std::vector<Half> by_taps(weights.size());
  for (int64_t c = 0; c < shape.in_channels; ++c) {
    const int64_t first = c / group_in * group_out;
    for (int64_t k = 0; k < group_out; ++k) {
      by_taps[(first + k) * group_in + c % group_in] = weights[c * group_out + k];
    }
  }
  return by_taps;
}

PackedConv PackPhases(const ConvTransposeShape& shape, absl::Span<const Half> weights,
                      absl::Span<const float> bias, ConstantId id) {
  const int64_t taps = shape.window.kernel_h * shape.window.kernel_w;
  const std::vector<Half> by_taps = ByTaps(shape, weights);
  std::vector<float> biases;
  for (const float value : bias) biases.insert(biases.end(), taps, value);
  return PackConv(ConvShape{.batch = shape.batch,
                            .in_channels = shape.in_channels,
                            .in_h = shape.in_h,
                            .in_w = shape.in_w,
                            .out_channels = shape.out_channels * taps,
                            .groups = shape.groups},
                  ReaderOf(by_taps), biases, nullptr, id.Derived({taps}));
}

// Computes all phases as channels, then interleaves them to their places.
void RunPhases(const PackedConvTranspose& op, absl::Span<const Half> x, absl::Span<Half> y,
               const Epilogue& epilogue) {
  const ConvTransposeShape& shape = op.shape;
  const int64_t plane = shape.in_h * shape.in_w;
  const int64_t rows = shape.batch * shape.out_channels * shape.in_h;
  const int64_t size = shape.window.kernel_h * shape.out_w();
  const CallScratch<Half> phases(static_cast<int64_t>(y.size()));
  Conv(op.convs[0], x, phases.span());
  ParallelForItems(rows, size, [&](int64_t begin, int64_t end) {
    int64_t finished = begin;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t channel = row / shape.in_h;
      HWY_DYNAMIC_DISPATCH(PlacePhases)
      (shape, phases.data() + channel * shape.in_h * size, plane, row % shape.in_h,
       y.data() + row * size);
      const int64_t elements = (row + 1 - finished) * size;
      if (elements < kNearElements && row + 1 < end) continue;
      epilogue.FinishRuns(y.data() + finished * size, 1, elements, 0);
      finished = row + 1;
    }
  });
}

}  // namespace

int64_t PackedConvTranspose::bytes() const {
  int64_t sum = 0;
  for (const PackedConv& conv : convs) sum += conv.bytes();
  return sum;
}

PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape,
                                      absl::Span<const Half> weights, absl::Span<const float> bias,
                                      ConstantId id) {
  const Window& w = shape.window;
  PackedConvTranspose op{.shape = shape};
  if (PhasesAreChannels(shape)) {
    op.way = TransposeWay::kChannels;
    op.convs.push_back(PackPhases(shape, weights, bias, id));
    return op;
  }
  for (int64_t i = 0; i < std::min(w.stride_h, shape.out_h()); ++i) {
    op.row_phases.push_back(
        CutPhase(w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, shape.out_h(), i));
  }
  for (int64_t j = 0; j < std::min(w.stride_w, shape.out_w()); ++j) {
    op.column_phases.push_back(
        CutPhase(w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, shape.out_w(), j));
  }
  std::vector<ConvGeometry> phases;
  for (size_t i = 0; i < op.row_phases.size(); ++i) {
    for (size_t j = 0; j < op.column_phases.size(); ++j) {
      phases.push_back(PhaseGeometry(shape, op.row_phases[i], op.column_phases[j], i, j));
    }
  }
  if (Col2imPays(shape) && !std::all_of(phases.begin(), phases.end(), ImagesFillVectors) &&
      !std::all_of(phases.begin(), phases.end(), WinogradPays)) {
    op.way = TransposeWay::kCol2im;
    op.convs.push_back(PackCol2im(shape, ByTaps(shape, weights), bias, id));
    return op;
  }
  for (size_t i = 0; i < phases.size(); ++i) {
    op.convs.push_back(PackPhase(shape, phases[i], op.row_phases[i / op.column_phases.size()],
                                 op.column_phases[i % op.column_phases.size()], weights, bias, id));
  }
  return op;
}

PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape, HalfReader weights,
                                      absl::Span<const float> bias, ConstantId id) {
  std::vector<Half> halves(shape.in_channels * (shape.out_channels / shape.groups) *
                           shape.window.kernel_h * shape.window.kernel_w);
  weights(0, absl::MakeSpan(halves));
  return PackConvTranspose(shape, halves, bias, id);
}

PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape,
                                      absl::Span<const float> weights,
                                      absl::Span<const float> bias) {
  std::vector<Half> halves(weights.size());
  FloatToHalf(weights, absl::MakeSpan(halves));
  return PackConvTranspose(shape, halves, bias);
}

void ConvTranspose(const PackedConvTranspose& op, absl::Span<const Half> x, absl::Span<Half> y,
                   const Epilogue& epilogue) {
  if (y.empty()) return;
  if (op.way == TransposeWay::kChannels) return RunPhases(op, x, y, epilogue);
  if (op.way == TransposeWay::kCol2im) return RunCol2im(op, x.data(), y.data(), epilogue);
  std::vector<const PackedConv::State*> phases;
  for (const PackedConv& phase : op.convs) {
    if (phase.state().weights->kind == ConvKind::kImages) phases.push_back(&phase.state());
  }
  if (phases.size() == op.convs.size()) {
    return RunImageLanes(phases, x.data(), y.data(), epilogue);
  }
  for (const PackedConv& phase : op.convs) Conv(phase, x, y);
  const int64_t planes = op.shape.batch * op.shape.out_channels;
  const int64_t plane = op.shape.out_h() * op.shape.out_w();
  epilogue.FinishAll(y.data(), planes, plane, plane);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
