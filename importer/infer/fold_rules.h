// importer/infer/fold_rules.h: rules of fold.cc: folding without an evaluator, and tests whether a
// node may be given to the evaluator.
#ifndef ANEMONE_IMPORTER_INFER_FOLD_RULES_H_
#define ANEMONE_IMPORTER_INFER_FOLD_RULES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "importer/graph.h"
#include "importer/infer/infer.h"

namespace anemone {

// A result is not folded if it is larger than this, in bytes, and larger than its inputs.
inline constexpr int64_t kLargestFolded = int64_t{16} << 20;

// Folds a node with one output whose types are inferred, without reading weights: complete shape
// data, Size, views of constants, fills. nullopt if no rule applies. kInvalidArgument: the size of
// the result overflows.
absl::StatusOr<std::optional<Tensor>> FoldByRule(const Model& model, const Graph& graph,
                                                 const ShapeData& data, const Node& node);

// False for random numbers, Dropout, nodes with bodies, operators that are not ONNX's, and versions
// other than the working opset (the evaluator supports only that one).
bool IsDeterministic(const Node& node);

// True if all outputs are tensors of types that every evaluator can return.
bool MakesPlainTensors(const Graph& graph, const Node& node);

// True if the first operand is a float tensor without elements. ONNX Runtime's kernels may crash on
// it (1.31.1: InstanceNormalization of 1x1x0x1x1).
bool ComputesFromNothing(const Graph& graph, const Node& node);

bool DividesIntegers(const Graph& graph, const Node& node);
// True if an integer divisor has an element 0 or -1, or too many elements to check.
bool MayTrap(const Tensor& divisor);
// True if the division would raise a CPU trap: x / 0, or the lowest number / -1.
bool Traps(const Tensor& dividend, const Tensor& divisor);

// Makes the outputs that the node has constants, in this order.
void MakeConstants(Graph& graph, const Node& node, std::vector<Tensor> values);

// The most bytes that the outputs can take; 0 if that is not known.
int64_t ResultBytes(const Graph& graph, const Node& node);

// The most bytes by which the outputs exceed the inputs; nullopt if that is too much to fold, or
// unknown.
std::optional<int64_t> GrowthOf(const Graph& graph, const Node& node);

// A tensor that keeps its share of the memory limit as long as its bytes; strings do not.
Tensor WithShare(const Tensor& tensor, const std::shared_ptr<const void>& share);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_FOLD_RULES_H_
