// importer/opset/opsets.h: tells which nodes may be in the same model.
//
// A ModelProto imports one version of each domain. The importer converts nodes to the working
// opset. A node that it cannot convert keeps its version, which ONNX Runtime may support. Such a
// node cannot be in the same model, and so not in the same CPU segment, as nodes of another version
// of its domain.
#ifndef ANEMONE_IMPORTER_OPSET_OPSETS_H_
#define ANEMONE_IMPORTER_OPSET_OPSETS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

// The version of each domain ("" is ONNX's) that `node` and the nodes of its bodies need. If they
// need several versions of a domain, the newest counts: the importer gives a node the working
// opset's version only if the operator is unchanged up to the version that the file imports.
std::map<std::string, int64_t> OpsetsOf(const Node& node);

// A class number for each node of the graph. Two nodes may be in the same model if their classes
// are equal or one class is 0. A node has class 0 if the whole graph needs only one version of each
// of the node's domains; so all classes are 0 in a graph without a conflict.
std::vector<int> OpsetClasses(const Graph& graph);

// The opset imports of a model of these nodes. kInvalidArgument if two nodes need different ones.
absl::StatusOr<std::map<std::string, int64_t>> CommonOpsets(const Graph& graph,
                                                            absl::Span<const NodeId> nodes);

// A node's name for messages if there is no Model: "node 'conv1' (Conv)", "node (Conv) that makes
// 'y'".
std::string ShortLabel(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPSET_OPSETS_H_
