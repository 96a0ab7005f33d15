// provider/ort/ort_graph.h: a graph as ONNX Runtime shows it (OrtGraph), and any part of it as the
// skeleton from which the importer makes a Model. Weights are not copied.
//
//   ASSIGN_OR_RETURN(HostGraph graph, ReadHostGraph(api, ort_graph));
//   auto skeleton = MakeSkeleton(graph, graph.AllNodes(), {}, {});
//
// Node i of a skeleton of all nodes is graph.nodes[i], so its origin is "/#i". Everything points
// into ONNX Runtime's memory, and dies with the OrtGraph.
#ifndef ANEMONE_PROVIDER_ORT_ORT_GRAPH_H_
#define ANEMONE_PROVIDER_ORT_ORT_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "importer/read/skeleton.h"
#include "onnx/onnx_pb.h"

struct OrtApi;
struct OrtGraph;
struct OrtNode;

namespace anemone {

struct HostNode {
  const OrtNode* handle = nullptr;
  onnx::NodeProto proto;
  std::vector<std::string> implicit_inputs;  // what its bodies read
  std::string provider;                      // to which it is assigned; "": to none yet
  // Why the importer cannot be shown it as it is (it has a body, ...); "": it can.
  std::string opaque;
};

struct HostGraph {
  std::string name;
  std::string path;  // of the model's file; "": in memory
  bool is_body = false;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;
  std::vector<HostNode> nodes;  // in an order that can be run
  std::vector<std::string> outputs;
  absl::flat_hash_map<std::string, onnx::TypeProto> types;  // of all values
  absl::flat_hash_map<std::string, Tensor> constants;       // initializers; views
  absl::flat_hash_map<std::string, int> producer;           // node by output

  std::vector<int> AllNodes() const;
  // The nodes that make what node `i` reads, in its bodies too; sorted, without repetitions.
  std::vector<int> ProducersOf(int i) const;
};

struct NodeNames {
  std::string name;
  std::vector<std::string> inputs, outputs;  // "": left out
};

// Errors: kInternal, what ONNX Runtime says.
absl::StatusOr<NodeNames> ReadNodeNames(const OrtApi& api, const OrtNode* node);
absl::StatusOr<HostGraph> ReadHostGraph(const OrtApi& api, const OrtGraph* graph);

// What the importer found out of values, by name, and ONNX Runtime may not know.
struct KnownValues {
  std::map<std::string, onnx::TypeProto> types;
  std::map<std::string, Tensor> constants;  // made by nodes
};

// The model of these nodes, in rising order: reads what they read and none of them makes, makes
// what others read or the graph returns. Opaque nodes, and those in `opaque`, become nodes of an
// operator that nobody knows.
std::unique_ptr<Skeleton> MakeSkeleton(const HostGraph& graph, absl::Span<const int> nodes,
                                       const std::set<int>& opaque, const KnownValues& known);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_ORT_GRAPH_H_
