// importer/infer/trips.h: what is known of a body, and of a Loop or Scan, before it runs.
#ifndef ANEMONE_IMPORTER_INFER_TRIPS_H_
#define ANEMONE_IMPORTER_INFER_TRIPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// The only body of a Loop or Scan; nullptr if the node is neither, or is not made as ONNX wants it:
// a value of the body for each of the node's, a value of the node for each input but a Loop's trip
// count and condition.
const Graph* LoopBodyOf(const Node& node);

// How often the body runs, if it is known: a Loop whose trip count is constant and whose condition
// is always true, a Scan over axes of known length. `graph` holds the node.
std::optional<int64_t> TripsOf(const Graph& graph, const Node& node);

// The axes of a Scan: one for each scanned input, or stacked output; 0 where none is given. May be
// negative, and out of range.
std::vector<int64_t> ScanInputAxes(const Node& node);
std::vector<int64_t> ScanOutputAxes(const Node& node);
// Likewise, which of them go backwards.
std::vector<int64_t> ScanInputDirections(const Node& node);
std::vector<int64_t> ScanOutputDirections(const Node& node);

// Carried values of a Loop or Scan: they come first among its outputs.
size_t CarriedOf(const Node& node);

// Whether an input, a capture or an output of a body is an optional.
bool HasOptionalPorts(const Graph& body);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_TRIPS_H_
