#include "importer/operators/float_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/float_scan.h"
#include "base/known_limits.h"
#include "importer/elements.h"
#include "importer/operators/float_rule.h"
#include "importer/operators/operators.h"

namespace anemone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Infinities count; a tensor with a NaN has no bounds.
Bounds OfConstant(const Tensor& tensor) {
  const int64_t count = tensor.is_fill() ? 1 : tensor.elements();
  if (tensor.elements() == 0 || count > kMostConstants || tensor.compressed() != nullptr) return {};
  const auto bounds = [](const FloatLimits& limits) {
    return limits.has_nan ? Bounds() : Bounds{limits.low, limits.high};
  };
  if (tensor.type() == DataType::kFloat) return bounds(KnownOrReadLimits(tensor));
  if (tensor.type() == DataType::kFloat16) {
    return bounds(LimitsOfHalves(tensor.bytes().data(), count));
  }
  const NumberReader read = NumberReaderOf(tensor.type());
  if (read == nullptr) return {};
  Bounds b{kInfinity, -kInfinity};
  for (int64_t i = 0; i < count; ++i) {
    const double x = read(tensor, i);
    if (std::isnan(x)) return {};
    b = Hull(b, {x, x});
  }
  return b;
}

// True if the interval is no more than the limits of a type of 32 or more bits, which say nothing
// about the values that occur.
bool IsVague(DataType type, const std::optional<Interval>& interval) {
  if (!interval) return true;
  const Interval limits = *LimitsOf(type);
  const bool is_signed = limits.low < 0;
  return limits.high > std::numeric_limits<uint16_t>::max() &&
         (interval->high >= limits.high || (is_signed && interval->low <= limits.low));
}

class Bounder {
 public:
  Bounder(const Graph& graph, const std::vector<IntegerRange>& integers, FloatFacts& facts)
      : graph_(graph),
        integers_(integers),
        facts_(facts),
        vague_(graph.values.size()),
        shares_(graph.values.size()) {}

  void AddAll() {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (value.constant && IsFloating(value.type)) {
        facts_.bounds[i] = OfConstant(*value.constant);
      } else if (value.producer == kNone) {
        AddInteger(static_cast<ValueId>(i), false);
      }
    }
    for (const Node& node : graph_.nodes) AddNode(node);
  }

 private:
  // `is_vague`: the value depends on integers of which only the type is known.
  void AddInteger(ValueId id, bool is_vague) {
    const DataType type = graph_.values[id].type;
    if (!LimitsOf(type)) return;
    const std::optional<Interval>& interval = integers_[id].interval;
    vague_[id] = is_vague || IsVague(type, interval);
    if (!interval) return;
    const Bounds b = {static_cast<double>(interval->low), static_cast<double>(interval->high)};
    if (!vague_[id] || !ExceedsHalf(Magnitude(b))) facts_.bounds[id] = b;
  }

  void AddNode(const Node& node) {
    const Operator& op = OperatorOf(node);
    bool is_shares = op.shares, is_vague = false;
    for (ValueId input : node.inputs) {
      if (input == kNone) continue;
      is_shares = is_shares || shares_[input];
      is_vague = is_vague || vague_[input];
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNone) continue;
      shares_[id] = is_shares;
      if (!IsFloating(graph_.values[id].type)) {
        AddInteger(id, is_vague);
      } else if (i == 0 || op.moves == Moves::kByShape) {
        const bool shares = HasInput(node, 0) && shares_[node.inputs[0]];
        const auto bounds = [&](size_t k) { return BoundsOf(op, node, k); };
        facts_.bounds[id] = FloatResultOf(graph_, op, node, shares, bounds);
      }
    }
  }

  // A mask's number is no bound of the values among which it stands. Whether fp16 may hold another
  // number in its place is decided for the constant itself.
  Bounds BoundsOf(const Operator& op, const Node& node, size_t i) const {
    if (!HasInput(node, i)) return {};
    const ValueId id = node.inputs[i];
    const bool scales = op.large == LargeNumbers::kChange;
    const bool is_large = graph_.values[id].constant && ExceedsHalf(facts_.MagnitudeOf(id));
    return is_large && !scales ? Bounds() : facts_.bounds[id];
  }

  const Graph& graph_;
  const std::vector<IntegerRange>& integers_;
  FloatFacts& facts_;
  std::vector<bool> vague_, shares_;  // by value
};

}  // namespace

bool ExceedsHalf(double magnitude) { return magnitude >= 65520; }

bool FloatFacts::IsKnown(ValueId value) const { return IsFinite(bounds[value]); }

double FloatFacts::MagnitudeOf(ValueId value) const { return Magnitude(bounds[value]); }

FloatFacts FloatFactsOf(const Graph& graph, const std::vector<IntegerRange>& integers) {
  FloatFacts facts;
  facts.bounds.resize(graph.values.size());
  Bounder(graph, integers, facts).AddAll();
  return facts;
}

}  // namespace anemone
