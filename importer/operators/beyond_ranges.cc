#include "importer/operators/beyond_ranges.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/string_view.h"
#include "importer/edit.h"
#include "importer/operators/float_rule.h"
#include "importer/operators/operators.h"
#include "importer/padding/padding_bounds.h"

namespace anemone {
namespace {

// The constant's numbers, with infinities as +-kEndless; {0, 0} if they are not known.
Bounds NumbersOfConstant(const Bounds& b) {
  const bool is_unknown = std::isinf(b.low) && std::isinf(b.high) && b.low < b.high;
  if (is_unknown) return {0, 0};
  return {std::clamp(b.low, -kEndless, kEndless), std::clamp(b.high, -kEndless, kEndless)};
}

// The sides of `b` that fp16 cannot hold; 0 on the others, and where the bound is not known.
Bounds SidesBeyond(const Bounds& b) {
  const auto side = [](double x) {
    return std::isfinite(x) && ExceedsHalf(std::fabs(x)) ? std::clamp(x, -kEndless, kEndless) : 0;
  };
  return {side(std::min(b.low, 0.0)), side(std::max(b.high, 0.0))};
}

// `op` picks the smallest elements, else the largest.
bool PicksSmallest(const Operator& op, const Node& node) {
  return op.large == LargeNumbers::kPickSmallest || IntOr(node, "largest", 1) == 0;  // TopK
}

// What a node of this operator does with numbers beyond fp16's range.
LargeNumbers LargeOf(const Operator& op) {
  if (op.large == LargeNumbers::kChange && op.moves != Moves::kNo) return LargeNumbers::kPass;
  return op.large;
}

}  // namespace

BeyondFacts::BeyondFacts(const Graph& graph, const FloatFacts& floats)
    : graph_(graph),
      floats_(floats),
      beyond_(graph.values.size(), {0, 0}),
      whole_(graph.values.size()),
      shares_(graph.values.size()),
      flat_(graph.values.size(), true),
      flat_for_constants_(graph.values.size(), true) {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    const bool is_float = value.constant && IsFloating(value.type);
    if (is_float) beyond_[i] = SidesBeyond(NumbersOfConstant(floats.bounds[i]));
  }
  for (const Node& node : graph.nodes) AddNumbers(node);
  AddFlat(graph);
}

const Bounds& BeyondFacts::NumbersOf(ValueId value) const {
  return floats_.IsKnown(value) ? floats_.bounds[value] : beyond_[value];
}

bool BeyondFacts::IsBeyond(ValueId value) const { return ExceedsHalf(Magnitude(NumbersOf(value))); }

bool BeyondFacts::IsFlat(const Node& node, ValueId value) const {
  return IsFlat(OperatorOf(node), node, value, !floats_.IsKnown(value));
}

bool BeyondFacts::IsFlat(ValueId value) const {
  return floats_.IsKnown(value) ? flat_[value] : flat_for_constants_[value];
}

void BeyondFacts::AddNumbers(const Node& node) {
  const Operator& op = OperatorOf(node);
  const auto numbers = [&](size_t i) {
    return HasInput(node, i) ? NumbersOf(node.inputs[i]) : Bounds();
  };
  const bool shares = std::any_of(node.inputs.begin(), node.inputs.end(),
                                  [&](ValueId read) { return read != kNone && shares_[read]; });
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (id == kNone) continue;
    shares_[id] = shares || op.shares;
    const bool has_rule = i == 0 || op.moves == Moves::kByShape;
    if (!has_rule || !IsFloating(graph_.values[id].type)) continue;
    whole_[id] = IsWhole(op, node);
    if (floats_.IsKnown(id)) continue;
    Bounds made =
        FloatResultOf(graph_, op, node, HasInput(node, 0) && shares_[node.inputs[0]], numbers);
    const bool picks = op.large == LargeNumbers::kPickLargest ||  // ReduceLogSumExp
                       op.large == LargeNumbers::kPickSmallest;
    const bool passes = picks || op.large == LargeNumbers::kPass;  // LogSoftmax
    if (!IsFinite(made) && passes) made = numbers(0);
    made = SidesBeyond(Hull(SidesBeyond(made), FromFactors(op, node)));
    if (picks) (PicksSmallest(op, node) ? made.high : made.low) = 0;
    beyond_[id] = made;
  }
}

// Products of numbers from 0 to 1 with a constant, or with an attribute, that the engine cannot
// hold.
Bounds BeyondFacts::FromFactors(const Operator& op, const Node& node) const {
  Bounds made = {0, 0};
  const auto add = [&](const Bounds& b, double limit) {
    if (Magnitude(b) > limit) made = Hull(made, b);
  };
  const bool multiplies = op.elementwise && op.elementwise->bounds == bounds::Product;
  const bool divides = op.elementwise && op.elementwise->bounds == bounds::Quotient;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!HasInput(node, i) || !graph_.values[node.inputs[i]].constant) continue;
    const Bounds b = NumbersOfConstant(floats_.bounds[node.inputs[i]]);
    if (divides && i == 1) {
      if (Magnitude(b) > 0) add({0, 1 / Magnitude(b)}, kLargestFactor);
    } else if (multiplies || divides) {
      add(b, kLargestFactor);
    } else if (i == 1 && op.weight_axes != nullptr) {
      add({-Magnitude(b), Magnitude(b)}, 0);
    }
  }
  const auto add_attributes = [&](const NumberAttributes::Names& names, double limit) {
    for (absl::string_view name : names) {
      const double number = name.empty() ? 0 : std::fabs(FloatOr(node, name, 0));
      add({-number, number}, limit);
    }
  };
  add_attributes(op.numbers.held, 0);
  add_attributes(op.numbers.factors, kLargestFactor);
  return made;
}

bool BeyondFacts::IsWhole(const Operator& op, const Node& node) const {
  if (!HasInput(node, 0)) return false;
  const ValueId from = node.inputs[0];
  if (op.moves != Moves::kNo) return whole_[from];
  const bool casts = node.op_type == "Cast" || node.op_type == "CastLike";
  return casts && !IsFloating(graph_.values[from].type);
}

// The node multiplies `value` by numbers with which 65504 still counts as infinite for a softmax,
// or by 0 and such numbers.
bool BeyondFacts::Scales(const Operator& op, const Node& node, ValueId value) const {
  constexpr double kLeast = 0x1p-8, kMost = 0x1p16;
  if (!op.elementwise || node.inputs.size() != 2) return false;
  const bool divides = op.elementwise->bounds == bounds::Quotient && node.inputs[0] == value;
  if (!divides && op.elementwise->bounds != bounds::Product) return false;
  const ValueId other = node.inputs[node.inputs[0] == value ? 1 : 0];
  if (other == kNone) return false;
  const Bounds& by = floats_.bounds[other];
  if (divides) return by.low >= 1 / kMost && by.high <= 1 / kLeast;
  return by.low >= (whole_[other] ? 0 : kLeast) && by.high <= kMost;
}

// The ends of the grid are in fp16's range, wherever its zero point is.
bool BeyondFacts::HasSmallGrid(const Node& quantize) const {
  const auto limits = LimitsOf(graph_.values[quantize.outputs[0]].type);
  if (!limits.has_value() || !HasInput(quantize, 1)) return false;
  const double steps = static_cast<double>(limits->high) - static_cast<double>(limits->low);
  return !ExceedsHalf(steps * floats_.MagnitudeOf(quantize.inputs[1]));
}

bool BeyondFacts::IsFlat(const Operator& op, const Node& node, ValueId value,
                         bool of_constants) const {
  // True if all results satisfy `small`, or their readers do not tell such numbers apart.
  const auto all = [&](const auto& small) {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId made) {
      return made == kNone || small(made) ||
             (of_constants ? flat_for_constants_[made] : flat_[made]);
    });
  };
  // The result of a Clip may be small again.
  const auto is_small = [&](ValueId made) { return !ExceedsHalf(floats_.MagnitudeOf(made)); };
  const auto has_none = [&](ValueId made) { return !IsBeyond(made); };
  switch (LargeOf(op)) {
    case LargeNumbers::kFlat:
      return true;
    case LargeNumbers::kQuantize:
      return HasSmallGrid(node);
    case LargeNumbers::kCompare:
      return of_constants;
    case LargeNumbers::kPickLargest:
    case LargeNumbers::kPickSmallest:
      return of_constants && all(has_none);
    case LargeNumbers::kChoose:
      return of_constants ? all(has_none) : all(is_small);
    case LargeNumbers::kPass:
      return all(is_small);
    case LargeNumbers::kChange:
      break;
  }
  return Scales(op, node, value) && all([](ValueId) { return false; });
}

// From the last node to the first, so that the readers of each value are known.
void BeyondFacts::AddFlat(const Graph& graph) {
  const auto end = [&](ValueId value) { flat_[value] = flat_for_constants_[value] = false; };
  for (ValueId value : graph.outputs) end(value);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const Operator& op = OperatorOf(*node);
    for (ValueId read : node->inputs) {
      if (read == kNone) continue;
      flat_[read] = flat_[read] && IsFlat(op, *node, read, false);
      flat_for_constants_[read] = flat_for_constants_[read] && IsFlat(op, *node, read, true);
    }
    for (ValueId read : node->captures) end(read);
  }
}

}  // namespace anemone
