// provider/package/stored_writes.h: nodes that write rows into a state where it is
// (importer/row_writes.h), in a package of a session: the graph "writes" of the segment that has
// them. It has the nodes alone; their values are those of the package's model.
#ifndef ANEMONE_PROVIDER_PACKAGE_STORED_WRITES_H_
#define ANEMONE_PROVIDER_PACKAGE_STORED_WRITES_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "importer/graph.h"
#include "importer/write/to_onnx.h"
#include "partitioner/plan.h"

namespace anemone {

absl::StatusOr<onnx::GraphProto> StoredWrites(const Graph& graph, const Segment& segment);

// Adds the nodes, one for each output, to `graph` and to the segment, whose inputs and outputs are
// known. `ids` has the values by their names. kDataLoss: they do not write rows, or not those of
// the segment.
absl::Status ReadStoredWrites(const onnx::GraphProto& stored,
                              const std::map<std::string, ValueId>& ids, Graph& graph,
                              Segment& segment);

// kDataLoss: another node writes the same state or has the same output, another segment reads what
// is overwritten, or no engine segment reads what is written.
absl::Status CheckStoredWrites(const Graph& graph, const Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_STORED_WRITES_H_
