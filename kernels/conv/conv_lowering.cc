// Lowers convolutions to the unit of conv.cc: ONNX's Conv and ConvTranspose; MIL's conv and
// conv_transpose, and ne_conv, which is the name of the unit itself (op_matrix.json).
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/conv/conv.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/extents.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;

ConvType TypeFor(const ConvParams& p, bool transposed) {
  if (transposed) return ConvType::kDeConv;
  return p.h.dilation > 1 || p.w.dilation > 1 ? ConvType::kDilatedConv : ConvType::kConv;
}

// On route mil, a convolution must be 2-D. A kernel with a depth is refused later by another rule.
bool IsOfMilRank(size_t rank, const ConvParams& p) {
  return rank == 4 || (rank == kMaxRank && p.d.kernel > 1);
}

absl::StatusOr<ConvParams> ReadAttributes(LowerContext& c, const Node& node,
                                          absl::Span<const int64_t> x, absl::Span<const int64_t> w,
                                          absl::Span<const int64_t> y) {
  const size_t spatial = w.size() - 2;
  const bool transposed = node.op_type == "ConvTranspose";
  ConvParams p;
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Along> window, ReadNodeWindow(a, w.subspan(2)));
  ANEMONE_ASSIGN_OR_RETURN(Sizes output_padding, a.Ints("output_padding", Sizes(spatial, 0)));
  ANEMONE_ASSIGN_OR_RETURN(PadType auto_pad, ReadAutoPad(a));
  ANEMONE_ASSIGN_OR_RETURN(p.groups, a.Int("group", 1));
  a.Ignore("kernel_shape");
  ANEMONE_ASSIGN_OR_RETURN(const Sizes output_shape, a.Ints("output_shape", {}));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (output_padding.size() != spatial || x.size() != spatial + 2 || y.size() != x.size() ||
      p.groups < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input, output, output_padding and group must fit a kernel with ", spatial,
                     " spatial axes; run the ONNX checker on the model"));
  }
  p.out_channels = y[1];
  if (!transposed) p.kernel_channels = w[1];
  // With output_shape, the pads follow from the shape. If their sum is odd, the larger one is
  // before, except for SAME_UPPER.
  if (!output_shape.empty() && auto_pad != PadType::kSame) auto_pad = PadType::kSameLower;
  Along* places[] = {&p.w, &p.h, &p.d};
  for (size_t i = 0; i < spatial; ++i) {
    Along& along = *places[spatial - 1 - i] = window[i];
    along.output_padding = output_padding[i];
    ANEMONE_RETURN_IF_ERROR(CheckAlong(along));
    SettlePads(auto_pad, x[i + 2], y[i + 2], transposed, along);
  }
  p.type = TypeFor(p, transposed);
  return p;
}

}  // namespace

absl::StatusOr<ConvParams> ReadConvParams(const Node& node, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes x, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Sizes w, c.ShapeOf(node.inputs[1]));
  ANEMONE_ASSIGN_OR_RETURN(Sizes y, c.ShapeOf(node.outputs[0]));
  return ReadAttributes(c, node, x, w, y);
}

absl::StatusOr<ConvNode> ReadConvNode(const Node& node, LowerContext& c) {
  ConvNode read;
  ANEMONE_ASSIGN_OR_RETURN(read.x, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(read.w, c.ShapeOf(node.inputs[1]));
  ANEMONE_ASSIGN_OR_RETURN(read.y, c.ShapeOf(node.outputs[0]));
  read.kernel = c.view().Constant(node.inputs[1]);
  if (HasInput(node, 2)) read.bias = c.view().Constant(node.inputs[2]);
  if (read.kernel == nullptr || (HasInput(node, 2) && read.bias == nullptr)) {
    return c.NotConstant("convolution whose kernel or bias is computed at run time");
  }
  if (!IsEngineConstant(read.kernel->type())) {
    return c.NotLowered("convolution with an integer kernel");
  }
  ANEMONE_ASSIGN_OR_RETURN(read.params, ReadAttributes(c, node, read.x, read.w, read.y));
  return read;
}

namespace {

// The spatial axes are on D, H and W in every rank: N, C, W becomes N, C, 1, W, as by PlaceShape().
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ConvNode read, ReadConvNode(node, c));
  if (c.route() == Route::kMil && !IsOfMilRank(read.x.size(), read.params)) {
    return c.Refuse(rule::kConvMilRank);
  }
  // The software engine treats the depth as a batch axis.
  const Along& d = read.params.d;
  if (d.kernel == 1 && (d.stride > 1 || d.pads() > 0)) {
    return c.NotLowered("convolution with a stride or padding along the depth, as one unit");
  }
  Operand x = c.In(node.inputs[0]);
  std::vector<Tensor> weights = {*read.kernel};
  if (read.bias != nullptr) weights.push_back(*read.bias);
  Operand y = c.Add(ConvUnit(), read.params, {x}, std::move(weights));
  return c.Out(node.outputs[0], y);
}

// The number of output elements (input elements for a deconvolution) times the size of the kernel
// that applies to each. Also for integer convolutions that the importer did not rewrite to floats.
int64_t Macs(const Graph& graph, const Node& node) {
  const Sizes w = graph.values[node.inputs[node.op_type == "QLinearConv" ? 3 : 1]].dims();
  const bool transposed = node.op_type == "ConvTranspose";
  const Sizes at = graph.values[transposed ? node.inputs[0] : node.outputs[0]].dims();
  return w.empty() ? 0 : Product(at) * Product(absl::MakeConstSpan(w).subspan(1));
}

constexpr Lowering kLowerings[] = {
    {.op = "Conv", .lower = Lower, .macs = Macs},
    {.op = "ConvTranspose", .lower = Lower, .macs = Macs},
    {.op = "QLinearConv", .macs = Macs},
    {.op = "ConvInteger", .macs = Macs},
};

// The dims of the kernel of a MIL call, and the kernel if it is constant.
struct Kernel {
  Sizes sizes;
  std::optional<MilTensor> constant;
};

absl::StatusOr<Kernel> ReadKernel(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> constant, c.Constant("weight"));
  if (!constant && c.arguments() > 1 && c.call().arguments[1].constant) {
    constant = c.call().arguments[1];
  }
  if (!constant && c.arguments() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(c.call().op, ": argument 'weight' is missing"));
  }
  Kernel kernel{constant ? constant->shape : c.ShapeOf(1), constant};
  const size_t rank = kernel.sizes.size();
  if (rank < 3 || rank > kMaxRank || c.rank(0) != rank ||
      *std::min_element(kernel.sizes.begin(), kernel.sizes.end()) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(c.call().op, ": want a weight of rank 3 to 5 and an input of the same rank"));
  }
  return kernel;
}

// Reads output_shape, which sets the output padding of a deconvolution.
absl::Status ReadOutputShape(MilContext& c, absl::Span<const int64_t> x, size_t spatial,
                             std::vector<Along>& window) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes wanted, c.Ints("output_shape", {}));
  if (wanted.empty()) return absl::OkStatus();
  if (wanted.size() < spatial) {
    return absl::InvalidArgumentError("conv_transpose: output_shape does not fit the kernel");
  }
  for (size_t i = 0; i < spatial; ++i) {
    Along& a = window[i];
    int64_t made = (x[i + 2] - 1) * a.stride + a.extent() - a.pads();
    a.output_padding = wanted[wanted.size() - spatial + i] - made;
    ANEMONE_RETURN_IF_ERROR(CheckAlong(a));
  }
  return absl::OkStatus();
}

absl::StatusOr<ConvParams> ReadCall(MilContext& c, const Kernel& kernel, bool transposed) {
  const Sizes& w = kernel.sizes;
  const size_t spatial = w.size() - 2;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Along> window,
                           ReadWindow(c, absl::MakeConstSpan(w).subspan(2), transposed));
  ConvParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.groups, c.Int("groups", 1));
  if (p.groups < 1 || p.groups > kTableBound) {
    return absl::InvalidArgumentError(absl::StrCat(c.call().op, ": want groups of at least 1"));
  }
  if (transposed) {
    ANEMONE_RETURN_IF_ERROR(ReadOutputShape(c, c.ShapeOf(0), spatial, window));
    if (w[0] != c.ShapeOf(0)[1]) {
      return absl::InvalidArgumentError(
          "conv_transpose: want a weight whose first axis is the number of input channels");
    }
  }
  p.out_channels = transposed ? w[1] * p.groups : w[0];
  if (!transposed) p.kernel_channels = w[1];
  Along* places[] = {&p.w, &p.h, &p.d};
  for (size_t i = 0; i < spatial; ++i) *places[spatial - 1 - i] = window[i];
  p.type = TypeFor(p, transposed);
  return p;
}

absl::Status Build(MilContext& c) {
  c.Ignore("kernel");
  const bool transposed = c.call().op == "conv_transpose";
  Operand x = c.In(0);
  ANEMONE_ASSIGN_OR_RETURN(Kernel kernel, ReadKernel(c));
  ANEMONE_ASSIGN_OR_RETURN(ConvParams p, ReadCall(c, kernel, transposed));
  ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> bias, c.Constant("bias"));
  if (c.route() == Route::kMil && !IsOfMilRank(c.rank(0), p)) return c.Refuse(rule::kConvMilRank);
  std::vector<Operand> bottoms = {x};
  std::vector<Tensor> weights;
  if (kernel.constant) {
    ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(*kernel.constant));
    if (!IsEngineConstant(zeros.type())) return c.Refuse(rule::kIntegerWeight);
    weights.push_back(std::move(zeros));
  } else {
    Operand dynamic = c.In(1);
    bottoms.push_back(dynamic);
  }
  if (bias) {
    if (!kernel.constant)
      return c.NotLowered("convolution with a bias whose weight is computed at run time");
    ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(*bias));
    if (zeros.elements() != p.out_channels) {
      return absl::InvalidArgumentError(absl::StrCat(c.call().op, ", 'bias': want ", p.out_channels,
                                                     " elements, one for each channel"));
    }
    if (!IsEngineConstant(zeros.type())) return c.Refuse(rule::kIntegerWeight);
    weights.push_back(std::move(zeros));
  }
  // Validated here: a window that does not fit gives an empty output, which would be refused with
  // another text.
  const std::vector<Bottom> in = c.BottomsOf(bottoms);
  Verdict verdict = ConvUnit().Validate(&p, in, c.target(), c.route());
  ANEMONE_ASSIGN_OR_RETURN(Dims dims, ConvUnit().judge.shape(&p, in));
  const bool empty = *std::min_element(dims.extent.begin(), dims.extent.end()) < 1;
  if (empty && !verdict.accepted) return c.Refuse(std::move(verdict));
  x = c.Add(ConvUnit(), p, std::move(bottoms), std::move(weights));
  Sizes shape = {dims.n(), dims.c()};
  if (c.rank(0) == kMaxRank) shape.push_back(dims.d());
  if (c.rank(0) >= 4) shape.push_back(dims.h());
  shape.push_back(dims.w());
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {
    {"conv", Build}, {"conv_transpose", Build}, {"ne_conv", Build}};

}  // namespace

KernelRows ConvLoweringRows() { return {{&ConvUnit()}, kLowerings, kOperations}; }

}  // namespace anemone
