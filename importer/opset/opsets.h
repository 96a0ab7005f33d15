// importer/opset/opsets.h: which nodes may share a model.
//
// A ModelProto imports one version of each domain. The importer brings nodes to the working opset;
// one that it could not bring there keeps its version, and ONNX Runtime may know it. Such a node
// cannot share a model, so neither a CPU segment, with nodes of another version of its domain.
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

// The version of each domain ("" is ONNX's) that `node` needs. A body's nodes count as its own, and
// of several versions the newest stands: the importer relabels to the working opset only what is
// unchanged up to the file's own.
std::map<std::string, int64_t> OpsetsOf(const Node& node);

// A number for each node of the graph: two nodes may share a model if they have the same one, or
// one has 0. 0 is a node all of whose domains are needed in one version throughout the graph, so
// all are 0 in a graph without such a conflict.
std::vector<int> OpsetClasses(const Graph& graph);

// What a model of these nodes imports. Errors: kInvalidArgument (two of them cannot share one).
absl::StatusOr<std::map<std::string, int64_t>> CommonOpsets(const Graph& graph,
                                                            absl::Span<const NodeId> nodes);

// "node 'conv1' (Conv)", "node (Conv) that makes 'y'": a node without its Model.
std::string ShortLabel(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPSET_OPSETS_H_
