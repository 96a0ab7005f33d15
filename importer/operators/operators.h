// importer/operators/operators.h: what Anemone knows of each operator of ONNX, one row for each.
//
//   const Operator& op = OperatorOf(node);
//   if (op.identity != nullptr && op.identity(editor, node)) ...
//
// A new operator takes two edits: its lowering in kernels/ and its row in the file of its family
// (elementwise.cc, moves.cc, layers.cc, contrib.cc). A column that a row leaves out has the answer
// for an operator of which nothing is known, which is always safe; an operator without a row has
// nothing but such answers. A test (tests/importer/operators_test.cc) fails for an operator of ONNX
// that has neither a row nor a reason in the test.
#ifndef ANEMONE_IMPORTER_OPERATORS_OPERATORS_H_
#define ANEMONE_IMPORTER_OPERATORS_OPERATORS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "importer/graph.h"
#include "importer/operators/interval_rules.h"
#include "importer/padding/padding_step.h"

namespace onnx {
class TypeProto;
}  // namespace onnx

namespace anemone {

class ContribBody;
class GraphEditor;
class LiftContext;

// Whether an operator hands on elements of its first input, unchanged, and what says which.
enum class Moves {
  kNo,
  kInOrder,  // all of them in their order: Reshape
  kByShape,  // shapes and attributes: Transpose, Slice. All outputs hold such elements
  kByData,   // the elements of some input: Gather, MaxPool. The first output holds such elements
};

// The operator's units compute in fp16 what integer arithmetic computes, as long as all integers
// are fp16 numbers (kernels/integers.h).
struct IntegerUse {
  unsigned inputs = ~0u;  // bit i: input i holds such integers. Others are indices or shapes
  const char* refused = nullptr;  // why no unit computes the operator on integers
};
inline constexpr IntegerUse kAllInputs = {};
inline constexpr IntegerUse kFirstInput = {.inputs = 0b1};

// Floats may stand for integers: positions, lengths or indices that were cast to floats.
enum class FloatIntegers {
  kEnd,   // the result no longer does
  kPass,  // the result does, perhaps times a number
  kTell,  // the operator tells neighbouring integers apart
};

// What a reduction does to padding, see importer/padding/padding.h.
struct Reduction {
  bool takes_zeros;  // zeros change nothing
  Bounds (*bounds)(absl::Span<const Bounds>);
};

// A node whose version is in [from, up_to] is replaced by nodes of the working opset
// (importer/opset/opset.h).
inline constexpr int kAnyLater = 1 << 20;
struct Lift {
  int from = 1, up_to = 0;
  absl::Status (*lift)(LiftContext&) = nullptr;
};

// How a node of compressed constants is a compressed constant itself
// (importer/write/compressed_nodes.h).
struct CompressedRule {
  absl::StatusOr<std::optional<Tensor>> (*apply)(const Graph&, const Node&);
  size_t large_input = 0;  // the input whose size decides whether that is worth it
};

// The axes of the weights, input 1. `depth` is summed over; -1: all axes but the channels are.
struct WeightAxes {
  int channels, depth;
};

// An operator that becomes a body of plain nodes (importer/contrib/contrib.h).
struct Contrib {
  absl::Status (*expand)(ContribBody&);
  std::vector<onnx::TypeProto> (*infer)(const Graph&, const Node&);
  unsigned required;  // bit i: input i must be there
  unsigned alike;     // bit i: input i, if it is there, is of the type that the operator is of
  // A quantized operator of `operands` operands: the operator that computes it in floats.
  const char* plain = nullptr;
  size_t operands = 0;
};

struct Operator {
  absl::string_view op_type;
  absl::string_view domain = "";

  Moves moves = Moves::kNo;

  // The interval of the first output's integers, without the type's limits. Null: that of the first
  // input if the operator moves elements, else nothing is known.
  interval::Rule interval = nullptr;

  // How padding flows (importer/padding/padding.h), the first of these that is there: a rule of its
  // own; a reduction; each element is computed from the elements at the same place. Without any,
  // the operator must not read padding.
  PaddingRule padding = nullptr;
  std::optional<Reduction> reduction = std::nullopt;
  std::optional<Elementwise> elementwise = std::nullopt;

  std::optional<IntegerUse> integers = std::nullopt;  // nullopt: the lowering says what they are
  FloatIntegers float_integers = FloatIntegers::kEnd;

  // The input that the node hands on as it is; nullopt: it does not (importer/operators/
  // identities.h). The node's first input and first output are there.
  std::optional<size_t> (*identity)(GraphEditor&, const Node&) = nullptr;

  Lift lift = {};

  // What ONNX's inference does not check or does not survive (importer/infer/infer_checks.h):
  // before it, and after it.
  absl::Status (*check)(const Graph&, const Node&) = nullptr;
  absl::Status (*check_sizes)(const Graph&, const Node&) = nullptr;

  // Folding.
  bool sized_by_data = false;     // the result's size depends on the inputs' elements
  bool divides_integers = false;  // as the CPU does, which ends the process if the divisor is 0
  std::optional<CompressedRule> compressed = std::nullopt;

  // nullopt: a node of this form does not multiply by its input 1, a tensor of rank `rank`.
  std::optional<WeightAxes> (*weight_axes)(const Node&, int rank) = nullptr;

  std::optional<Contrib> contrib = std::nullopt;
};

// The row of the node's operator; an empty one if it has none.
const Operator& OperatorOf(const Node& node);

// Null: there is no such row.
const Operator* FindOperator(absl::string_view domain, absl::string_view op_type);

// All rows, family by family.
std::vector<const Operator*> AllOperators();

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_OPERATORS_H_
