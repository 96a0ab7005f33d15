// importer/operators/intervals.h: what is known of the integers of a graph before it runs.
//
//   std::vector<IntegerRange> ranges = IntegerRangesOf(graph);   // by value
//   ranges[v].interval   // e.g. [0, 9] of ArgMax over 10; nullopt: anything
//
// Blind to targets: whether an engine may hold a value is the reader's question.
#ifndef ANEMONE_IMPORTER_OPERATORS_INTERVALS_H_
#define ANEMONE_IMPORTER_OPERATORS_INTERVALS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// low <= every number <= high.
struct Interval {
  int64_t low = 0, high = 0;
};

// The numbers of an integer type, or of bool; nullopt for other types, and for those whose numbers
// int64 does not hold.
std::optional<Interval> LimitsOf(DataType type);

struct IntegerRange {
  std::optional<Interval> interval;
  // The arithmetic that makes it may pass the type's limits and wrap around (or it is made of a
  // float or of what nothing is known of): arithmetic of wider numbers may not give the same.
  bool wraps = false;
};

// Of every value of the graph, in one walk; values that are no integers have no interval. Bounds
// beyond +-2^31 are not kept.
std::vector<IntegerRange> IntegerRangesOf(const Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_INTERVALS_H_
