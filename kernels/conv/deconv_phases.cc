// ConvTranspose of any stride and dilation as a convolution, where the deconvolution unit is
// refused (rules deconv-stride, deconv-dilation, conv-kernel).
//
// With stride s, output q * s + r (r < s, before the pads are cropped) sums the taps r, r + s, ...
// of the kernel at inputs q, q - 1, .... So each phase r is a plain convolution. All phases are
// computed by one convolution with s times the channels, whose outputs are then interleaved. A
// dilated kernel is first filled with zeros. Each output sums the same products as the
// deconvolution, so there is no additional rounding.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/conv/conv.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

// One axis of the deconvolution and of the convolution that computes all its phases.
struct Phases {
  Along deconv;
  int64_t in = 1, out = 1;  // extents

  int64_t stride() const { return deconv.stride; }
  int64_t taps() const { return (deconv.extent() + stride() - 1) / stride(); }
  // The number of values of q.
  int64_t rounds() const { return (deconv.pad_before + out + stride() - 1) / stride(); }
  Along conv() const {
    return {.kernel = taps(),
            .pad_before = taps() - 1,
            .pad_after = std::max(rounds() - in, int64_t{0})};
  }
  // The kernel element of phase r at tap t of the convolution. The convolution runs forwards over
  // the inputs and therefore backwards over the kernel.
  std::optional<int64_t> ElementAt(int64_t r, int64_t t) const {
    int64_t at = r + (taps() - 1 - t) * stride();
    if (at % deconv.dilation != 0 || at / deconv.dilation >= deconv.kernel) return std::nullopt;
    return at / deconv.dilation;
  }
  bool IsSane() const {
    auto [least, most] =
        std::minmax({deconv.kernel, deconv.stride, deconv.dilation, deconv.pad_before + 1,
                     deconv.pad_after + 1, deconv.output_padding + 1, in, out});
    return least >= 1 && most <= kTableBound;
  }
};

// The kernel (in, out / groups, h, w) as (out * phases, in / groups, taps, taps). The phases of a
// channel are adjacent, and so are the channels of a group.
Tensor PhasedKernel(const Tensor& kernel, int64_t groups, const Phases& h, const Phases& w) {
  const int64_t ins = kernel.dims()[0] / groups, outs = kernel.dims()[1];
  const int64_t kh = h.deconv.kernel, kw = w.deconv.kernel, th = h.taps(), tw = w.taps();
  std::vector<float> from = RoundedFloats(kernel);
  const int64_t count = groups * outs * h.stride() * w.stride() * ins * th * tw;
  const auto taken = TakeMemory(count * int64_t{sizeof(float)});
  std::vector<float> to;
  to.reserve(count);
  auto add_taps = [&](int64_t first, int64_t rh, int64_t rw) {
    for (int64_t y = 0; y < th; ++y) {
      for (int64_t x = 0; x < tw; ++x) {
        auto row = h.ElementAt(rh, y), column = w.ElementAt(rw, x);
        to.push_back(row && column ? from[first + *row * kw + *column] : 0);
      }
    }
  };
  for (int64_t o = 0; o < groups * outs; ++o) {
    for (int64_t r = 0; r < h.stride() * w.stride(); ++r) {
      for (int64_t i = 0; i < ins; ++i) {
        add_taps(((o / outs * ins + i) * outs + o % outs) * kh * kw, r / w.stride(),
                 r % w.stride());
      }
    }
  }
  return Tensor::Floats({groups * outs * h.stride() * w.stride(), ins, th, tw}, to);
}

// Interleaves the phases of each channel, (out, rh, rw).
Operand Interleaved(LowerContext& c, Operand x, int64_t channels, int64_t sh, int64_t sw) {
  const Dims dims = c.DimsOf(x);
  const int64_t images = dims.n() * channels;
  if (sw > 1) {
    x = ReshapeToDims(c, x, MakeDims(images * sh, sw, dims.h(), dims.w()));
    x = Permuted(c, x, {Axis::kN, Axis::kD, Axis::kH, Axis::kW, Axis::kC});
  }
  if (sh > 1) {
    x = ReshapeToDims(c, x, MakeDims(images, sh, dims.h(), dims.w() * sw));
    x = SwapAxes(c, x, Axis::kC, Axis::kH);
  }
  return ReshapeToDims(c, x, MakeDims(dims.n(), channels, dims.h() * sh, dims.w() * sw));
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ConvNode read, ReadConvNode(node, c));
  if (read.x.size() == kMaxRank) return c.NotLowered("ConvTranspose with three spatial axes");
  const ConvParams& p = read.params;
  const Dims in = PlaceShape(read.x), out = PlaceShape(read.y);
  Phases h{p.h, in.h(), out.h()}, w{p.w, in.w(), out.w()};
  if (!h.IsSane() || !w.IsSane() || in.c() % p.groups != 0 || read.w[0] != in.c() ||
      read.w[1] * p.groups != out.c()) {
    return c.NotLowered("ConvTranspose whose attributes and shapes do not match");
  }
  const int64_t phases = h.stride() * w.stride();
  const int64_t pairs = read.w[0] * read.w[1];  // of input and output channels
  if (pairs > MostKernelElements() || static_cast<double>(phases) * static_cast<double>(pairs) *
                                              static_cast<double>(h.taps()) *
                                              static_cast<double>(w.taps()) >
                                          MostKernelElements()) {
    return RefuseOverLimit(c, ModelLimit::kKernelElements,
                           "ConvTranspose whose kernel, split into phases, would have");
  }

  ConvParams conv;
  conv.out_channels = out.c() * phases;
  conv.groups = p.groups;
  conv.h = h.conv();
  conv.w = w.conv();
  std::vector<Tensor> weights = {PhasedKernel(*read.kernel, p.groups, h, w)};
  if (read.bias != nullptr) {
    std::vector<float> repeated;
    for (float b : RoundedFloats(*read.bias)) repeated.insert(repeated.end(), phases, b);
    weights.push_back(Tensor::Floats({conv.out_channels}, repeated));
  }
  Operand x = c.In(node.inputs[0]);
  x = c.Add(ConvUnit(), conv, {x}, std::move(weights));
  x = Interleaved(c, x, out.c(), h.stride(), w.stride());
  x = Sliced(c, x, Axis::kH, p.h.pad_before, out.h());
  x = Sliced(c, x, Axis::kW, p.w.pad_before, out.w());
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "ConvTranspose", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows DeconvPhasesRows() { return {{}, kLowerings}; }

}  // namespace anemone
