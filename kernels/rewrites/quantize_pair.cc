// QuantizeLinear -> DequantizeLinear with the same scale and zero point: a quantized activation
// whose integers have no other reader. There are two forms, depending on n, the largest |q - zero
// point| of the grid of quantized values (docs/quantized.md):
// - n <= 1023: the rounding is computed, clip(round(x / scale), least, most) * scale. Here, least
//   and most are the limits of the integer type minus the zero point. Everything between the two
//   products is exact in fp16. A result is off by one step if x / scale is within
//   |x / scale| * 2^-10 of a half.
// - n >= 2048: at the end of the grid, fp16 is not finer than the grid. The pair becomes a clip to
//   the ends of the grid, which is off by at most scale / 2.
// DequantizeLinear alone, with integers that the engine may hold (kernels/integers.h), is exact.
// DynamicQuantizeLinear -> DequantizeLinear chooses its scale at run time so that nothing is
// clipped. It becomes the identity, which is off by at most half a step, (max - min) / 510.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "importer/elements.h"
#include "importer/operators/intervals.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/goc.h"

namespace anemone {
namespace {

// Rounding to integers is exact up to this magnitude (numerics.json ew-round-op).
constexpr double kMostSteps = 1023;
// From this n on, a step of the grid is at most one ulp of fp16 at the end of the grid.
constexpr double kFineGrid = fp16::kLargestExactInteger;
constexpr int64_t kMostScales = 1 << 16;
// In this range, a scale and its reciprocal are both normal fp16 numbers.
constexpr float kLeastScale = fp16::kSmallestNormal, kMostScale = 1 / kLeastScale;
// From here on, a step is at least 16 times the distance between the smallest numbers of fp16. One
// scale for the whole tensor may be as small, because it is written as two factors.
constexpr float kLeastFactoredScale = 0x1p-20f;

bool SameConstant(const GraphView& view, ValueId a, ValueId b) {
  if (a == b) return true;
  const Tensor* first = view.Constant(a);
  const Tensor* second = view.Constant(b);
  return first != nullptr && second != nullptr && SameTensor(*first, *second);
}

// match.nodes becomes the QuantizeLinear, match.values its input.
bool MatchPair(const GraphView& view, const Node& dequantize, Match& match) {
  const Node* quantize = view.OnlyProducer(dequantize.inputs[0], "QuantizeLinear");
  if (quantize == nullptr) return false;
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!SameConstant(view, InputOr(*quantize, i), InputOr(dequantize, i))) return false;
  }
  match.nodes = {view.IdOf(*quantize)};
  match.values = {quantize->inputs[0]};
  return true;
}

bool MatchDynamicPair(const GraphView& view, const Node& dequantize, Match& match) {
  const Node* quantize = view.Producer(dequantize.inputs[0], "DynamicQuantizeLinear");
  if (quantize == nullptr || dequantize.inputs.size() != 3) return false;
  if (!std::equal(quantize->outputs.begin(), quantize->outputs.end(), dequantize.inputs.begin(),
                  dequantize.inputs.end())) {
    return false;
  }
  match.nodes = {view.IdOf(*quantize)};
  match.values = {quantize->inputs[0]};
  return true;
}

// The scale, the zero point, and the limits of the integers minus the zero point. Each has one
// number, or one for each element of an axis. Scales are fp16 numbers.
struct Grid {
  std::vector<float> scale, zero, least, most;
  std::vector<int64_t> dims;  // the ONNX shape with which the numbers are broadcast
};

// The grid of a QuantizeLinear or DequantizeLinear, between floats of `shape` and integers of
// `type`.
absl::StatusOr<Grid> GridOf(LowerContext& c, const Node& node, DataType type,
                            absl::Span<const int64_t> shape) {
  const Tensor* scale = c.view().Constant(node.inputs[1]);
  if (scale == nullptr) return c.NotLowered("quantization with a scale that is not a constant");
  const std::optional<std::vector<double>> scales = ToNumbers(*scale, kMostScales);
  const auto limits = LimitsOf(type);
  if (!scales || !limits) {
    return c.NotLowered("quantization to a type that is not an integer, or with too many scales");
  }
  std::vector<double> zeros(scales->size());
  if (HasInput(node, 2)) {
    const Tensor* given = c.view().Constant(node.inputs[2]);
    const auto numbers = given == nullptr ? std::nullopt : ToNumbers(*given, kMostScales);
    if (!numbers || numbers->size() != zeros.size()) {
      return c.NotLowered("quantization whose zero points are not one constant for each scale");
    }
    zeros = *numbers;
  }
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t block, a.Int("block_size", 0));
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", 1));
  for (const char* known : {"saturate", "precision", "output_dtype"}) a.Ignore(known);
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (block != 0) return c.NotLowered("quantization of an activation with block_size");
  Grid grid;
  if (scales->size() != 1) {
    ANEMONE_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, static_cast<int64_t>(shape.size())));
    if (scale->dims().size() != 1 || shape[at] != scale->elements()) {
      return c.NotLowered("quantization whose scales are not one for each element of the axis");
    }
    grid.dims.assign(shape.size(), 1);
    grid.dims[at] = scale->elements();
  }
  for (size_t i = 0; i < zeros.size(); ++i) {
    grid.scale.push_back(static_cast<float>((*scales)[i]));
    grid.zero.push_back(static_cast<float>(zeros[i]));
    grid.least.push_back(static_cast<float>(static_cast<double>(limits->low) - zeros[i]));
    grid.most.push_back(static_cast<float>(static_cast<double>(limits->high) - zeros[i]));
  }
  return grid;
}

// Numbers of the grid as a constant that is broadcast to `shape`.
Operand Constant(NetworkBuilder& c, const Grid& grid, const std::vector<float>& numbers,
                 absl::Span<const int64_t> shape) {
  return AlignedConstant(c, Tensor::Floats(grid.dims, numbers), shape);
}

Operand Times(NetworkBuilder& c, const Operand& x, const Grid& grid,
              const std::vector<float>& factors, absl::Span<const int64_t> shape) {
  if (factors.size() == 1) return ScaleInFactors(c, x, factors[0], 0);
  Operand by = Constant(c, grid, factors, shape);
  return Combined(c, ElementWiseType::kMult, x, by);
}

Operand Clipped(NetworkBuilder& c, Operand x, const Grid& grid, const std::vector<float>& least,
                const std::vector<float>& most, absl::Span<const int64_t> shape) {
  if (least.size() == 1) {
    return Activated(c, NeuronType::kClampedReLU, x, std::max(least[0], fp16::kLowest),
                     std::min(most[0], fp16::kLargest));
  }
  Operand low = Constant(c, grid, least, shape);
  Operand high = Constant(c, grid, most, shape);
  x = Combined(c, ElementWiseType::kMax, x, low);
  return Combined(c, ElementWiseType::kMin, x, high);
}

float Largest(const std::vector<float>& numbers) {
  return *std::max_element(numbers.begin(), numbers.end());
}

absl::Status CheckDigits(LowerContext& c, const Grid& grid) {
  const bool factored = grid.scale.size() == 1;
  for (float scale : grid.scale) {
    if (scale >= (factored ? kLeastFactoredScale : kLeastScale) && scale <= kMostScale) continue;
    return c.NotLowered(absl::StrCat("quantization with a scale of ", scale, ", outside of ",
                                     factored ? "2^-20" : "2^-14",
                                     "..2^14, where fp16 is precise"));
  }
  return absl::OkStatus();
}

Operand InSteps(LowerContext& c, Operand x, const Grid& grid, absl::Span<const int64_t> shape) {
  ANEMONE_FAIL_IF_ERROR(c, CheckDigits(c, grid));
  std::vector<float> reciprocals;
  for (float scale : grid.scale) reciprocals.push_back(1 / scale);
  x = Times(c, x, grid, reciprocals, shape);
  x = Clipped(c, x, grid, grid.least, grid.most, shape);
  x = Activated(c, NeuronType::kRoundNearest, x);
  c.SetBound(absl::StrCat(
      Largest(grid.scale),
      " (one quantization step) where x / scale is within |x / scale| * 2^-10 of a half, else 0"));
  return Times(c, x, grid, grid.scale, shape);
}

Operand ToEnds(LowerContext& c, const Operand& x, Grid grid, absl::Span<const int64_t> shape) {
  for (size_t i = 0; i < grid.scale.size(); ++i) {
    if (!(grid.scale[i] > 0)) return c.NotLowered("quantization with a scale that is not above 0");
    grid.least[i] *= grid.scale[i];
    grid.most[i] *= grid.scale[i];
  }
  c.SetBound(absl::StrCat(Largest(grid.scale) / 2, " (half a quantization step)"));
  return Clipped(c, x, grid, grid.least, grid.most, shape);
}

absl::Status LowerPair(const Match& match, LowerContext& c) {
  const Node& dequantize = c.anchor(match);
  const Node& quantize = c.graph().nodes[match.nodes[0]];
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(dequantize.outputs[0]));
  const DataType type = c.graph().values[quantize.outputs[0]].type;
  ANEMONE_ASSIGN_OR_RETURN(Grid grid, GridOf(c, quantize, type, shape));
  ANEMONE_ASSIGN_OR_RETURN(const Grid back, GridOf(c, dequantize, type, shape));
  if (grid.dims != back.dims) {
    return c.NotLowered("QuantizeLinear and DequantizeLinear with different axes");
  }
  Operand x = c.In(match.values[0]);
  double most = 0, least = kFineGrid;
  for (size_t i = 0; i < grid.scale.size(); ++i) {
    const double n = std::max(std::abs(grid.least[i]), std::abs(grid.most[i]));
    most = std::max(most, n);
    least = std::min(least, n);
  }
  if (most <= kMostSteps) {
    x = InSteps(c, x, grid, shape);
  } else if (least >= kFineGrid) {
    x = ToEnds(c, x, std::move(grid), shape);
  } else {
    return c.NotLowered(
        "quantization whose integers are up to 1024..2047 away from the zero point: too fine to "
        "round to in fp16, too coarse to ignore");
  }
  return c.Out(dequantize.outputs[0], x);
}

absl::Status LowerDynamicPair(const Match& match, LowerContext& c) {
  Operand x = c.In(match.values[0]);
  c.SetBound("(max - min) / 510 of the tensor (half a quantization step, known at run time)");
  return c.Out(c.anchor(match).outputs[0], x);
}

// DequantizeLinear of integers that are known at a port, such as a model input of type uint8: (q -
// zero point) * scale, with one rounding. The first unit reads a uint8 port as it is.
absl::Status LowerDequantize(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Grid grid,
                           GridOf(c, node, c.graph().values[node.inputs[0]].type, shape));
  ANEMONE_RETURN_IF_ERROR(CheckDigits(c, grid));
  if (grid.scale.size() == 1 && grid.zero[0] == 0 && grid.scale[0] >= kLeastScale) {
    return c.Out(node.outputs[0], ScaleAndShift(c, c.InAsStored(node.inputs[0]), grid.scale[0], 0));
  }
  Operand x;
  if (grid.zero.size() == 1) {
    x = ScaleAndShift(c, c.InAsStored(node.inputs[0]), 1, -grid.zero[0]);
  } else {
    x = c.In(node.inputs[0]);
    Operand zero = Constant(c, grid, grid.zero, shape);
    x = Combined(c, ElementWiseType::kSub, x, zero);
  }
  x = Times(c, x, grid, grid.scale, shape);
  return c.Out(node.outputs[0], x);
}

// Either node without the other.
absl::Status RefuseAlone(const Match&, LowerContext& c) {
  return c.Refuse(OwnRefusal(
      Layer::kCoverage, "form-not-lowered",
      "not lowered: integer arithmetic is not supported; only a QuantizeLinear -> DequantizeLinear "
      "pair with the same constant scale and zero point, and without other readers between them, "
      "is",
      "export the model in QDQ format, with float operators between the pairs; otherwise no action "
      "is needed: the node runs on the CPU"));
}

constexpr Lowering kLowerings[] = {
    {.op = "DequantizeLinear",
     .pattern = "Q/DQ pair",
     .rewritten = true,
     .match = MatchPair,
     .lower = LowerPair},
    {.op = "DequantizeLinear",
     .pattern = "dynamic Q/DQ pair",
     .rewritten = true,
     .match = MatchDynamicPair,
     .lower = LowerDynamicPair},
    {.op = "DequantizeLinear", .rewritten = true, .lower = LowerDequantize},
    {.op = "DequantizeLinear", .lower = RefuseAlone},
    {.op = "QuantizeLinear", .lower = RefuseAlone},
    {.op = "DynamicQuantizeLinear", .lower = RefuseAlone},
};

}  // namespace

KernelRows QuantizePairRows() { return {{}, kLowerings}; }

}  // namespace anemone
