// importer/infer/infer.h: infers types and shapes of a node's outputs by ONNX's rules for the
// node's version. It also tracks small integer values that are used as shapes ("shape data": Shape
// -> Gather -> Concat, where some elements may be symbols).
//
//   Inference inference(model, {});  // without hooks it computes no constants
//   for (Node& node : graph.nodes) {
//     ANEMONE_RETURN_IF_ERROR(inference.InferNode(graph, data, node));
//   }
//
// A node that breaks the rules of its operator is an error that names the node. Inside a branch of
// an If it is a warning, since these sizes may never take that branch. Outputs of an unknown
// operator, and of nodes after it, keep the types that the file declares.
#ifndef ANEMONE_IMPORTER_INFER_INFER_H_
#define ANEMONE_IMPORTER_INFER_INFER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "importer/graph.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// The end of errors about nodes: what to do if the model is at fault.
inline constexpr char kCheckerRemedy[] = "; re-export the model, or run onnx.checker on it";

// The place of a warning about the node: the id of the file's node, or NodeLabel() if it has none.
std::string PlaceOf(const Model& model, const Node& node);

// Known elements of integer scalars and vectors of one graph. Each element is a number, a symbol or
// unknown.
using ShapeData = absl::flat_hash_map<ValueId, onnx::TensorShapeProto>;

// ONNX's interned name of a value's type; nullptr if the type is not known.
onnx::DataType TypeNameOf(const Value& value);

struct InferenceHooks {
  // Returns the constant of a value, or nullptr if it has none; may compute it on demand. Default:
  // Value::constant.
  std::function<absl::StatusOr<const Tensor*>(Graph& graph, ValueId id)> constant;
  // Infers a body whose input types have just been set. Default: InferGraph().
  std::function<absl::Status(Graph& body)> body;
};

class Inference {
 public:
  Inference(Model& model, InferenceHooks hooks);

  // An inference that reports no errors about nodes: it infers as much as it can.
  static Inference Lenient(Model& model);

  // The number of nodes in branches of Ifs so far whose error became a warning.
  int conflicts() const { return conflicts_; }

  // Checks the types of the inputs, infers the bodies, and sets types and shapes of the outputs.
  // The node must have passed CheckNode() (importer/read/check.h). If the file declares another
  // shape, the inferred shape wins, with a warning; another type is an error. Errors:
  // kInvalidArgument.
  absl::Status InferNode(Graph& graph, ShapeData& data, Node& node);

  // All nodes of `graph` in order.
  absl::Status InferGraph(Graph& graph);

  const InferenceHooks& hooks() const { return hooks_; }
  // Infers a body of `node`, with the hook if it is set.
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
  int branches_ = 0;  // number of If branches around the current node
  int conflicts_ = 0;
};

// Gives each capture of a body the type and constant of its outer value.
void TypeCaptures(const Graph& outer, const std::vector<ValueId>& captured, Graph& body);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_INFER_H_
