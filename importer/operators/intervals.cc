#include "importer/operators/intervals.h"

#include <algorithm>
#include <limits>

#include "importer/elements.h"
#include "importer/operators/interval_rules.h"
#include "importer/operators/operators.h"

namespace anemone {
namespace {

using interval::Known;

Known KnownOf(const Tensor& tensor) {
  if (tensor.type() == DataType::kBool) return Interval{0, 1};
  const NumberReader read = NumberReaderOf(tensor.type());
  const int64_t count = tensor.is_fill() ? 1 : tensor.elements();
  if (read == nullptr || tensor.elements() == 0 || count > kMostConstants) return std::nullopt;
  constexpr auto kLargest = static_cast<double>(interval::kLargestBound);
  double low = kLargest, high = -kLargest;
  for (int64_t i = 0; i < count; ++i) {
    const double number = read(tensor, i);
    if (number < -kLargest || number > kLargest) return std::nullopt;
    low = std::min(low, number);
    high = std::max(high, number);
  }
  return Interval{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

// The range of a value of which only the type is known.
IntegerRange Unknown(DataType type, bool wraps) {
  const Known limits = LimitsOf(type);
  return {limits ? interval::Bounded(limits->low, limits->high) : limits, wraps};
}

// Applies the type's limits to `exact`, the interval without them.
IntegerRange Finish(DataType type, const Known& exact) {
  const Known limits = LimitsOf(type);
  if (!exact || !limits) return Unknown(type, true);
  if (exact->low < limits->low || exact->high > limits->high) return Unknown(type, true);
  return {exact, false};
}

// The rule for the operator's results, or null if nothing is known of them.
interval::Rule RuleOf(const Operator& op) {
  if (op.interval != nullptr) return op.interval;
  return op.moves != Moves::kNo ? interval::First : nullptr;
}

void Visit(const Graph& graph, const Node& node, std::vector<IntegerRange>& ranges) {
  const Operator& op = OperatorOf(node);
  const interval::Rule rule = RuleOf(op);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (id == kNone) continue;
    const DataType type = graph.values[id].type;
    if (!LimitsOf(type)) continue;
    const bool is_bool = type == DataType::kBool;
    const bool ruled = !is_bool && rule != nullptr && (i == 0 || op.moves == Moves::kByShape);
    ranges[id] = ruled ? Finish(type, rule({graph, node, ranges})) : Unknown(type, !is_bool);
  }
}

}  // namespace

std::optional<Interval> LimitsOf(DataType type) {
  switch (type) {
    case DataType::kBool:
      return Interval{0, 1};
    case DataType::kInt4:
      return Interval{-8, 7};
    case DataType::kUInt4:
      return Interval{0, 15};
    case DataType::kInt8:
      return Interval{-128, 127};
    case DataType::kUInt8:
      return Interval{0, 255};
    case DataType::kInt16:
      return Interval{-32768, 32767};
    case DataType::kUInt16:
      return Interval{0, 65535};
    case DataType::kInt32:
      return Interval{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DataType::kUInt32:
      return Interval{0, std::numeric_limits<uint32_t>::max()};
    case DataType::kInt64:
      return Interval{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
    default:
      return std::nullopt;
  }
}

std::vector<IntegerRange> IntegerRangesOf(const Graph& graph) {
  std::vector<IntegerRange> ranges(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (!LimitsOf(value.type)) continue;
    if (value.constant) {
      ranges[i] = {KnownOf(*value.constant), false};
    } else if (value.producer == kNone) {
      ranges[i] = Unknown(value.type, false);
    }
  }
  for (const Node& node : graph.nodes) Visit(graph, node, ranges);
  return ranges;
}

}  // namespace anemone
