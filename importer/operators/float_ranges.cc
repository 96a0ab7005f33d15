#include "importer/operators/float_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/operators/operators.h"
#include "importer/padding/padding_bounds.h"

namespace anemone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMostConstants = int64_t{1} << 20;  // limit of elements that are read

bool IsFinite(const Bounds& b) { return std::isfinite(b.low) && std::isfinite(b.high); }

double Magnitude(const Bounds& b) { return std::max(std::fabs(b.low), std::fabs(b.high)); }

// Infinities count; a tensor with a NaN has no bounds.
Bounds OfConstant(const Tensor& tensor) {
  const int64_t count = tensor.is_fill() ? 1 : tensor.elements();
  if (tensor.elements() == 0 || count > kMostConstants || tensor.compressed() != nullptr) return {};
  Bounds b{kInfinity, -kInfinity};
  if (tensor.type() == DataType::kFloat) {
    float low = std::numeric_limits<float>::infinity(), high = -low;
    bool has_nan = false;
    const auto add = [&](float x) {
      low = x < low ? x : low;
      high = x > high ? x : high;
      has_nan |= x != x;
    };
    if (tensor.aligned<float>()) {  // most weights
      for (float x : tensor.data<float>()) add(x);
    } else {
      for (int64_t i = 0; i < count; ++i) add(tensor.at<float>(i));
    }
    return has_nan ? Bounds() : Bounds{low, high};
  }
  const NumberReader read = NumberReaderOf(tensor.type());
  if (read == nullptr) return {};
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

// Computes the bounds of one node's first output.
class Rule {
 public:
  Rule(const Graph& graph, const Node& node, const Operator& op, const FloatFacts& facts,
       const std::vector<bool>& shares)
      : graph_(graph), node_(node), op_(op), facts_(facts), shares_(shares) {}

  Bounds Result() const {
    if (op_.range) return *op_.range;
    if (HasInput(node_, 0) && op_.elementwise && op_.elementwise->bounds != nullptr) {
      std::vector<Bounds> in;
      for (size_t i = 0; i < node_.inputs.size(); ++i) in.push_back(In(i));
      return op_.elementwise->bounds(in);
    }
    if (op_.interval == interval::Clipped) return Clipped();
    if (op_.interval == interval::SumOfAxes) return SumOfAxes();
    if (op_.interval == interval::AnyInput) return AnyInput();
    if (op_.interval == interval::FirstOrZero) return Hull(In(0), {0, 0});
    if (op_.interval == interval::Padded) {
      return HasInput(node_, 2) ? Hull(In(0), In(2)) : Hull(In(0), {0, 0});
    }
    if (op_.interval == interval::First || op_.moves != Moves::kNo) return In(0);
    const bool keeps = op_.reduction && op_.reduction->bounds == bounds::First;
    return keeps ? In(0) : Bounds();
  }

 private:
  // A mask's number is no bound of the values among which it stands. Whether fp16 may hold another
  // number in its place is decided for the constant itself.
  Bounds In(size_t i) const {
    if (!HasInput(node_, i)) return {};
    const ValueId id = node_.inputs[i];
    const bool scales = op_.large == LargeNumbers::kChange;
    const bool is_large = graph_.values[id].constant && ExceedsHalf(facts_.MagnitudeOf(id));
    return is_large && !scales ? Bounds() : facts_.bounds[id];
  }

  Bounds AnyInput() const {
    Bounds all = In(0);
    for (size_t i = 1; i < node_.inputs.size(); ++i) all = Hull(all, In(i));
    return all;
  }

  // The limits may be larger than the numbers that occur, so they are bounds only within fp16.
  Bounds Clipped() const {
    const Bounds x = In(0), low = In(1), high = In(2);
    const bool is_both = IsFinite(low) && IsFinite(high);
    if (!IsFinite(x) && !(is_both && !ExceedsHalf(std::max(Magnitude(low), Magnitude(high))))) {
      return {};
    }
    return {std::min(std::max(x.low, low.low), high.high),
            std::min(std::max(x.high, std::isfinite(low.high) ? low.high : x.high), high.high)};
  }

  Bounds SumOfAxes() const {
    const Value& from = graph_.values[node_.inputs[0]];
    const Value& to = graph_.values[node_.outputs[0]];
    if (!from.is_static() || !to.is_static() || shares_[node_.inputs[0]]) return {};
    double terms = 1;
    for (int64_t dim : from.dims()) terms *= static_cast<double>(dim);
    for (int64_t dim : to.dims()) terms /= static_cast<double>(std::max<int64_t>(dim, 1));
    const Bounds x = In(0);
    return IsFinite(x) ? Bounds{x.low * terms, x.high * terms} : Bounds();
  }

  const Graph& graph_;
  const Node& node_;
  const Operator& op_;
  const FloatFacts& facts_;
  const std::vector<bool>& shares_;
};

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
        facts_.bounds[id] = Rule(graph_, node, op, facts_, shares_).Result();
      }
    }
  }

  const Graph& graph_;
  const std::vector<IntegerRange>& integers_;
  FloatFacts& facts_;
  std::vector<bool> vague_, shares_;  // by value
};

// What a node of this operator does with numbers beyond fp16's range.
LargeNumbers LargeOf(const Operator& op) {
  if (op.large == LargeNumbers::kChange && op.moves != Moves::kNo) return LargeNumbers::kPass;
  return op.large;
}

// `flat`: of the results, as in FloatFacts.
bool IsFlat(const FloatFacts& facts, const std::vector<bool>& flat, const Node& node) {
  const LargeNumbers large = LargeOf(OperatorOf(node));
  if (large == LargeNumbers::kFlat) return true;
  if (large != LargeNumbers::kPass && large != LargeNumbers::kChoose) return false;
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId made) {
    // The result of a Clip may be small again.
    return made == kNone || !ExceedsHalf(facts.MagnitudeOf(made)) || flat[made];
  });
}

// From the last node to the first, so that the readers of each value are known.
void AddFlat(const Graph& graph, FloatFacts& facts) {
  facts.flat.assign(graph.values.size(), true);
  facts.flat_for_constants.assign(graph.values.size(), true);
  const auto end = [&](ValueId value) {
    facts.flat[value] = facts.flat_for_constants[value] = false;
  };
  for (ValueId value : graph.outputs) end(value);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool flat = IsFlat(facts, facts.flat, *node);
    const bool flat_for_constants = LargeOf(OperatorOf(*node)) == LargeNumbers::kPick ||
                                    IsFlat(facts, facts.flat_for_constants, *node);
    for (ValueId read : node->inputs) {
      if (read == kNone) continue;
      facts.flat[read] = facts.flat[read] && flat;
      facts.flat_for_constants[read] = facts.flat_for_constants[read] && flat_for_constants;
    }
    for (ValueId read : node->captures) end(read);
  }
}

}  // namespace

bool ExceedsHalf(double magnitude) { return magnitude >= 65520; }

bool IsFlat(const FloatFacts& facts, const Node& node) { return IsFlat(facts, facts.flat, node); }

bool FloatFacts::IsKnown(ValueId value) const { return IsFinite(bounds[value]); }

double FloatFacts::MagnitudeOf(ValueId value) const { return Magnitude(bounds[value]); }

FloatFacts FloatFactsOf(const Graph& graph, const std::vector<IntegerRange>& integers) {
  FloatFacts facts;
  facts.bounds.resize(graph.values.size());
  Bounder(graph, integers, facts).AddAll();
  AddFlat(graph, facts);
  return facts;
}

}  // namespace anemone
