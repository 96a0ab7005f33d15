// tests/fuzz/graph.h: a small graph with the values of its inputs, the unit of work of the fuzzer.
#ifndef ANEMONE_TESTS_FUZZ_GRAPH_H_
#define ANEMONE_TESTS_FUZZ_GRAPH_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "fallback/cpu_session.h"
#include "onnx/onnx_pb.h"

namespace anemone::fuzz {

using Dims = std::vector<int64_t>;
using Values = std::map<std::string, Tensor>;
using Runtime = std::shared_ptr<const OrtRuntime>;

// An input of the graph, or an initializer.
struct Leaf {
  std::string name;
  Tensor value;
  bool constant = false;
};

struct FuzzGraph {
  int opset = 21;
  std::string target = "h13", route = "netplist", numerics = "fast";
  std::vector<Leaf> leaves;
  std::vector<onnx::NodeProto> nodes;     // of the ONNX domain, in topological order
  std::vector<std::string> also_outputs;  // outputs in addition to the values that no node reads

  const Leaf* FindLeaf(const std::string& name) const;
  std::vector<std::string> Outputs() const;
};

// The values at the start of a run.
Values LeavesOf(const FuzzGraph& graph);

// The whole graph. Types of the outputs are those of `values`.
onnx::ModelProto ModelOf(const FuzzGraph& graph, const Values& values);

// The graph as readable text, with its values (long ones truncated).
std::string TextOf(const FuzzGraph& graph);

// A session for one node, unoptimized: a graph is run node by node, so that each intermediate value
// can be inspected and changed. `values` has the node's inputs, with the types and ranks of later
// runs.
absl::StatusOr<std::unique_ptr<CpuSession>> OpenNode(const Runtime& runtime, const FuzzGraph& graph,
                                                     const onnx::NodeProto& node,
                                                     const Values& values);

// Takes the session's inputs from `values` and adds its outputs to them.
absl::Status RunByName(const Runtime& runtime, const CpuSession& session, Values& values);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_GRAPH_H_
