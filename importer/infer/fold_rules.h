// importer/infer/fold_rules.h: what fold.cc may fold: by own rules, or by evaluating.
#ifndef ANEMONE_IMPORTER_INFER_FOLD_RULES_H_
#define ANEMONE_IMPORTER_INFER_FOLD_RULES_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "importer/graph.h"
#include "importer/infer/infer.h"

namespace anemone {

// A result of more bytes than this, and than what it is made of, is not folded.
inline constexpr int64_t kLargestFolded = int64_t{16} << 20;

// The only output of a node whose types are inferred, if own rules give it: complete shape data,
// Size, views of constants, fills. No weight is read. kInvalidArgument: too large to count.
absl::StatusOr<std::optional<Tensor>> FoldByRule(const Model& model, const Graph& graph,
                                                 const ShapeData& data, const Node& node);

// False for random numbers, Dropout, nodes with bodies, operators that are not ONNX's, and versions
// other than the working opset (the evaluator runs that one).
bool IsDeterministic(const Node& node);

// All outputs are tensors of types that any evaluator can hand back.
bool MakesPlainTensors(const Graph& graph, const Node& node);

// The first operand is of floats and has none: ONNX Runtime's kernels may die of it (1.31.1:
// InstanceNormalization of 1x1x0x1x1).
bool ComputesFromNothing(const Graph& graph, const Node& node);

bool DividesIntegers(const Graph& graph, const Node& node);
// Whether an integer divisor has an element 0 or -1, or too many elements to look.
bool MayTrap(const Tensor& divisor);
// Whether such a division ends the process on the CPU: x / 0, or the lowest number / -1.
bool Traps(const Tensor& dividend, const Tensor& divisor);

// Bytes that the outputs take beyond what the inputs do; nullopt if that is too much to fold, or
// cannot be told.
std::optional<int64_t> GrowthOf(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_FOLD_RULES_H_
