// importer/operators/interval_rules.h: computes the interval of an operator's integer results from
// the intervals of its inputs. The rows of importer/operators/operators.h name these rules;
// importer/operators/intervals.h applies them to a graph.
#ifndef ANEMONE_IMPORTER_OPERATORS_INTERVAL_RULES_H_
#define ANEMONE_IMPORTER_OPERATORS_INTERVAL_RULES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "importer/graph.h"
#include "importer/operators/intervals.h"

namespace anemone::interval {

using Known = std::optional<Interval>;  // nullopt: any number is possible

// A node, and the known ranges of its inputs.
struct Context {
  const Graph& graph;
  const Node& node;
  const std::vector<IntegerRange>& ranges;  // by value

  Known In(size_t i) const;
  // The size of one axis of an input; 0 if it is not known.
  int64_t Extent(size_t input, int64_t axis) const;
};

// The interval of the exact result, as if integers had no limits.
using Rule = Known (*)(const Context&);

// The product of two such bounds fits int64.
inline constexpr int64_t kLargestBound = int64_t{1} << 31;

// [low, high]; nullopt if a bound is larger than that.
Known Bounded(int64_t low, int64_t high);

// The result is elements of an input, perhaps converted to another type.
Known First(const Context& c);
Known Third(const Context& c);
Known AnyInput(const Context& c);
Known Branches(const Context& c);     // input 1 or 2
Known FirstOrZero(const Context& c);  // Trilu
Known Padded(const Context& c);

// Arithmetic.
Known Sum(const Context& c);
Known Difference(const Context& c);
Known Product(const Context& c);
Known Quotient(const Context& c);
Known Remainder(const Context& c);
Known Shifted(const Context& c);  // BitShift
Known Negative(const Context& c);
Known Magnitude(const Context& c);
Known Sign(const Context& c);
Known Positive(const Context& c);  // Relu
Known Smallest(const Context& c);
Known Largest(const Context& c);
Known Clipped(const Context& c);

// Reductions.
Known SumOfAxes(const Context& c);
Known OneOfAxes(const Context& c);    // ReduceMax, ReduceMin
Known PlaceOnAxis(const Context& c);  // ArgMax, ArgMin

// Products of integers minus zero points: ConvInteger and MatMulInteger.
Known SumOfProducts(const Context& c);

}  // namespace anemone::interval

#endif  // ANEMONE_IMPORTER_OPERATORS_INTERVAL_RULES_H_
