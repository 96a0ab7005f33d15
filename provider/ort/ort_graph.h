// provider/ort/ort_graph.h: reads a graph from ONNX Runtime (OrtGraph), and makes a skeleton of any
// part of it, from which the importer makes a Model. Weights are not copied.
//
//   ANEMONE_ASSIGN_OR_RETURN(HostGraph graph, ReadHostGraph(api, ort_graph));
//   auto skeleton = MakeSkeleton(graph, graph.AllNodes(), {}, {});
//
// In a skeleton of all nodes, node i is graph.nodes[i], so its origin is "/#i". All data points to
// ONNX Runtime's memory, and must not be used after the OrtGraph is deleted, except constants after
// CopyConstants().
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
  std::vector<std::string> implicit_inputs;  // outer values that its bodies read
  std::string provider;                      // that runs it; "" if it is not assigned yet
  // Why the importer cannot read the node (it has a body, ...); "" if it can.
  std::string opaque;
};

struct HostGraph {
  std::string name;
  std::string path;  // of the model's file; "" if the model is in memory
  bool is_body = false;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;
  std::vector<HostNode> nodes;  // in an order that can be run
  std::vector<std::string> outputs;
  absl::flat_hash_map<std::string, onnx::TypeProto> types;  // of all values
  absl::flat_hash_map<std::string, Tensor> constants;       // initializers; views
  std::shared_ptr<const void> owner;                        // of constants' bytes, or null
  absl::flat_hash_map<std::string, int> producer;           // node by output

  // For programs that read the weights themselves in each run, in exact mode.
  void CopyConstants();
  std::vector<int> AllNodes() const;
  // The nodes whose results node `i` or its bodies read; sorted, without duplicates.
  std::vector<int> ProducersOf(int i) const;
};

struct NodeNames {
  std::string name;
  std::vector<std::string> inputs, outputs;  // "" if omitted
};

// Errors: kInternal, with ONNX Runtime's message.
absl::StatusOr<NodeNames> ReadNodeNames(const OrtApi& api, const OrtNode* node);
absl::StatusOr<HostGraph> ReadHostGraph(const OrtApi& api, const OrtGraph* graph);

// Facts about values, by name, that the importer found and ONNX Runtime may not know.
struct KnownValues {
  std::map<std::string, onnx::TypeProto> types;
  std::map<std::string, Tensor> constants;  // results of nodes
};

// The model of these nodes, which are in ascending order. Its inputs are the values that they read
// and do not compute; its outputs are the results that other nodes read or that are outputs of the
// graph. Opaque nodes, and those in `opaque`, become nodes of an unknown operator.
std::unique_ptr<Skeleton> MakeSkeleton(const HostGraph& graph, absl::Span<const int> nodes,
                                       const std::set<int>& opaque, const KnownValues& known);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_ORT_GRAPH_H_
