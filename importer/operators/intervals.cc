#include "importer/operators/intervals.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "importer/edit.h"
#include "importer/elements.h"

namespace anemone {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;        // a product of two is still an int64
constexpr int64_t kMostConstants = int64_t{1} << 20;  // elements looked through

using Known = std::optional<Interval>;

Known Kept(int64_t low, int64_t high) {
  if (low < -kLargest || high > kLargest) return std::nullopt;
  return Interval{low, high};
}

Known Union(Known a, Known b) {
  if (!a || !b) return std::nullopt;
  return Interval{std::min(a->low, b->low), std::max(a->high, b->high)};
}

Known OfConstant(const Tensor& tensor) {
  if (tensor.type() == DataType::kBool) return Interval{0, 1};
  const NumberReader read = NumberReaderOf(tensor.type());
  const int64_t count = tensor.is_fill() ? 1 : tensor.elements();
  if (read == nullptr || tensor.elements() == 0 || count > kMostConstants) return std::nullopt;
  constexpr auto kBound = static_cast<double>(kLargest);
  double low = kBound, high = -kBound;
  for (int64_t i = 0; i < count; ++i) {
    const double number = read(tensor, i);
    if (number < -kBound || number > kBound) return std::nullopt;
    low = std::min(low, number);
    high = std::max(high, number);
  }
  return Interval{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

// A node, and what is known of its inputs.
struct Context {
  const Graph& graph;
  const Node& node;
  const std::vector<IntegerRange>& ranges;

  Known In(size_t i) const {
    return HasInput(node, i) ? ranges[node.inputs[i]].interval : std::nullopt;
  }
  // The elements of one axis of an input; 0 if it is not known.
  int64_t Extent(size_t input, int64_t axis) const {
    const Value& value = graph.values[node.inputs[input]];
    if (!value.is_static()) return 0;
    const std::vector<int64_t> dims = value.dims();
    const auto rank = static_cast<int64_t>(dims.size());
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? dims[axis] : 0;
  }
};

// Moves: the numbers are the first input's.
Known Moved(const Context& c) { return c.In(0); }

Known OfAll(const Context& c) {
  Known all = c.In(0);
  for (size_t i = 1; i < c.node.inputs.size(); ++i) all = Union(all, c.In(i));
  return all;
}

Known OfBranches(const Context& c) { return Union(c.In(1), c.In(2)); }

Known OrZero(const Context& c) { return Union(c.In(0), Interval{0, 0}); }

Known Padded(const Context& c) {
  if (StringOr(c.node, "mode", "constant") != "constant") return c.In(0);
  return HasInput(c.node, 2) ? Union(c.In(0), c.In(2)) : OrZero(c);
}

Known Sum(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!a || !b) return std::nullopt;
  return Kept(a->low + b->low, a->high + b->high);
}

Known Difference(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!a || !b) return std::nullopt;
  return Kept(a->low - b->high, a->high - b->low);
}

Known Products(const Interval& a, const Interval& b) {
  const auto [low, high] =
      std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return Kept(low, high);
}

Known Product(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!a || !b) return std::nullopt;
  return Products(*a, *b);
}

// Towards 0. By a divisor that may be 0 it is anything.
Known Quotient(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!a || !b || (b->low <= 0 && b->high >= 0)) return std::nullopt;
  const auto [low, high] =
      std::minmax({a->low / b->low, a->low / b->high, a->high / b->low, a->high / b->high});
  return Kept(low, high);
}

// Of the divisor's sign, or, by fmod, of the dividend's; below the divisor.
Known Remainder(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!b || (b->low <= 0 && b->high >= 0)) return std::nullopt;
  const int64_t most = std::max(std::abs(b->low), std::abs(b->high)) - 1;
  if (IntOr(c.node, "fmod", 0) == 0) return b->low > 0 ? Kept(0, most) : Kept(-most, 0);
  return a && a->low >= 0 ? Kept(0, most) : Kept(-most, most);
}

Known Negative(const Context& c) {
  const Known a = c.In(0);
  return a ? Kept(-a->high, -a->low) : a;
}

Known Magnitude(const Context& c) {
  const Known a = c.In(0);
  if (!a) return a;
  const bool across = a->low <= 0 && a->high >= 0;
  const int64_t x = std::abs(a->low), y = std::abs(a->high);
  return Kept(across ? 0 : std::min(x, y), std::max(x, y));
}

Known Sign(const Context&) { return Interval{-1, 1}; }

Known Positive(const Context& c) {
  const Known a = c.In(0);
  return a ? Kept(std::max<int64_t>(a->low, 0), std::max<int64_t>(a->high, 0)) : a;
}

// One operand that is known bounds the result on one side only, which does not help.
Known Smallest(const Context& c) {
  Known all = c.In(0);
  for (size_t i = 1; i < c.node.inputs.size() && all; ++i) {
    const Known next = c.In(i);
    if (!next) return next;
    all = Interval{std::min(all->low, next->low), std::min(all->high, next->high)};
  }
  return all;
}

Known Largest(const Context& c) {
  Known all = c.In(0);
  for (size_t i = 1; i < c.node.inputs.size() && all; ++i) {
    const Known next = c.In(i);
    if (!next) return next;
    all = Interval{std::max(all->low, next->low), std::max(all->high, next->high)};
  }
  return all;
}

// max(x, low), then min(that, high): the upper bound wins, and both together bound anything.
Known Clipped(const Context& c) {
  const Known x = c.In(0), low = c.In(1), high = c.In(2);
  if ((HasInput(c.node, 1) && !low) || (HasInput(c.node, 2) && !high)) return std::nullopt;
  if (!x && (!low || !high)) return std::nullopt;
  Interval y = x.value_or(
      Interval{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()});
  if (low) y = {std::max(y.low, low->low), std::max(y.high, low->high)};
  if (high) y = {std::min(y.low, high->low), std::min(y.high, high->high)};
  return y;
}

// Every sum of up to so many elements.
Known Summed(const Context& c) {
  const Known x = c.In(0);
  const Value& from = c.graph.values[c.node.inputs[0]];
  if (!x || !from.is_static()) return std::nullopt;
  int64_t count = 1;
  for (int64_t dim : from.dims()) {
    if (dim > kLargest) return std::nullopt;
    if (dim > 0) count *= dim;
    if (count > kLargest) return std::nullopt;
  }
  return Union(Products(*x, {count, count}), Interval{0, 0});
}

// An empty axis has the type's own limit.
Known OfReduced(const Context& c) {
  const Value& from = c.graph.values[c.node.inputs[0]];
  if (!from.is_static()) return std::nullopt;
  const std::vector<int64_t> dims = from.dims();
  return std::find(dims.begin(), dims.end(), 0) == dims.end() ? c.In(0) : std::nullopt;
}

Known Place(const Context& c) {
  const int64_t extent = c.Extent(0, IntOr(c.node, "axis", 0));
  return extent > 0 ? Kept(0, extent - 1) : std::nullopt;
}

// The off and on values.
Known OneHot(const Context& c) { return c.In(2); }

// A number of another integer type stays itself where it fits; Finish() looks.
Known Converted(const Context& c) { return c.In(0); }

struct Rule {
  absl::string_view op_type;
  Known (*of)(const Context&);
};
constexpr Rule kRules[] = {
    {"Abs", Magnitude},
    {"Add", Sum},
    {"ArgMax", Place},
    {"ArgMin", Place},
    {"Cast", Converted},
    {"CastLike", Converted},
    {"Clip", Clipped},
    {"Compress", Moved},
    {"Concat", OfAll},
    {"DepthToSpace", Moved},
    {"Div", Quotient},
    {"Expand", Moved},
    {"Flatten", Moved},
    {"Gather", Moved},
    {"GatherElements", Moved},
    {"GatherND", Moved},
    {"Identity", Moved},
    {"Max", Largest},
    {"MaxPool", Moved},
    {"Min", Smallest},
    {"Mod", Remainder},
    {"Mul", Product},
    {"Neg", Negative},
    {"OneHot", OneHot},
    {"Pad", Padded},
    {"ReduceMax", OfReduced},
    {"ReduceMin", OfReduced},
    {"ReduceSum", Summed},
    {"Relu", Positive},
    {"Reshape", Moved},
    {"Sign", Sign},
    {"Slice", Moved},
    {"SpaceToDepth", Moved},
    {"Split", Moved},
    {"Squeeze", Moved},
    {"Sub", Difference},
    {"Tile", Moved},
    {"Transpose", Moved},
    {"Trilu", OrZero},
    {"Unsqueeze", Moved},
    {"Where", OfBranches},
};

// nullptr: there is none.
const Rule* RuleOf(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto* row = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const Rule& r) { return r.op_type == node.op_type; });
  return row == std::end(kRules) ? nullptr : row;
}

// What a value of the type is if nothing else is known.
IntegerRange Unknown(DataType type, bool wraps) {
  const Known limits = LimitsOf(type);
  return {limits ? Kept(limits->low, limits->high) : limits, wraps};
}

// `exact`: of whole numbers without limits.
IntegerRange Finish(DataType type, const Known& exact) {
  const Known limits = LimitsOf(type);
  if (!exact || !limits) return Unknown(type, true);
  if (exact->low < limits->low || exact->high > limits->high) return Unknown(type, true);
  return {exact, false};
}

void Visit(const Graph& graph, const Node& node, std::vector<IntegerRange>& ranges) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (id == kNone) continue;
    const DataType type = graph.values[id].type;
    if (!LimitsOf(type)) continue;
    const bool ruled = type != DataType::kBool && (i == 0 || node.op_type == "Split");
    const Rule* rule = ruled ? RuleOf(node) : nullptr;
    ranges[id] = rule != nullptr ? Finish(type, rule->of({graph, node, ranges}))
                                 : Unknown(type, type != DataType::kBool);
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
      ranges[i] = {OfConstant(*value.constant), false};
    } else if (value.producer == kNone) {
      ranges[i] = Unknown(value.type, false);
    }
  }
  for (const Node& node : graph.nodes) Visit(graph, node, ranges);
  return ranges;
}

}  // namespace anemone
