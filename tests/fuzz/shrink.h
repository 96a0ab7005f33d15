// tests/fuzz/shrink.h: makes a graph that shows a fault smaller, for as long as it shows it.
#ifndef ANEMONE_TESTS_FUZZ_SHRINK_H_
#define ANEMONE_TESTS_FUZZ_SHRINK_H_

#include <functional>
#include <vector>

#include "tests/fuzz/graph.h"

namespace anemone::fuzz {

// Whether the fault is still there; false for a graph that is none.
using Shows = std::function<bool(const FuzzGraph&)>;

// Nodes, attributes, dimensions and values are taken away, in that order, until nothing can be, or
// `shows` has been asked `most` times.
FuzzGraph Shrink(const Runtime& runtime, FuzzGraph graph, const Shows& shows, int most = 400);

// `graph` with one attribute, index or size changed; for the comparison's own test.
std::vector<FuzzGraph> Neighbours(const FuzzGraph& graph);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_SHRINK_H_
