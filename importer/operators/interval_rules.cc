#include "importer/operators/interval_rules.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "importer/edit.h"

namespace anemone::interval {
namespace {

Known Union(Known a, Known b) {
  if (!a || !b) return std::nullopt;
  return Interval{std::min(a->low, b->low), std::max(a->high, b->high)};
}

Known Products(const Interval& a, const Interval& b) {
  const auto [low, high] =
      std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return Bounded(low, high);
}

// The input's interval, or that of its type.
Known Operand(const Context& c, size_t i) {
  if (!HasInput(c.node, i)) return Interval{0, 0};
  const Known known = c.In(i);
  return known ? known : LimitsOf(c.graph.values[c.node.inputs[i]].type);
}

// Input `i` minus its zero point, input `zero`.
Known WithoutZero(const Context& c, size_t i, size_t zero) {
  const Known x = Operand(c, i), z = Operand(c, zero);
  if (!x || !z) return std::nullopt;
  return Bounded(x->low - z->high, x->high - z->low);
}

// The number of weights of one output channel; 0 if it is not known.
int64_t FilterSize(const Context& c) {
  const Value& weights = c.graph.values[c.node.inputs[1]];
  if (!weights.is_static()) return 0;
  const std::vector<int64_t> dims = weights.dims();
  int64_t size = 1;
  for (size_t i = 1; i < dims.size() && size <= kLargestBound; ++i) {
    size *= std::min(dims[i], kLargestBound);
  }
  return size;
}

}  // namespace

Known Context::In(size_t i) const {
  return HasInput(node, i) ? ranges[node.inputs[i]].interval : std::nullopt;
}

int64_t Context::Extent(size_t input, int64_t axis) const {
  const Value& value = graph.values[node.inputs[input]];
  if (!value.is_static()) return 0;
  const std::vector<int64_t> dims = value.dims();
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? dims[axis] : 0;
}

Known Bounded(int64_t low, int64_t high) {
  if (low < -kLargestBound || high > kLargestBound) return std::nullopt;
  return Interval{low, high};
}

Known First(const Context& c) { return c.In(0); }

Known Third(const Context& c) { return c.In(2); }

Known AnyInput(const Context& c) {
  Known all = c.In(0);
  for (size_t i = 1; i < c.node.inputs.size(); ++i) all = Union(all, c.In(i));
  return all;
}

Known Branches(const Context& c) { return Union(c.In(1), c.In(2)); }

Known FirstOrZero(const Context& c) { return Union(c.In(0), Interval{0, 0}); }

Known Padded(const Context& c) {
  if (StringOr(c.node, "mode", "constant") != "constant") return c.In(0);
  return HasInput(c.node, 2) ? Union(c.In(0), c.In(2)) : FirstOrZero(c);
}

Known Sum(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!a || !b) return std::nullopt;
  return Bounded(a->low + b->low, a->high + b->high);
}

Known Difference(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!a || !b) return std::nullopt;
  return Bounded(a->low - b->high, a->high - b->low);
}

Known Product(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!a || !b) return std::nullopt;
  return Products(*a, *b);
}

// Rounds toward 0. The result is unknown if the divisor may be 0.
Known Quotient(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!a || !b || (b->low <= 0 && b->high >= 0)) return std::nullopt;
  const auto [low, high] =
      std::minmax({a->low / b->low, a->low / b->high, a->high / b->low, a->high / b->high});
  return Bounded(low, high);
}

// The remainder has the divisor's sign, or with fmod the dividend's; its magnitude is less than the
// divisor's.
Known Remainder(const Context& c) {
  const Known a = c.In(0), b = c.In(1);
  if (!b || (b->low <= 0 && b->high >= 0)) return std::nullopt;
  const int64_t most = std::max(std::abs(b->low), std::abs(b->high)) - 1;
  if (IntOr(c.node, "fmod", 0) == 0) return b->low > 0 ? Bounded(0, most) : Bounded(-most, 0);
  return a && a->low >= 0 ? Bounded(0, most) : Bounded(-most, most);
}

// Unsigned integers. More places than the type has bits give no certain result.
Known Shifted(const Context& c) {
  const Known a = c.In(0), by = c.In(1);
  if (!a || !by || a->low < 0 || by->low < 0 || by->high > 31) return std::nullopt;
  const bool is_right = StringOr(c.node, "direction", "") == "RIGHT";
  return is_right ? Bounded(a->low >> by->high, a->high >> by->low)
                  : Bounded(a->low << by->low, a->high << by->high);
}

Known Negative(const Context& c) {
  const Known a = c.In(0);
  return a ? Bounded(-a->high, -a->low) : a;
}

Known Magnitude(const Context& c) {
  const Known a = c.In(0);
  if (!a) return a;
  const bool across = a->low <= 0 && a->high >= 0;
  const int64_t x = std::abs(a->low), y = std::abs(a->high);
  return Bounded(across ? 0 : std::min(x, y), std::max(x, y));
}

Known Sign(const Context&) { return Interval{-1, 1}; }

Known Positive(const Context& c) {
  const Known a = c.In(0);
  return a ? Bounded(std::max<int64_t>(a->low, 0), std::max<int64_t>(a->high, 0)) : a;
}

// All operands must be known: one known operand bounds the result on one side only.
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

// min(max(x, low), high): the upper bound wins. With both bounds, x may be unknown.
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

// Each sum has at most as many terms as the input has elements.
Known SumOfAxes(const Context& c) {
  const Known x = c.In(0);
  const Value& from = c.graph.values[c.node.inputs[0]];
  if (!x || !from.is_static()) return std::nullopt;
  int64_t count = 1;
  for (int64_t dim : from.dims()) {
    if (dim > kLargestBound) return std::nullopt;
    if (dim > 0) count *= dim;
    if (count > kLargestBound) return std::nullopt;
  }
  return Union(Products(*x, {count, count}), Interval{0, 0});
}

// Over an empty axis the result is the type's limit.
Known OneOfAxes(const Context& c) {
  const Value& from = c.graph.values[c.node.inputs[0]];
  if (!from.is_static()) return std::nullopt;
  const std::vector<int64_t> dims = from.dims();
  return std::find(dims.begin(), dims.end(), 0) == dims.end() ? c.In(0) : std::nullopt;
}

Known PlaceOnAxis(const Context& c) {
  const int64_t extent = c.Extent(0, IntOr(c.node, "axis", 0));
  return extent > 0 ? Bounded(0, extent - 1) : std::nullopt;
}

// Each sum has as many terms as a row of input 0 (MatMulInteger) or a filter (ConvInteger) has
// elements. Padding adds zeros.
Known SumOfProducts(const Context& c) {
  const bool is_matrix = c.node.op_type == "MatMulInteger";
  const int64_t terms = is_matrix ? c.Extent(0, -1) : FilterSize(c);
  if (terms <= 0 || terms > kLargestBound) return std::nullopt;
  const Known a = WithoutZero(c, 0, 2), b = WithoutZero(c, 1, 3);
  if (!a || !b) return std::nullopt;
  const Known product = Union(Products(*a, *b), Interval{0, 0});
  return product ? Products(*product, {terms, terms}) : product;
}

}  // namespace anemone::interval
