// importer/infer/trips.h: properties of a Loop or Scan and its body that are known before it runs:
// the number of iterations, axes and carried values.
#ifndef ANEMONE_IMPORTER_INFER_TRIPS_H_
#define ANEMONE_IMPORTER_INFER_TRIPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// The body of a Loop or Scan; nullptr for other nodes, and for nodes that break ONNX's rules: the
// body's inputs and outputs must match the node's, apart from a Loop's trip count and condition.
const Graph* LoopBodyOf(const Node& node);

// The number of iterations, if it is known: for a Loop whose trip count is constant and whose
// condition is always true, and for a Scan over axes of known length. `graph` contains the node.
std::optional<int64_t> TripsOf(const Graph& graph, const Node& node);

// The axes of a Scan, one for each scanned input or stacked output; 0 where the attribute is
// missing. They may be negative or out of range.
std::vector<int64_t> ScanInputAxes(const Node& node);
std::vector<int64_t> ScanOutputAxes(const Node& node);
// The directions in the same order: 1 is backwards.
std::vector<int64_t> ScanInputDirections(const Node& node);
std::vector<int64_t> ScanOutputDirections(const Node& node);

// The number of carried values of a Loop or Scan; they are its first outputs.
size_t CarriedOf(const Node& node);

// True if an input, a capture or an output of a body has an optional type.
bool HasOptionalPorts(const Graph& body);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_TRIPS_H_
