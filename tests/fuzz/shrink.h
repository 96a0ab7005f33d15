// tests/fuzz/shrink.h: reduces a graph that shows a fault to a smaller one that still shows it.
#ifndef ANEMONE_TESTS_FUZZ_SHRINK_H_
#define ANEMONE_TESTS_FUZZ_SHRINK_H_

#include <functional>
#include <vector>

#include "tests/fuzz/graph.h"

namespace anemone::fuzz {

// True if the graph still shows the fault; false for an invalid graph.
using Shows = std::function<bool(const FuzzGraph&)>;

// Removes nodes, attributes, dimensions and values, in that order, until nothing more can be
// removed or `shows` has been called `most` times.
FuzzGraph Shrink(const Runtime& runtime, FuzzGraph graph, const Shows& shows, int most = 400);

// Copies of `graph` with one attribute, index or size changed, to test the comparison itself.
std::vector<FuzzGraph> Neighbours(const FuzzGraph& graph);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_SHRINK_H_
