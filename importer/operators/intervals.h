// importer/operators/intervals.h: bounds of the integer values of a graph that are known before it
// runs.
//
//   std::vector<IntegerRange> ranges = IntegerRangesOf(graph);   // by value
//   ranges[v].interval;  // for example [0, 9] for ArgMax over 10; nullopt if unknown
//
// The ranges do not depend on a target; the caller decides whether an engine can hold them.
#ifndef ANEMONE_IMPORTER_OPERATORS_INTERVALS_H_
#define ANEMONE_IMPORTER_OPERATORS_INTERVALS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// Constants with more elements are not read: their bounds are unknown.
constexpr int64_t kMostConstants = int64_t{1} << 20;

// Bounds, both inclusive.
struct Interval {
  int64_t low = 0, high = 0;
};

// The range of an integer type or of bool; nullopt for other types, and for a range that int64
// cannot represent.
std::optional<Interval> LimitsOf(DataType type);

struct IntegerRange {
  std::optional<Interval> interval;
  // The arithmetic that computes the value may overflow its type and wrap around, or the value
  // comes from a float or an unknown source. Wider arithmetic may then give another result.
  bool wraps = false;
};

// The range of every value of the graph. Values that are not integers have no interval. Bounds
// beyond +-2^31 are not kept.
std::vector<IntegerRange> IntegerRangesOf(const Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_INTERVALS_H_
