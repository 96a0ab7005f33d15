// importer/infer/infer.h: types and shapes of one node's outputs from its inputs, by ONNX's own
// rules for the node's own version, and what is known of small integer values on the way ("shape
// data": Shape -> Gather -> Concat, where some elements may be symbols).
//
//   Inference inference(model, {});                        // no hooks: constants as they are
//   for (Node& node : graph.nodes) RETURN_IF_ERROR(inference.InferNode(graph, data, node));
//
// A node that breaks the rules of its operator is an error that names it. In a branch of an If it
// is a warning: the branch may be one that these sizes never take. A node of an unknown operator,
// or behind one, keeps whatever types the file declares.
#ifndef ANEMONE_IMPORTER_INFER_INFER_H_
#define ANEMONE_IMPORTER_INFER_INFER_H_

#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "importer/graph.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// Known elements of integer scalars and vectors of one graph: a number, a symbol or nothing each.
using ShapeData = absl::flat_hash_map<ValueId, onnx::TensorShapeProto>;

// ONNX's own unique name of a value's type; nullptr if the type is not known.
onnx::DataType TypeNameOf(const Value& value);

struct InferenceHooks {
  // The constant behind a value, nullptr if it has none. It may be computed now. Default: the
  // value's own.
  std::function<absl::StatusOr<const Tensor*>(Graph& graph, ValueId id)> constant;
  // Infers a body whose input types have just been set. Default: InferGraph().
  std::function<absl::Status(Graph& body)> body;
};

class Inference {
 public:
  Inference(Model& model, InferenceHooks hooks);

  // One that finds out what it can and holds nothing against a node.
  static Inference Lenient(Model& model);

  // How many nodes in branches of Ifs were let off with a warning so far.
  int conflicts() const { return conflicts_; }

  // Checks the types of the inputs, infers the bodies, and sets types and shapes of the outputs.
  // The form of the node is CheckNode()'s to check (importer/read/check.h), before. A shape that
  // the file declares otherwise gives way, with a warning; a type does not. Errors:
  // kInvalidArgument.
  absl::Status InferNode(Graph& graph, ShapeData& data, Node& node);

  // All nodes of `graph` in order.
  absl::Status InferGraph(Graph& graph);

  const InferenceHooks& hooks() const { return hooks_; }
  // Infers a body of `node`, by the hook if there is one.
  absl::Status InferBody(const Node& node, Graph& body);

 private:
  absl::Status CheckTypes(const Graph& graph, const Node& node, const onnx::OpSchema& schema) const;
  absl::Status Merge(Graph& graph, const Node& node, ValueId id, const onnx::TypeProto& inferred);
  absl::Status InferUnchecked(Graph& graph, const Node& node);
  absl::Status InferOutputs(Graph& graph, const ShapeData& data, Node& node,
                            const onnx::OpSchema& schema);
  absl::Status InferUnvisitedBodies(Graph& graph, Node& node);

  Model& model_;
  InferenceHooks hooks_;
  bool lenient_ = false;
  int branches_ = 0;  // of If, around the node at hand
  int conflicts_ = 0;
};

// Gives each capture of a body type and constant of the outer value it stands for.
void TypeCaptures(const Graph& outer, const std::vector<ValueId>& captured, Graph& body);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_INFER_H_
