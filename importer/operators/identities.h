// importer/operators/identities.h: rules for nodes that return one of their inputs unchanged. Each
// returns the index of that input, or nullopt if the node changes it or that is not known. The rows
// of importer/operators/operators.h name these rules. The node must have its first input and first
// output.
#ifndef ANEMONE_IMPORTER_OPERATORS_IDENTITIES_H_
#define ANEMONE_IMPORTER_OPERATORS_IDENTITIES_H_

#include <cstddef>
#include <optional>

#include "importer/edit.h"
#include "importer/graph.h"

namespace anemone::identity {

std::optional<size_t> Always(GraphEditor& g, const Node& node);
std::optional<size_t> OfOneInput(GraphEditor& g, const Node& node);
std::optional<size_t> InInference(GraphEditor& g, const Node& node);      // Dropout without mask
std::optional<size_t> IfSameShape(GraphEditor& g, const Node& node);      // and the same type
std::optional<size_t> OfAllAndNothing(GraphEditor& g, const Node& node);  // Split
std::optional<size_t> InRisingOrder(GraphEditor& g, const Node& node);    // Transpose
std::optional<size_t> WithoutPads(GraphEditor& g, const Node& node);
std::optional<size_t> InStepsOfOne(GraphEditor& g, const Node& node);  // Slice
std::optional<size_t> TimesOne(GraphEditor& g, const Node& node);      // x * 1, 1 * x
std::optional<size_t> ByOne(GraphEditor& g, const Node& node);         // x / 1
std::optional<size_t> PlusZero(GraphEditor& g, const Node& node);      // x + 0, 0 + x
std::optional<size_t> MinusZero(GraphEditor& g, const Node& node);     // x - 0

}  // namespace anemone::identity

#endif  // ANEMONE_IMPORTER_OPERATORS_IDENTITIES_H_
