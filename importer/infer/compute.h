// importer/infer/compute.h: computes nodes of small constants, mostly the arithmetic of shapes and
// indices. A session of ONNX Runtime that computes one takes about a millisecond.
//
//   std::vector<Tensor> made = ComputeSmall(graph, node);  // empty: ask ONNX Runtime
//
// The results are those of ONNX Runtime, bit for bit. A case in which they might not be is left to
// it: NaN, casts of most numbers that the type does not have, and everything that it may refuse.
// Functions, sums, products and normalizations of floats are the exception, because loading ONNX
// Runtime takes 25 MiB, and many models have a few (tables of rotations, buckets of distances,
// queries that are weights): they are computed in double and rounded to float. Those of ONNX
// Runtime depend on the processor.
#ifndef ANEMONE_IMPORTER_INFER_COMPUTE_H_
#define ANEMONE_IMPORTER_INFER_COMPUTE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

// The largest result, in elements. Anything that reads every element has this limit on its inputs
// too.
inline constexpr int64_t kMostComputed = int64_t{1} << 16;

// The outputs of the node, without the last ones that it does not have. Empty: an input is not
// constant, or no rule applies.
std::vector<Tensor> ComputeSmall(const Graph& graph, const Node& node);

// A node whose inputs are dense constants or fills of elements of at least 8 bits.
class ConstantNode {
 public:
  ConstantNode(const Graph& graph, const Node& node, size_t output)
      : graph_(graph), node_(node), output_(output) {}
  const Node& node() const { return node_; }
  size_t output() const { return output_; }  // the one that is computed
  size_t inputs() const { return node_.inputs.size(); }
  // Null if the node has no such input.
  const Tensor* In(size_t i) const {
    return HasInput(node_, i) ? &*graph_.values[node_.inputs[i]].constant : nullptr;
  }
  // The elements of a small int32 or int64 input.
  std::optional<std::vector<int64_t>> Ints(size_t i) const;

 private:
  const Graph& graph_;
  const Node& node_;
  size_t output_;
};

// The dims of arrays one after the other along `axis`, which the first of them has; nullopt if they
// do not fit each other.
std::optional<std::vector<int64_t>> ConcatDims(absl::Span<const std::vector<int64_t>> parts,
                                               int64_t axis);
// These arrays, which are dense, of one type of whole bytes, and have `dims` together.
Tensor Concatenated(absl::Span<const Tensor* const> parts, const std::vector<int64_t>& dims,
                    int64_t axis);

// The rules of single operators, which importer/operators/operators.h names. Input 0 is given.
namespace compute {

using Result = std::optional<Tensor>;

// Elements that are moved (compute_moves.cc).
Result Concat(const ConstantNode& c);
Result Expand(const ConstantNode& c);
Result Gather(const ConstantNode& c);
Result GatherElements(const ConstantNode& c);
Result NonZero(const ConstantNode& c);
Result ScatterElements(const ConstantNode& c);
Result ScatterND(const ConstantNode& c);
Result Slice(const ConstantNode& c);
Result Split(const ConstantNode& c);
Result Tile(const ConstantNode& c);
Result Transpose(const ConstantNode& c);
Result Trilu(const ConstantNode& c);
Result Where(const ConstantNode& c);

// Single numbers (compute_numbers.cc).
Result Add(const ConstantNode& c);
Result Sub(const ConstantNode& c);
Result Mul(const ConstantNode& c);
Result Div(const ConstantNode& c);
Result Mod(const ConstantNode& c);
Result Pow(const ConstantNode& c);
Result Max(const ConstantNode& c);
Result Min(const ConstantNode& c);
Result Equal(const ConstantNode& c);
Result Less(const ConstantNode& c);
Result LessOrEqual(const ConstantNode& c);
Result Greater(const ConstantNode& c);
Result GreaterOrEqual(const ConstantNode& c);
Result And(const ConstantNode& c);
Result Or(const ConstantNode& c);
Result Xor(const ConstantNode& c);
Result Not(const ConstantNode& c);
Result Neg(const ConstantNode& c);
Result Abs(const ConstantNode& c);
Result Floor(const ConstantNode& c);
Result Ceil(const ConstantNode& c);
Result Reciprocal(const ConstantNode& c);
Result Sqrt(const ConstantNode& c);
Result Exp(const ConstantNode& c);
Result Sin(const ConstantNode& c);
Result Cos(const ConstantNode& c);
Result Log(const ConstantNode& c);
Result Cast(const ConstantNode& c);
Result DequantizeLinear(const ConstantNode& c);
Result Range(const ConstantNode& c);

// Along axes (compute_reductions.cc).
Result ReduceMax(const ConstantNode& c);
Result ReduceMean(const ConstantNode& c);
Result ReduceMin(const ConstantNode& c);
Result ReduceProd(const ConstantNode& c);
Result ReduceSum(const ConstantNode& c);
Result Softmax(const ConstantNode& c);
Result LayerNormalization(const ConstantNode& c);

// Matrix products (compute_products.cc).
Result MatMul(const ConstantNode& c);
Result Gemm(const ConstantNode& c);

}  // namespace compute
}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_COMPUTE_H_
