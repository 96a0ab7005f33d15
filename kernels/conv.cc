// Convolution and deconvolution. Native on every target; the kernel and bias are constants of the
// unit. Facts: validators.json Conv; targets.json max_kernel_*; netplist.md Conv.
#include "kernels/conv.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "engine/math/conv.h"
#include "engine/math/conv_transpose.h"
#include "engine/math/transpose.h"
#include "kernels/attributes.h"
#include "kernels/lowering.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

int64_t OutExtent(const Along& a, int64_t in, bool transposed) {
  if (transposed) {
    return (in - 1) * a.stride + a.extent() + a.output_padding - a.pad_before - a.pad_after;
  }
  int64_t span = in + a.pad_before + a.pad_after - a.extent();
  return span < 0 ? 0 : span / a.stride + 1;
}

absl::StatusOr<Dims> Shape(const ConvParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[Axis::kC] = p.out_channels;
  out[Axis::kD] = OutExtent(p.d, out.d(), p.transposed);
  out[Axis::kH] = OutExtent(p.h, out.h(), p.transposed);
  out[Axis::kW] = OutExtent(p.w, out.w(), p.transposed);
  return out;
}

Verdict ValidateDeconv(const ConvParams& p, Judge& judge) {
  for (const Along* a : {&p.h, &p.w, &p.d}) {
    if (a->stride > 2) return judge.Reject(rule::kDeconvStride);
    if (a->dilation > 1) return judge.Reject(rule::kDeconvDilation);
  }
  return judge.Accept();
}

Verdict Validate(const ConvParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  struct {
    const char* name;
    const Along& along;
    Axis axis;
    Limit limit;
  } axes[] = {{"width", p.w, Axis::kW, Limit::kMaxKernelWFp16Large},
              {"height", p.h, Axis::kH, Limit::kMaxKernelHLarge},
              {"depth", p.d, Axis::kD, Limit::kMaxKernelDLarge}};
  for (const auto& [name, along, axis, limit] : axes) {
    if (!judge.Within(along.kernel, limit)) {
      return judge.Reject(rule::kConvKernel, name, along.kernel, 1, judge.Value(limit, 0));
    }
    int64_t padded = in[0].dims[axis] + along.pad_before + along.pad_after;
    if (!p.transposed && padded < along.extent()) return judge.Reject(rule::kConvPaddedExtent);
  }
  if (in[0].dims.c() % p.groups != 0 || p.out_channels % p.groups != 0) {
    return judge.Reject(rule::kConvGroups);
  }
  return p.transposed ? ValidateDeconv(p, judge) : judge.Accept();
}

// The kernel depth passes the validator, and no target's code generator takes it.
Verdict Codegen(const ConvParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  return p.d.kernel > 1 ? judge.Reject(rule::kConv3d) : judge.Accept();
}

std::string ShowPads(const ConvParams& p) {
  return absl::StrCat(p.h.pad_before, ",", p.w.pad_before, ",", p.h.pad_after, ",", p.w.pad_after);
}

constexpr Field<ConvParams> kFields[] = {
    {"Type", [](const ConvParams& p) { return std::string(p.transposed ? "Deconv" : "Conv"); }},
    {"KernelWidth", [](const ConvParams& p) { return absl::StrCat(p.w.kernel); }},
    {"KernelHeight", [](const ConvParams& p) { return absl::StrCat(p.h.kernel); }},
    {"KernelDepth", [](const ConvParams& p) { return absl::StrCat(p.d.kernel); }},
    {"Step", [](const ConvParams& p) { return absl::StrCat(p.w.stride, ",", p.h.stride); }},
    {"Dilation", [](const ConvParams& p) { return absl::StrCat(p.w.dilation, ",", p.h.dilation); }},
    {"Pad", ShowPads},
    {"NumGroups", [](const ConvParams& p) { return absl::StrCat(p.groups); }},
};

math::Window WindowOf(const ConvParams& p) {
  return {.kernel_h = p.h.kernel,
          .kernel_w = p.w.kernel,
          .stride_h = p.h.stride,
          .stride_w = p.w.stride,
          .dilation_h = p.h.dilation,
          .dilation_w = p.w.dilation,
          .pad_top = p.h.pad_before,
          .pad_left = p.w.pad_before,
          .pad_bottom = p.h.pad_after,
          .pad_right = p.w.pad_after};
}

// Depth has no kernel here, so the depth axis is one with the batch.
template <class MathShape>
MathShape ShapeFor(const ConvParams& p, const Dims& in) {
  MathShape shape;
  shape.batch = in.n() * in.d();
  shape.in_channels = in.c();
  shape.in_h = in.h();
  shape.in_w = in.w();
  shape.out_channels = p.out_channels;
  shape.groups = p.groups;
  shape.window = WindowOf(p);
  return shape;
}

absl::StatusOr<Prepared> Prepare(const ConvParams& p, Bottoms in,
                                 absl::Span<const Tensor> weights) {
  std::vector<float> bias;
  if (weights.size() > 1) bias = RoundedFloats(weights[1]);
  if (p.in_major) {
    std::vector<math::Half> stored(weights[0].elements()), kernel(stored.size());
    ReadHalves(weights[0], 0, absl::MakeSpan(stored));
    math::Transpose({1, 1, 1, in[0].dims.c(), p.out_channels}, {0, 1, 2, 4, 3}, stored,
                    absl::MakeSpan(kernel));
    return std::make_shared<math::PackedConv>(math::PackConv(
        ShapeFor<math::ConvShape>(p, in[0].dims), absl::MakeConstSpan(kernel), bias));
  }
  if (!p.transposed) {
    auto reader = [&](int64_t first, absl::Span<math::Half> to) {
      ReadHalves(weights[0], first, to);
    };
    return std::make_shared<math::PackedConv>(
        math::PackConv(ShapeFor<math::ConvShape>(p, in[0].dims), reader, bias));
  }
  auto shape = ShapeFor<math::ConvTransposeShape>(p, in[0].dims);
  shape.output_padding_h = p.h.output_padding;
  shape.output_padding_w = p.w.output_padding;
  std::vector<math::Half> kernel(weights[0].elements());
  ReadHalves(weights[0], 0, absl::MakeSpan(kernel));
  return std::make_shared<math::PackedConvTranspose>(
      math::PackConvTranspose(shape, absl::MakeConstSpan(kernel), bias));
}

void Compute(const ConvParams& p, const void* prepared, absl::Span<const ConstView> in, View out) {
  if (p.transposed) {
    math::ConvTranspose(*static_cast<const math::PackedConvTranspose*>(prepared), in[0].span(),
                        out.span());
  } else {
    math::Conv(*static_cast<const math::PackedConv*>(prepared), in[0].span(), out.span());
  }
}

const UnitKindOf<ConvParams>& Kind() {
  static const UnitKindOf<ConvParams>& kind = *new UnitKindOf<ConvParams>({.type = "Conv",
                                                                           .shape = Shape,
                                                                           .validate = Validate,
                                                                           .codegen = Codegen,
                                                                           .fields = kFields,
                                                                           .prepare = Prepare,
                                                                           .compute = Compute});
  return kind;
}

absl::StatusOr<ConvParams> ReadAttributes(const Node& node, absl::Span<const int64_t> x,
                                          absl::Span<const int64_t> w,
                                          absl::Span<const int64_t> y) {
  size_t spatial = w.size() - 2;
  ConvParams p{.transposed = node.op_type == "ConvTranspose"};
  std::vector<int64_t> ones(spatial, 1), none(spatial, 0), no_pads(2 * spatial, 0);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(auto strides, a.Ints("strides", ones));
  ANEMONE_ASSIGN_OR_RETURN(auto dilations, a.Ints("dilations", ones));
  ANEMONE_ASSIGN_OR_RETURN(auto pads, a.Ints("pads", no_pads));
  ANEMONE_ASSIGN_OR_RETURN(auto output_padding, a.Ints("output_padding", none));
  ANEMONE_ASSIGN_OR_RETURN(std::string auto_pad, a.String("auto_pad", "NOTSET"));
  ANEMONE_ASSIGN_OR_RETURN(p.groups, a.Int("group", 1));
  a.Ignore("kernel_shape");
  a.Ignore("output_shape");
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  if (strides.size() != spatial || dilations.size() != spatial || pads.size() != 2 * spatial ||
      output_padding.size() != spatial || x.size() != spatial + 2 || p.groups < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("strides, dilations, pads, output_padding and group must fit a kernel with ",
                     spatial, " spatial axes; run the ONNX checker on the model"));
  }
  p.out_channels = y[1];
  Along* places[] = {&p.w, &p.h, &p.d};
  for (size_t i = 0; i < spatial; ++i) {
    Along& along = *places[spatial - 1 - i];
    along = {.kernel = w[i + 2],
             .stride = strides[i],
             .dilation = dilations[i],
             .pad_before = pads[i],
             .pad_after = pads[spatial + i],
             .output_padding = output_padding[i]};
    if (along.kernel < 1 || along.stride < 1 || along.dilation < 1) {
      return absl::InvalidArgumentError(
          "kernel, strides and dilations: want at least 1; run the ONNX checker on the model");
    }
    // SAME_*, or output_shape of a deconvolution: the pads that give the output's extent.
    bool given = auto_pad == "NOTSET" && !a.Has("output_shape");
    if (given || auto_pad == "VALID") continue;
    int64_t total = p.transposed ? (x[i + 2] - 1) * along.stride + along.extent() +
                                       along.output_padding - y[i + 2]
                                 : (y[i + 2] - 1) * along.stride + along.extent() - x[i + 2];
    total = std::max<int64_t>(total, 0);
    bool more_before = (auto_pad == "SAME_LOWER") != (p.transposed && auto_pad == "NOTSET");
    along.pad_before = more_before ? (total + 1) / 2 : total / 2;
    along.pad_after = total - along.pad_before;
  }
  return p;
}

}  // namespace

absl::StatusOr<ConvNode> ReadConvNode(const Node& node, LowerContext& c) {
  ConvNode read;
  ANEMONE_ASSIGN_OR_RETURN(read.x, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(read.w, c.ShapeOf(node.inputs[1]));
  ANEMONE_ASSIGN_OR_RETURN(read.y, c.ShapeOf(node.outputs[0]));
  read.kernel = c.view().Constant(node.inputs[1]);
  if (HasInput(node, 2)) read.bias = c.view().Constant(node.inputs[2]);
  if (read.kernel == nullptr || (HasInput(node, 2) && read.bias == nullptr)) {
    return c.NotLowered("convolution whose kernel or bias is computed at run time");
  }
  if (!IsEngineConstant(read.kernel->type())) {
    return c.NotLowered("convolution with an integer kernel");
  }
  ANEMONE_ASSIGN_OR_RETURN(read.params, ReadAttributes(node, read.x, read.w, read.y));
  return read;
}

namespace {

// Dims with the spatial axes on D, H, W, whatever the rank: N, C, W becomes N, C, 1, W, which is
// where PlaceShape has it already.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ConvNode read, ReadConvNode(node, c));
  if (c.route() == Route::kMil && read.x.size() != 4) return c.Refuse(rule::kConvMilRank);
  // The software device takes the depth for a batch.
  const Along& d = read.params.d;
  if (d.kernel == 1 && (d.stride > 1 || d.pad_before + d.pad_after > 0)) {
    return c.NotLowered("a stride or padding along the depth, as one unit");
  }
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  std::vector<Tensor> weights = {*read.kernel};
  if (read.bias != nullptr) weights.push_back(*read.bias);
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(Kind(), read.params, {x}, std::move(weights)));
  return c.Out(node.outputs[0], y);
}

// Output elements (input elements for a deconvolution) times the kernel each of them meets.
int64_t Macs(const Graph& graph, const Node& node) {
  std::vector<int64_t> w = graph.values[node.inputs[1]].dims();
  bool transposed = node.op_type == "ConvTranspose";
  std::vector<int64_t> at = graph.values[transposed ? node.inputs[0] : node.outputs[0]].dims();
  int64_t macs = 1;
  for (int64_t e : at) macs *= e;
  for (size_t i = 1; i < w.size(); ++i) macs *= w[i];
  return macs;
}

constexpr Lowering kLowerings[] = {
    {.op = "Conv", .lower = Lower, .macs = Macs},
    {.op = "ConvTranspose", .lower = Lower, .macs = Macs},
};

}  // namespace

const UnitKindOf<ConvParams>& ConvUnit() { return Kind(); }

absl::StatusOr<Operand> PointwiseConv(LowerContext& c, const Operand& x, int64_t out_channels,
                                      const Tensor& kernel, bool in_major, const Tensor* bias) {
  std::vector<Tensor> weights = {kernel};
  if (bias != nullptr) weights.push_back(*bias);
  return c.Add(Kind(), ConvParams{.out_channels = out_channels, .in_major = in_major}, {x},
               std::move(weights));
}

KernelRows ConvRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
