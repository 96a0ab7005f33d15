#include "engine/math/conv_transpose.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/math/conv_state.h"
#include "engine/math/panels.h"

namespace anemone::math {
namespace {

// The kernel taps that reach output positions phase, phase + stride, ... along one axis, as a
// convolution of stride 1 over the input.
struct PhaseAxis {
  std::vector<int64_t> taps;  // in the order in which their inputs lie: the kernel backwards
  int64_t dilation = 1;
  int64_t pad = 0;   // may be negative
  int64_t size = 0;  // output positions
};

// Tap k of output o = phase + stride * q reads input (o + pad - k * dilation) / stride, if whole.
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

PackedConv PackPhase(const ConvTransposeShape& shape, const PhaseAxis& rows,
                     const PhaseAxis& columns, int64_t phase_h, int64_t phase_w,
                     absl::Span<const Half> weights, absl::Span<const float> bias) {
  const Window& w = shape.window;
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
  g.y_row = w.stride_h * shape.out_w();
  g.y_column = w.stride_w;

  // From (in channel, out channel of group, kh, kw) to (out channel, in channel of group, tap).
  const auto read = [&](int64_t first, absl::Span<Half> to) {
    for (size_t i = 0; i < to.size(); ++i) {
      const int64_t element = first + static_cast<int64_t>(i);
      const int64_t tap = element % g.taps();
      const int64_t c = element / g.taps() % g.group_in;
      const int64_t o = element / g.depth();
      const int64_t in_channel = o / g.group_out * g.group_in + c;
      const int64_t kh = rows.taps[tap / g.kernel_w];
      const int64_t kw = columns.taps[tap % g.kernel_w];
      to[i] =
          weights[((in_channel * g.group_out + o % g.group_out) * w.kernel_h + kh) * w.kernel_w +
                  kw];
    }
  };
  return PackGeometry(g, read, bias);
}

}  // namespace

int64_t PackedConvTranspose::bytes() const {
  int64_t sum = 0;
  for (const PackedConv& phase : phases_) sum += phase.bytes();
  return sum;
}

PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape,
                                      absl::Span<const Half> weights,
                                      absl::Span<const float> bias) {
  const Window& w = shape.window;
  std::vector<PackedConv> phases;
  for (int64_t i = 0; i < std::min(w.stride_h, shape.out_h()); ++i) {
    const PhaseAxis rows =
        CutPhase(w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, shape.out_h(), i);
    for (int64_t j = 0; j < std::min(w.stride_w, shape.out_w()); ++j) {
      const PhaseAxis columns =
          CutPhase(w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, shape.out_w(), j);
      phases.push_back(PackPhase(shape, rows, columns, i, j, weights, bias));
    }
  }
  return PackedConvTranspose(std::move(phases));
}

PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape, HalfReader weights,
                                      absl::Span<const float> bias) {
  std::vector<Half> halves(shape.in_channels * (shape.out_channels / shape.groups) *
                           shape.window.kernel_h * shape.window.kernel_w);
  weights(0, absl::MakeSpan(halves));
  return PackConvTranspose(shape, halves, bias);
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
  for (const PackedConv& phase : op.phases()) Conv(phase, x, y);
  epilogue.FinishAll(y.data(), 1, static_cast<int64_t>(y.size()), 0);
}

}  // namespace anemone::math
