#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "importer/elements.h"
#include "importer/passes/passes.h"

namespace anemone {
namespace {

// Whether the node's first output has type and shape of its first input, all sizes known.
bool KeepsShape(GraphEditor& g, const Node& node) {
  const Value& in = g.value(node.inputs[0]);
  const Value& out = g.value(node.outputs[0]);
  return in.type == out.type && in.is_static() && out.is_static() && in.dims() == out.dims();
}

// Whether input `index` is a constant all of whose elements are `wanted`.
bool AllAre(GraphEditor& g, const Node& node, size_t index, int64_t wanted) {
  const Tensor* constant = g.ConstantOf(InputOr(node, index));
  if (constant == nullptr) return false;
  const auto ints = IntsOf(*constant);
  return ints.has_value() &&
         std::all_of(ints->begin(), ints->end(), [&](int64_t i) { return i == wanted; });
}

// Whether input `index` is one floating number, or a fill of it.
bool IsNumber(GraphEditor& g, const Node& node, size_t index, double number) {
  const Tensor* constant = g.ConstantOf(InputOr(node, index));
  if (constant == nullptr || !IsFloating(constant->type()) || constant->elements() == 0)
    return false;
  if (constant->elements() != 1 && !constant->is_fill()) return false;
  return ElementAsDouble(*constant, 0) == number;
}

bool IsRising(const std::optional<std::vector<int64_t>>& perm) {
  return perm.has_value() && std::is_sorted(perm->begin(), perm->end());
}

// The input that the node hands on as it is, if it does.
std::optional<size_t> PassedInput(GraphEditor& g, const Node& node) {
  constexpr std::array kShapers = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile"};
  constexpr std::array kFolds = {"Concat", "Sum", "Mean", "Max", "Min"};
  const std::string& op = node.op_type;
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), op) != names.end();
  };
  const auto if_true = [](bool condition, size_t input) {
    return condition ? std::optional<size_t>(input) : std::nullopt;
  };
  if (op == "Identity") return 0;
  if (is_one_of(kFolds)) return if_true(node.inputs.size() == 1, 0);
  if (op == "Dropout") {
    const Tensor* training = g.ConstantOf(InputOr(node, 2));
    const bool infers =
        InputOr(node, 2) == kNone ||
        (training != nullptr && training->elements() == 1 && !training->at<bool>(0));
    const ValueId mask = OutputOr(node, 1);
    return if_true(infers && (mask == kNone || g.UsesOf(mask) == 0), 0);
  }
  if (!KeepsShape(g, node)) {
    // x may be the second operand, and the first one a scalar.
    if (node.inputs.size() != 2 || (op != "Add" && op != "Mul")) return std::nullopt;
    const Value& second = g.value(node.inputs[1]);
    const Value& out = g.value(node.outputs[0]);
    if (!second.is_static() || !out.is_static() || second.dims() != out.dims()) return std::nullopt;
    return if_true(IsNumber(g, node, 0, op == "Add" ? 0 : 1), 1);
  }
  if (op == "Cast" || is_one_of(kShapers)) return 0;
  if (op == "Split") {  // of all and nothing
    return if_true(std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                               [&](ValueId rest) { return rest == kNone || g.UsesOf(rest) == 0; }),
                   0);
  }
  if (op == "Transpose") return if_true(IsRising(IntsOf(node, "perm")), 0);
  if (op == "Pad") return if_true(AllAre(g, node, 1, 0), 0);
  if (op == "Slice") return if_true(InputOr(node, 4) == kNone || AllAre(g, node, 4, 1), 0);
  if (op == "Mul" || op == "Div") return if_true(IsNumber(g, node, 1, 1), 0);
  if (op == "Add" || op == "Sub") return if_true(IsNumber(g, node, 1, 0), 0);
  return std::nullopt;
}

}  // namespace

// A node that hands an input on as it is goes away: Identity, Dropout in inference without mask,
// Cast to the same type, Reshape and its kin, Transpose, Pad, Slice, Split, Expand and Tile that
// keep everything in place, Concat, Sum and their kin of one input, x * 1, x / 1, x + 0, x - 0 (so
// -0 may stay -0). Needs: all sizes known, but for the first two. Keeps: nothing of the node's
// origin; a graph output keeps its name, and its Identity if an input or constant is behind it.
absl::StatusOr<bool> DropIdentity(GraphEditor& g, NodeId id) {
  const Node& node = g.node(id);
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.empty()) return false;
  if (node.inputs[0] == kNone || node.outputs[0] == kNone) return false;
  const std::optional<size_t> input = PassedInput(g, node);
  if (!input.has_value()) return false;
  return g.Bypass(id, node.inputs[*input]);
}

}  // namespace anemone
