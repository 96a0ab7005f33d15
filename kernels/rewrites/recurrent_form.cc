#include "kernels/rewrites/recurrent_form.h"

#include <algorithm>
#include <optional>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/node_inputs.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// The product of every step packs the weights of the state again. This limit is 128 MB of fp16.
constexpr int64_t kMostStateWeights = int64_t{64} << 20;

// A cell: its operator, its number of gates, and ONNX's default activations.
struct CellRow {
  const char* op;
  RecurrentCell cell;
  int64_t gates;
  std::vector<std::string> functions;
};

const CellRow& RowOf(const Node& node) {
  static const std::vector<CellRow>& rows = *new std::vector<CellRow>{
      {"LSTM", RecurrentCell::kLstm, 4, {"Sigmoid", "Tanh", "Tanh"}},
      {"GRU", RecurrentCell::kGru, 3, {"Sigmoid", "Tanh"}},
      {"RNN", RecurrentCell::kRnn, 1, {"Tanh"}},
  };
  return RowNamed(node.op_type, rows);
}

// Only activations without parameters are supported.
std::optional<NeuronType> FunctionOf(const std::string& name) {
  if (name == "Sigmoid") return NeuronType::kSigmoidHighPrecision;
  if (name == "Tanh") return NeuronType::kTanh;
  if (name == "Relu") return NeuronType::kReLU;
  return std::nullopt;
}

absl::Status ReadFunctions(const Node& node, LowerContext& c, RecurrentForm& form) {
  std::vector<std::string> names;
  if (const Attribute* attribute = node.FindAttribute("activations")) {
    const auto* given = std::get_if<std::vector<std::string>>(&attribute->value);
    if (given != nullptr) names = *given;
  }
  const std::vector<std::string>& defaults = RowOf(node).functions;
  for (int64_t d = 0; names.size() < defaults.size() * form.directions; ++d) {
    if (d == 0) names.clear();
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  for (const std::string& name : names) {
    std::optional<NeuronType> function = FunctionOf(name);
    if (!function) return c.NotLowered(absl::StrCat(node.op_type, " with activation ", name));
    form.functions.push_back(*function);
  }
  return absl::OkStatus();
}

// Sequence lengths must be omitted or all equal to the number of steps.
absl::Status CheckLengths(const Node& node, LowerContext& c, const RecurrentForm& form) {
  if (!HasInput(node, 4)) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, ConstantIntegers(c, node, 4, {}));
  for (int64_t length : lengths) {
    if (length != form.steps) {
      return c.NotLowered(
          absl::StrCat(node.op_type, " with sequence_lens other than the number of steps"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadAttributes(const Node& node, LowerContext& c, RecurrentForm& form) {
  Attributes a(node);
  a.Ignore("activations");
  a.Ignore("hidden_size");  // follows from the shapes of the weights
  ANEMONE_ASSIGN_OR_RETURN(std::string direction, a.String("direction", "forward"));
  ANEMONE_ASSIGN_OR_RETURN(int64_t layout, a.Int("layout", 0));
  ANEMONE_ASSIGN_OR_RETURN(int64_t coupled, a.Int("input_forget", 0));
  ANEMONE_ASSIGN_OR_RETURN(int64_t linear_first, a.Int("linear_before_reset", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (coupled != 0) return c.NotLowered("LSTM with input_forget");
  form.directions = direction == "bidirectional" ? 2 : 1;
  form.backwards = direction == "reverse";
  form.batch_first = layout != 0;
  form.linear_before_reset = linear_first != 0;
  return ReadFunctions(node, c, form);
}

}  // namespace

absl::StatusOr<RecurrentForm> ReadRecurrentForm(const Node& node, LowerContext& c) {
  RecurrentForm form{.cell = RowOf(node).cell, .gates = RowOf(node).gates};
  ANEMONE_RETURN_IF_ERROR(ReadAttributes(node, c, form));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> x, c.ShapeOf(node.inputs[0]));
  const Tensor* w = c.view().Constant(node.inputs[1]);
  const Tensor* r = c.view().Constant(node.inputs[2]);
  const Tensor* b = HasInput(node, 3) ? c.view().Constant(node.inputs[3]) : nullptr;
  if (w == nullptr || r == nullptr || (HasInput(node, 3) && b == nullptr)) {
    return c.NotConstant(absl::StrCat(node.op_type, " with weights computed at run time"));
  }
  for (const Tensor* t : {w, r, b}) {
    if (t != nullptr && !IsEngineConstant(t->type())) {
      return c.NotLowered(absl::StrCat(node.op_type, " with weights that are not floats"));
    }
  }
  if (HasInput(node, 7)) return c.NotLowered("LSTM with peepholes (input P)");
  form.hidden = r->dims().empty() ? 0 : r->dims().back();
  const int64_t rows = form.gates * form.hidden;
  if (x.size() != 3 || w->dims() != std::vector<int64_t>{form.directions, rows, x[2]} ||
      r->dims() != std::vector<int64_t>{form.directions, rows, form.hidden} ||
      (b != nullptr && b->dims() != std::vector<int64_t>{form.directions, 2 * rows})) {
    return absl::InvalidArgumentError(
        "W, R and B: want shapes that match the input; run the ONNX checker on the model");
  }
  form.steps = x[form.batch_first ? 1 : 0];
  form.batch = x[form.batch_first ? 0 : 1];
  form.inputs = x[2];
  if (std::min({form.steps, form.batch, form.inputs, form.hidden}) < 1) {
    return c.Refuse(rule::kEmptyTensor);
  }
  if (form.steps > kMostRecurrentSteps) {
    return c.NotLowered(
        absl::StrCat(node.op_type, " of more than ", kMostRecurrentSteps, " steps"));
  }
  if (r->elements() > kMostStateWeights / form.steps) {
    return c.NotLowered(absl::StrCat(node.op_type, " whose R has more than ", kMostStateWeights,
                                     " weights for all steps together"));
  }
  ANEMONE_RETURN_IF_ERROR(CheckLengths(node, c, form));
  return form;
}

}  // namespace anemone
