// importer/operators/operators.h: a table of what Anemone knows about each ONNX operator, one row
// per operator.
//
//   const Operator& op = OperatorOf(node);
//   if (op.identity != nullptr) input = op.identity(editor, node);
//
// A new operator needs two edits: its lowering in kernels/, and its row in the file of its family
// (elementwise.cc, moves.cc, layers.cc, contrib.cc). The default of every column is the answer for
// an unknown operator, which is always safe; an operator without a row gets only defaults. A test
// (tests/importer/operators_test.cc) fails for an operator of ONNX that has neither a row nor a
// reason in the test.
#ifndef ANEMONE_IMPORTER_OPERATORS_OPERATORS_H_
#define ANEMONE_IMPORTER_OPERATORS_OPERATORS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "importer/graph.h"
#include "importer/operators/interval_rules.h"
#include "importer/operators/row_rules.h"
#include "importer/padding/padding_step.h"

namespace onnx {
class TypeProto;
}  // namespace onnx

namespace anemone {

class ConstantNode;
class ContribBody;
class GradientContext;
class GraphEditor;
class LiftContext;

// Whether the outputs are unchanged elements of an input, and what selects them.
enum class Moves {
  kNo,
  kInOrder,  // all elements of the first input, in order: Reshape
  kByShape,  // selected by shapes and attributes: Transpose, Slice. Applies to all outputs
  kByData,   // selected by values of an input: Gather, MaxPool. Applies to the first output only
};

// The operator's units give the results of integer arithmetic in fp16, as long as fp16 represents
// all the integers exactly (kernels/integers.h).
struct IntegerUse {
  unsigned inputs = ~0u;  // bit i: input i holds such integers; others are indices or shapes
  const char* refused = nullptr;  // why no unit computes the operator on integers
};
inline constexpr IntegerUse kAllInputs = {};
inline constexpr IntegerUse kFirstInput = {.inputs = 0b1};

// Some floats are integers that were cast to float: positions, lengths or indices. This says what
// an operator does with them.
enum class FloatIntegers {
  kEnd,   // the result is no longer such an integer
  kPass,  // the result is, perhaps times a number
  kTell,  // the operator distinguishes neighboring integers
};

// What an operator does with numbers beyond the range of fp16 (importer/operators/float_ranges.h).
enum class LargeNumbers {
  kChange,        // other numbers would give another result
  kPass,          // the result holds them, perhaps moved or with another number added
  kChoose,        // each element is one of the inputs' or a bound: Max, Where, Relu
  kCompare,       // only the order of the elements counts: Greater, ArgMax
  kPickLargest,   // picks elements by their order, and not those of minus infinity beside others
  kPickSmallest,  // the same for plus infinity
  kFlat,          // all of them give the same result: Softmax, Sigmoid
  kQuantize,      // the same, unless the grid reaches beyond fp16's range
};

// The float attributes that the engine holds as fp16 numbers. Others are used before constants are
// rounded, or only decide what is computed.
struct NumberAttributes {
  using Names = std::array<absl::string_view, 2>;
  Names held = {};  // as they are
  // Or as two numbers whose product they are (kernels/units/goc.h). factors[i] multiplies input
  // 1 + i, if the operator has that input.
  Names factors = {};
};

// How a reduction treats padding, see importer/padding/padding.h.
struct Reduction {
  bool takes_zeros;  // zeros in the padding do not change the result
  Bounds (*bounds)(absl::Span<const Bounds>);
};

// A node whose version is in [from, up_to] is replaced by nodes of the working opset
// (importer/opset/opset.h).
inline constexpr int kAnyLater = 1 << 20;
struct Lift {
  int from = 1, up_to = 0;
  absl::Status (*lift)(LiftContext&) = nullptr;
};

// How to fold a node of constants, one of which is not small, into one compressed constant
// (importer/write/compressed_nodes.h).
using CompressedRule = absl::StatusOr<std::optional<Tensor>> (*)(const Graph&, const Node&);

// The axes of the weights, input 1. The operator sums over `depth`, or, if that is -1, over all
// axes except the channels.
struct WeightAxes {
  int channels, depth;
};

// An operator that is replaced by a body of plain nodes (importer/contrib/contrib.h).
struct Contrib {
  absl::Status (*expand)(ContribBody&);
  std::vector<onnx::TypeProto> (*infer)(const Graph&, const Node&);
  unsigned required;  // bit i: input i must be present
  unsigned alike;     // bit i: input i, if present, has the operator's main type
  // For a quantized operator of `operands` operands: the equivalent float operator.
  const char* plain = nullptr;
  size_t operands = 0;
};

// How a node is trained (importer/gradients/gradient.h). An operator with none of these is trained
// as the function that ONNX defines for it, if there is one.
struct GradientRule {
  absl::Status (*vjp)(GradientContext&) = nullptr;  // writes its vector-Jacobian product
  // Writes the node in another form if some of its weights are trained; returns whether it did.
  absl::StatusOr<bool> (*trained_form)(GradientContext&) = nullptr;
  const char* refused = nullptr;  // why it has no gradient
};

// What training does with the node's constants and with the node (importer/training).
struct TrainingUse {
  unsigned never_weights = 0;  // bit i: input i is a statistic, a bound or a size, never a weight
  bool has_weights = false;    // a constant of one element is a weight too, not one of a formula
  bool may_update = false;     // computes gradients of weights, for `--update cpu`
};

struct Operator {
  absl::string_view op_type;
  absl::string_view domain = "";

  Moves moves = Moves::kNo;

  // The interval of the first output's integers, ignoring the type's limits. If null: that of the
  // first input if the operator moves elements, else unknown.
  interval::Rule interval = nullptr;

  // Bounds of the first output's floats that do not depend on the inputs, unless other columns give
  // bounds. `shares`: the elements are shares of one number, so that their sum is not larger.
  std::optional<Bounds> range = std::nullopt;
  bool shares = false;
  // The same bounds from those of the inputs, where `elementwise` and `interval` give none. An
  // input that is not present is 0.
  Bounds (*float_bounds)(absl::Span<const Bounds>) = nullptr;
  LargeNumbers large = LargeNumbers::kChange;
  NumberAttributes numbers = {};

  // How padding flows (importer/padding/padding.h). The first one that is set applies: a special
  // rule, a reduction, or an element-by-element operator. If none is set, the operator must not
  // read padding.
  PaddingRule padding = nullptr;
  std::optional<Reduction> reduction = std::nullopt;
  std::optional<Elementwise> elementwise = std::nullopt;

  // What one row of the result needs (importer/operators/row_rules.h). If null: the row of each
  // input if the operator works element by element, else everything.
  RowRule rows = nullptr;

  std::optional<IntegerUse> integers = std::nullopt;  // nullopt: the lowering decides
  FloatIntegers float_integers = FloatIntegers::kEnd;

  // The input that the node returns unchanged, or nullopt (importer/operators/identities.h). The
  // node must have its first input and first output.
  std::optional<size_t> (*identity)(GraphEditor&, const Node&) = nullptr;

  Lift lift = {};

  // Checks that ONNX's inference does not make (importer/infer/infer_checks.h): before it, and
  // after it.
  absl::Status (*check)(const Graph&, const Node&) = nullptr;
  absl::Status (*check_sizes)(const Graph&, const Node&) = nullptr;

  // Bit i: the result's shape follows from the elements of input i (IsSizedInRun).
  unsigned sizes = 0;

  // Folding.
  bool sized_by_data = false;     // the size of the result depends on values of the inputs
  bool divides_integers = false;  // a divisor of 0 raises a trap on the CPU
  CompressedRule compressed = nullptr;
  // Computes small constants as ONNX Runtime does (importer/infer/compute.h).
  std::optional<Tensor> (*compute)(const ConstantNode&) = nullptr;

  // The function returns nullopt if a node of this form does not multiply by input 1, a tensor of
  // rank `rank`.
  std::optional<WeightAxes> (*weight_axes)(const Node&, int rank) = nullptr;

  // The operator multiplies, and only the plain nodes that replace it are counted. A node that is
  // not replaced has unknown MACs (partitioner/macs.h).
  bool unknown_macs = false;

  std::optional<Contrib> contrib = std::nullopt;

  GradientRule gradient = {};
  TrainingUse training = {};
};

// The row of the node's operator, or a row of defaults if there is none.
const Operator& OperatorOf(const Node& node);

// Null if there is no such row.
const Operator* FindOperator(absl::string_view domain, absl::string_view op_type);

// True if the shape of the node's result follows from the elements of a value that is not a
// constant. If the shape is known, then only because the file declares it: a run can give another
// one, so no node may be computed by it.
bool IsSizedInRun(const Graph& graph, const Node& node);

// All rows, family by family.
std::vector<const Operator*> AllOperators();

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_OPERATORS_H_
