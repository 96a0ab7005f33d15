// importer/operators/float_ranges.h: bounds of the float values of a graph that are known before it
// runs.
//
//   const FloatFacts facts = FloatFactsOf(graph, IntegerRangesOf(graph));
//   const Bounds b = facts.bounds[v];  // for example [-1e6, 1e6] for a Cast of a sum of products
//
// Bounds are known only if they come from constants, from integers of known range, and from
// operators whose results are bounded (Sigmoid). Inputs and results of layers have none.
#ifndef ANEMONE_IMPORTER_OPERATORS_FLOAT_RANGES_H_
#define ANEMONE_IMPORTER_OPERATORS_FLOAT_RANGES_H_

#include <vector>

#include "importer/graph.h"
#include "importer/operators/intervals.h"
#include "importer/padding/padding_flow.h"

namespace anemone {

// By value. One-sided bounds are not known: IsKnown() is false.
struct FloatFacts {
  std::vector<Bounds> bounds;

  bool IsKnown(ValueId value) const;
  // The largest magnitude. Infinite if the bounds are not known.
  double MagnitudeOf(ValueId value) const;
};

// True if the finite number `magnitude`, or infinity, is infinite in fp16.
bool ExceedsHalf(double magnitude);

// Takes linear time. Constants of more than 2^20 elements and compressed ones are not read.
FloatFacts FloatFactsOf(const Graph& graph, const std::vector<IntegerRange>& integers);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_FLOAT_RANGES_H_
