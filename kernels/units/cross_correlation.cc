// CrossCorrelation: slides a template, not flipped, over a map of one channel with stride 1. Direct
// authoring only. Facts: validators.json CrossCorrelation; hidden_layers.json CrossCorrelation. A
// Conv of one channel with a kernel computed at run time is lowered to it.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "kernels/conv/conv.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/bounds.h"
#include "kernels/units/reshape.h"
#include "math/conv/conv.h"
#include "math/exact/exact_contract.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct CrossCorrelationParams {
  int64_t width = 1, height = 1;  // of the template, whose elements are all along W
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  int64_t groups = 1;
};

// The number of positions of the template along one axis; 0 or less if it does not fit.
int64_t Places(int64_t extent, int64_t before, int64_t after, int64_t size) {
  if (std::max({extent, before, after, size}) > kFactorBound || std::min({before, after}) < 0 ||
      size < 1) {
    return 0;
  }
  return extent + before + after - size + 1;
}

int64_t UnitMacs(const CrossCorrelationParams& p, Bottoms, absl::Span<const Tensor>,
                 const Dims& out) {
  return out.elements() * p.width * p.height;
}

absl::StatusOr<Dims> Shape(const CrossCorrelationParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[Axis::kH] = Places(out.h(), p.top, p.bottom, p.height);
  out[Axis::kW] = Places(out.w(), p.left, p.right, p.width);
  if (out.h() < 1 || out.w() < 1) {
    return absl::InvalidArgumentError("the template does not fit into the padded map");
  }
  if (in[1].dims != MakeDims(1, 1, 1, p.width * p.height) &&
      in[1].dims != MakeDims(1, 1, p.height, p.width)) {
    return absl::InvalidArgumentError(
        "want a template of TemplateWidth * TemplateHeight elements along Width");
  }
  return out;
}

Verdict Validate(const CrossCorrelationParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.groups <= 0) return judge.Reject(rule::kCrossCorrelationGroups);
  if (in[0].dims.c() != 1) return judge.Reject(rule::kCrossCorrelationMap);
  if (in[1].dims.d() != 1) return judge.Reject(rule::kCrossCorrelationTemplate);
  return judge.Accept();
}

using P = CrossCorrelationParams;
constexpr Field<P> kFields[] = {
    Required<&P::width>("TemplateWidth"),
    Required<&P::height>("TemplateHeight"),
    Key<&P::top>("PadTop"),
    Key<&P::bottom>("PadBot"),
    Key<&P::left>("PadLeft"),
    Key<&P::right>("PadRight"),
    Key<&P::groups>("NumGroups"),
};

// It computes the same sums as a convolution (numerics.json ew-hidden: MAC rules). The padding is
// assumed to be zeros, as in a convolution. With one channel, groups make no difference. The
// template is small and changes with every run, so it is not packed.
math::ConvShape ConvShapeOf(const P& p, const Dims& x) {
  return {.batch = x.n() * x.d(),
          .in_h = x.h(),
          .in_w = x.w(),
          .window = {.kernel_h = p.height,
                     .kernel_w = p.width,
                     .pad_top = p.top,
                     .pad_left = p.left,
                     .pad_bottom = p.bottom,
                     .pad_right = p.right}};
}

void Compute(const P& p, const void*, absl::Span<const ConstView> in, View out) {
  math::Conv(math::PackConv(ConvShapeOf(p, in[0].dims), in[1].span(), {}), in[0].span(),
             out.span());
}

void Exact(const P& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  math::ExactConv(unit.numerics, ConvShapeOf(p, in[0].dims), in[0].span(), in[1].span(), {},
                  out.span());
}

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P> kind({
      .type = "CrossCorrelation",
      .family = &rule::kUnitFamily,
      .bottoms = {2, 2, &rule::kCrossCorrelationInputs},
      .macs = UnitMacs,
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// The last two axes of the template are its height and width.
absl::Status Build(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kNotInFrontend));
  Operand map = c.In(0);
  Operand shape = c.In(1);
  const Dims dims = c.DimsOf(shape);
  CrossCorrelationParams p{.width = dims.w(), .height = dims.h()};
  if (dims == MakeDims(1, 1, p.height, p.width)) {
    ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(c.ShapeOf(1)));
    shape = ReshapeToDims(c, shape, MakeDims(1, 1, 1, count));
  }
  Operand y = c.Add(Kind(), p, {map, shape});
  c.AddOutput("y", y);
  return absl::OkStatus();
}

// y[i, j] = the sum of x[i + u, j + v] * w[u, v]: a Conv of one channel, batch 1 and stride 1. The
// sums and their single rounding are the same as in a convolution.
bool MatchConv(const GraphView& view, const Node& anchor, Match&) {
  const Value& x = view.graph.values[anchor.inputs[0]];
  const Value& kernel = view.graph.values[anchor.inputs[1]];
  if (kernel.constant || !x.is_static() || !kernel.is_static()) return false;
  const std::vector<int64_t> map = x.dims(), window = kernel.dims();
  const auto is_one = [](const std::vector<int64_t>& dims) { return dims[0] == 1 && dims[1] == 1; };
  return (map.size() == 3 || map.size() == 4) && map.size() == window.size() && is_one(map) &&
         is_one(window);
}

absl::Status LowerConv(const Match& match, LowerContext& c) {
  if (c.route() == Route::kMil) return c.Refuse(rule::kNotInFrontend);
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ConvParams conv, ReadConvParams(node, c));
  for (const Along* a : {&conv.h, &conv.w}) {
    if (a->stride > 1 || a->dilation > 1 || std::min(a->pad_before, a->pad_after) < 0) {
      return c.NotLowered(
          "convolution with a stride or dilation whose kernel is computed at run time");
    }
  }
  Operand map = c.In(node.inputs[0]);
  const Dims& dims = c.DimsOf(map);
  if (std::min(conv.h.WindowsIn(dims.h()), conv.w.WindowsIn(dims.w())) < 1) {
    return c.Refuse(rule::kEmptyTensor);
  }
  Operand kernel = c.In(node.inputs[1]);
  const int64_t count = c.DimsOf(kernel).elements();
  kernel = ReshapeToDims(c, kernel, MakeDims(1, 1, 1, count));
  const CrossCorrelationParams p = {.width = conv.w.kernel,
                                    .height = conv.h.kernel,
                                    .top = conv.h.pad_before,
                                    .bottom = conv.h.pad_after,
                                    .left = conv.w.pad_before,
                                    .right = conv.w.pad_after};
  Operand y = c.Add(Kind(), p, {map, kernel});
  if (HasInput(node, 2)) {  // adding it rounds a second time
    Operand bias = c.In(node.inputs[2]);
    y = Combined(c, ElementWiseType::kAdd, y, bias);
  }
  return c.Out(node.outputs[0], y);
}

// The Mul node whose sum or mean over the channels is `part`, or null if `part` is not such a sum.
const Node* DotProduct(const GraphView& view, ValueId part, std::vector<NodeId>& nodes) {
  for (const char* op : {"ReduceMean", "ReduceSum"}) {
    const Node* reduce = view.OnlyProducer(part, op);
    if (reduce == nullptr || !HasInput(*reduce, 1)) continue;
    const Tensor* axes = view.Constant(reduce->inputs[1]);
    const auto over = axes == nullptr ? std::nullopt : IntegersOf(*axes);
    const Node* product = view.OnlyProducer(reduce->inputs[0], "Mul");
    if (product == nullptr || over != std::vector<int64_t>{1}) return nullptr;
    nodes.insert(nodes.end(), {view.IdOf(*product), view.IdOf(*reduce)});
    return product;
  }
  return nullptr;
}

// Correlation by pixel, as in optical flow networks: a stack of dot products over the channels
// between one tensor and another at several displacements. Matched only to give the reason.
bool MatchByPixel(const GraphView& view, const Node& anchor, Match& match) {
  const Node* first = nullptr;
  for (ValueId input : anchor.inputs) {
    const Node* product = DotProduct(view, input, match.nodes);
    if (product == nullptr) return false;
    if (first == nullptr) first = product;
    const auto& factors = product->inputs;
    if (std::find(factors.begin(), factors.end(), first->inputs[0]) == factors.end()) return false;
  }
  return anchor.inputs.size() > 1;
}

absl::Status LowerByPixel(const Match&, LowerContext& c) {
  return c.NotLowered(
      "correlation by pixel: no unit computes dot products over channels at several displacements "
      "(CrossCorrelation slides one template over one map, CostVolume takes absolute differences)");
}

constexpr Lowering kLowerings[] = {{.op = "Conv",
                                    .pattern = "cross-correlation",
                                    .rewritten = true,
                                    .match = MatchConv,
                                    .lower = LowerConv},
                                   {.op = "Concat",
                                    .pattern = "correlation-by-pixel",
                                    .rewritten = true,
                                    .match = MatchByPixel,
                                    .lower = LowerByPixel}};

constexpr MilOperation kOperations[] = {{"cross_correlation", Build}};

}  // namespace

KernelRows CrossCorrelationRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
