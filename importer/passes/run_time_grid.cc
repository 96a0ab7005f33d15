#include "importer/passes/run_time_grid.h"

#include <optional>

#include "importer/passes/match.h"

namespace anemone {
namespace {

// The number of steps from 0 to the end of the grid. With more steps, the end would be clipped.
constexpr double kMostSteps = 255, kMostSignedSteps = 127.5;

// A constant of one floating-point element.
std::optional<double> NumberOf(const GraphEditor& g, ValueId id) {
  const Tensor* constant = g.ConstantOf(id);
  if (constant == nullptr || constant->elements() != 1 || !IsFloating(constant->type())) {
    return std::nullopt;
  }
  return ElementAsDouble(*constant, 0);
}

bool IsZero(const GraphEditor& g, ValueId id) { return NumberOf(g, id) == 0; }

// True if `id` is the least or largest element of x, which `op` finds (ReduceMin, ReduceMax), or
// that element or 0, chosen by `or_zero` (Min, Max).
bool IsExtreme(GraphEditor& g, ValueId id, absl::string_view op, absl::string_view or_zero,
               ValueId x) {
  const Node* node = g.ProducerOf(id);
  if (Is(node, or_zero) && node->inputs.size() == 2) {
    const int zero = IsZero(g, node->inputs[0]) ? 0 : 1;
    if (!IsZero(g, node->inputs[zero])) return false;
    id = node->inputs[1 - zero];
    node = g.ProducerOf(id);
  }
  return Is(node, op) && node->inputs[0] == x && HasOneElement(g, id);
}

bool IsLeast(GraphEditor& g, ValueId id, ValueId x) {
  return IsExtreme(g, id, "ReduceMin", "Min", x);
}

bool IsLargest(GraphEditor& g, ValueId id, ValueId x) {
  return IsExtreme(g, id, "ReduceMax", "Max", x);
}

// The dividend, if `id` is a Div by a constant above 0 and not above `most`.
ValueId Divided(GraphEditor& g, ValueId id, double most) {
  const Node* div = g.ProducerOf(id);
  if (!Is(div, "Div")) return kNone;
  const std::optional<double> steps = NumberOf(g, div->inputs[1]);
  return steps && *steps > 0 && *steps <= most ? div->inputs[0] : kNone;
}

// x in `id` = op(x).
ValueId Under(GraphEditor& g, ValueId id, absl::string_view op) {
  const Node* node = g.ProducerOf(id);
  return Is(node, op) ? node->inputs[0] : kNone;
}

// scale = (largest - least) / 255.
bool IsScaleOfRange(GraphEditor& g, ValueId scale, ValueId x) {
  const Node* range = g.ProducerOf(Divided(g, scale, kMostSteps));
  return Is(range, "Sub") && IsLargest(g, range->inputs[0], x) && IsLeast(g, range->inputs[1], x);
}

// zero = Cast(Floor((0 - least) / scale)), or with Round, or 0 - least / scale, or with a Clip.
bool IsZeroOfRange(GraphEditor& g, ValueId zero, ValueId scale, ValueId x) {
  const ValueId rounded = Under(g, zero, "Cast");
  ValueId steps = Under(g, rounded, "Floor");
  if (steps == kNone) steps = Under(g, rounded, "Round");
  if (const ValueId clipped = Under(g, steps, "Clip"); clipped != kNone) steps = clipped;
  const Node* node = g.ProducerOf(steps);
  if (Is(node, "Div") && node->inputs[1] == scale) {
    const Node* sub = g.ProducerOf(node->inputs[0]);
    return Is(sub, "Sub") && IsZero(g, sub->inputs[0]) && IsLeast(g, sub->inputs[1], x);
  }
  if (!Is(node, "Sub") || !IsZero(g, node->inputs[0])) return false;
  const Node* div = g.ProducerOf(node->inputs[1]);
  return Is(div, "Div") && div->inputs[1] == scale && IsLeast(g, div->inputs[0], x);
}

// scale = max(|least|, |largest|) / 127.
bool IsScaleOfMagnitude(GraphEditor& g, ValueId scale, ValueId x) {
  const Node* largest = g.ProducerOf(Divided(g, scale, kMostSignedSteps));
  if (!Is(largest, "Max") || largest->inputs.size() != 2) return false;
  const ValueId a = Under(g, largest->inputs[0], "Abs");
  const ValueId b = Under(g, largest->inputs[1], "Abs");
  return (IsLeast(g, a, x) && IsLargest(g, b, x)) || (IsLeast(g, b, x) && IsLargest(g, a, x));
}

bool AreZeros(const GraphEditor& g, ValueId id) {
  const Tensor* constant = g.ConstantOf(id);
  if (constant == nullptr || constant->elements() != 1) return false;
  const auto number = ToNumbers(*constant, 1);
  return number && number->front() == 0;
}

}  // namespace

bool HasRunTimeGrid(GraphEditor& g, const Node& quantize) {
  const ValueId x = quantize.inputs[0], scale = InputOr(quantize, 1), zero = InputOr(quantize, 2);
  const DataType type = g.value(quantize.outputs[0]).type;
  if (type == DataType::kUInt8) {
    return IsScaleOfRange(g, scale, x) && IsZeroOfRange(g, zero, scale, x);
  }
  return type == DataType::kInt8 && AreZeros(g, zero) && IsScaleOfMagnitude(g, scale, x);
}

}  // namespace anemone
