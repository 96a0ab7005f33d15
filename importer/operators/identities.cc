#include "importer/operators/identities.h"

#include <algorithm>
#include <cstdint>

#include "base/bool_element.h"
#include "importer/elements.h"
#include "importer/operators/operators.h"

namespace anemone::identity {
namespace {

using Input = std::optional<size_t>;

Input FirstIf(bool condition) { return condition ? Input(0) : std::nullopt; }

// True if the first output has the type and shape of the first input, and all sizes are known.
bool KeepsShape(GraphEditor& g, const Node& node) {
  const Value& in = g.value(node.inputs[0]);
  const Value& out = g.value(node.outputs[0]);
  return in.type == out.type && in.is_static() && out.is_static() && in.dims() == out.dims();
}

// True if input `index` is a constant whose elements are all `wanted`.
bool AllAre(GraphEditor& g, const Node& node, size_t index, int64_t wanted) {
  const Tensor* constant = g.ConstantOf(InputOr(node, index));
  if (constant == nullptr) return false;
  const auto ints = IntsOf(*constant);
  return ints.has_value() &&
         std::all_of(ints->begin(), ints->end(), [&](int64_t i) { return i == wanted; });
}

// True if input `index` is a constant of one floating number or a fill of it, equal to `number`.
bool IsNumber(GraphEditor& g, const Node& node, size_t index, double number) {
  const Tensor* constant = g.ConstantOf(InputOr(node, index));
  if (constant == nullptr || !IsFloating(constant->type()) || constant->elements() == 0)
    return false;
  if (constant->elements() != 1 && !constant->is_fill()) return false;
  return ElementAsDouble(*constant, 0) == number;
}

// The index of the operand that is not the constant `number`, if it is returned unchanged.
Input OtherThan(GraphEditor& g, const Node& node, double number) {
  if (KeepsShape(g, node)) return FirstIf(IsNumber(g, node, 1, number));
  if (node.inputs.size() != 2) return std::nullopt;
  const Value& second = g.value(node.inputs[1]);
  const Value& out = g.value(node.outputs[0]);
  const bool keeps = second.is_static() && out.is_static() && second.dims() == out.dims();
  return keeps && IsNumber(g, node, 0, number) ? Input(1) : std::nullopt;
}

}  // namespace

Input Always(GraphEditor&, const Node&) { return 0; }

Input OfOneInput(GraphEditor&, const Node& node) { return FirstIf(node.inputs.size() == 1); }

Input InInference(GraphEditor& g, const Node& node) {
  const Tensor* training = g.ConstantOf(InputOr(node, 2));
  const bool infers = InputOr(node, 2) == kNone ||
                      (training != nullptr && IsOneBool(*training) && !BoolAt(*training, 0));
  const ValueId mask = OutputOr(node, 1);
  return FirstIf(infers && (mask == kNone || g.UsesOf(mask) == 0));
}

Input IfSameShape(GraphEditor& g, const Node& node) {
  return FirstIf(KeepsShape(g, node) && !IsSizedInRun(g.graph(), node));
}

Input OfAllAndNothing(GraphEditor& g, const Node& node) {
  return FirstIf(KeepsShape(g, node) &&
                 std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                             [&](ValueId rest) { return rest == kNone || g.UsesOf(rest) == 0; }));
}

Input InRisingOrder(GraphEditor& g, const Node& node) {
  const auto perm = IntsOf(node, "perm");
  return FirstIf(KeepsShape(g, node) && perm.has_value() &&
                 std::is_sorted(perm->begin(), perm->end()));
}

Input WithoutPads(GraphEditor& g, const Node& node) {
  return FirstIf(KeepsShape(g, node) && AllAre(g, node, 1, 0));
}

Input InStepsOfOne(GraphEditor& g, const Node& node) {
  return FirstIf(KeepsShape(g, node) && (InputOr(node, 4) == kNone || AllAre(g, node, 4, 1)));
}

Input TimesOne(GraphEditor& g, const Node& node) { return OtherThan(g, node, 1); }

Input ByOne(GraphEditor& g, const Node& node) {
  return FirstIf(KeepsShape(g, node) && IsNumber(g, node, 1, 1));
}

Input PlusZero(GraphEditor& g, const Node& node) { return OtherThan(g, node, 0); }

Input MinusZero(GraphEditor& g, const Node& node) {
  return FirstIf(KeepsShape(g, node) && IsNumber(g, node, 1, 0));
}

}  // namespace anemone::identity
