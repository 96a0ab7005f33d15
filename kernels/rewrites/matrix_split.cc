// Matrix products that exceed a limit of the target.
//
// Products with more rows than the unit takes at once (rule matmul-kernel-memory) are computed in
// groups of rows, which are then joined. This is exact, because no sum is divided.
//
// A Gemm after a Flatten whose number of elements exceeds the channels of a target (rule
// max-dimension) becomes a convolution. The weight (n, C * H * W) has the same bytes as the kernel
// (n, C, H, W) of a convolution over the whole plane. Exact.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/conv/conv.h"
#include "kernels/node_inputs.h"
#include "kernels/units/concat.h"
#include "kernels/units/input_view.h"
#include "kernels/units/matrix_multiplication.h"
#include "kernels/units/reshape.h"

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;

// The dims of a stack of matrices (rank 2 or more): batches on N, rows on C and columns on W.
Dims StackDims(const Sizes& shape) {
  int64_t batch = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) batch *= shape[i];
  return MakeDims(batch, shape[shape.size() - 2], 1, shape.back());
}

// The batch axes of both operands are equal, or one operand has a single batch.
bool BatchesFit(const Sizes& a, const Sizes& b) {
  return StackDims(a).n() == 1 || StackDims(b).n() == 1 ||
         Sizes(a.begin(), a.end() - 2) == Sizes(b.begin(), b.end() - 2);
}

absl::Status LowerRows(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_RETURN_IF_ERROR(Attributes(node).NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(Sizes a, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Sizes b, c.ShapeOf(node.inputs[1]));
  ANEMONE_ASSIGN_OR_RETURN(Sizes y, c.ShapeOf(node.outputs[0]));
  if (std::min(a.size(), b.size()) < 2 || std::max(a.size(), b.size()) == kMaxRank ||
      !BatchesFit(a, b)) {
    return c.NotLowered("MatMul in groups of rows, with rank 1 or 5 or with broadcast batch axes");
  }
  const int64_t rows = StackDims(a).c();
  const int64_t most =
      Judge(c.target(), c.route()).Value(Limit::kKmemDenseCapBytes, 0) / BytesOf(Format::kFloat16);
  if (most < 1 || rows <= most || rows > most * kMostPieces) {
    return c.NotLowered(
        "MatMul in groups of rows, which is not necessary or needs more than 12 groups");
  }
  std::optional<ConstantMatrix> constant = ConstantRight(c.view(), node.inputs[1]);
  Operand right;
  if (!constant) {
    right = InAs(c, node.inputs[1], StackDims(b));
  }
  Operand left = InAs(c, node.inputs[0], StackDims(a));
  std::vector<Operand> parts;
  for (int64_t row = 0; row < rows; row += most) {
    const int64_t count = std::min(most, rows - row);
    Operand part = Sliced(c, left, Axis::kC, row, count);
    if (constant) {
      part = MatrixProduct(c, part, *constant);
    } else {
      part = MatrixProduct(c, part, right);
    }
    parts.push_back(part);
  }
  Operand joined = Concatenated(c, std::move(parts), Axis::kC);
  joined = ReshapeToDims(c, joined, PlaceShape(y));
  return c.Out(node.outputs[0], joined);
}

// The Flatten or Reshape of images to rows that computes the Gemm's input and has no other reader;
// null if there is none.
const Node* FlattenBefore(const GraphView& view, const Node& gemm) {
  for (const char* op : {"Flatten", "Reshape"}) {
    const Node* node = view.OnlyProducer(gemm.inputs[0], op);
    if (node == nullptr) continue;
    const Value& from = view.graph.values[node->inputs[0]];
    const Value& to = view.graph.values[node->outputs[0]];
    if (from.is_static() && to.is_static() && from.dims().size() == 4 && to.dims().size() == 2 &&
        from.dims()[0] == to.dims()[0]) {
      return node;
    }
  }
  return nullptr;
}

bool MatchPlane(const GraphView& view, const Node& anchor, Match& match) {
  const Node* flatten = FlattenBefore(view, anchor);
  if (flatten == nullptr) return false;
  match.nodes = {view.graph.values[anchor.inputs[0]].producer};
  match.values = {flatten->inputs[0]};
  return true;
}

absl::Status LowerPlane(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(float alpha, a.Float("alpha", 1));
  ANEMONE_ASSIGN_OR_RETURN(float beta, a.Float("beta", 1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t trans_a, a.Int("transA", 0));
  ANEMONE_ASSIGN_OR_RETURN(int64_t trans_b, a.Int("transB", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(Sizes plane, c.ShapeOf(match.values[0]));
  ANEMONE_ASSIGN_OR_RETURN(Sizes y, c.ShapeOf(node.outputs[0]));
  const int64_t inputs = plane[1] * plane[2] * plane[3], outputs = y.back();
  const Tensor* weight = c.view().Constant(node.inputs[1]);
  const Tensor* bias = HasInput(node, 2) ? c.view().Constant(node.inputs[2]) : nullptr;
  const bool plain_bias =
      !HasInput(node, 2) || (bias != nullptr && beta == 1 && IsEngineConstant(bias->type()) &&
                             bias->elements() == outputs);
  if (alpha != 1 || trans_a != 0 || trans_b == 0 || weight == nullptr ||
      !IsEngineConstant(weight->type()) || weight->dims() != Sizes{outputs, inputs} ||
      !plain_bias) {
    return c.NotLowered("Gemm as a convolution, with attributes or constants that do not allow it");
  }
  if (Judge(c.target(), c.route()).Within(inputs, Limit::kMaxTensorC)) {
    return c.NotLowered("Gemm as a convolution, although its inputs fit the channels");
  }
  ConvParams p{.out_channels = outputs};
  p.h.kernel = plane[2];
  p.w.kernel = plane[3];
  std::vector<Tensor> weights = {weight->Reshaped({outputs, plane[1], plane[2], plane[3]})};
  if (bias != nullptr) weights.push_back(*bias);
  Operand x = c.In(match.values[0]);
  x = c.Add(ConvUnit(), p, {x}, std::move(weights));
  x = ReshapeToDims(c, x, PlaceShape(y));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Gemm",
     .pattern = "gemm over a plane",
     .rewritten = true,
     .match = MatchPlane,
     .lower = LowerPlane},
    {.op = "MatMul", .rewritten = true, .lower = LowerRows},
};

}  // namespace

KernelRows MatrixSplitRows() { return {{}, kLowerings}; }

}  // namespace anemone
