// partitioner/macs.h: the multiply-accumulates of nodes, where they are known.
#ifndef ANEMONE_PARTITIONER_MACS_H_
#define ANEMONE_PARTITIONER_MACS_H_

#include <cstdint>
#include <optional>

#include "importer/graph.h"

namespace anemone {

// The node's multiply-accumulates: 0 if its operator has none, nullopt if it has some and their
// number is not known (a size is unknown until run time). Bodies are not included.
std::optional<int64_t> KnownMacsOf(const Graph& graph, const Node& node);

// Nullopt if one of the two is.
template <class Number>
std::optional<Number> SumOf(std::optional<Number> a, std::optional<Number> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_MACS_H_
