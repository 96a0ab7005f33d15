// importer/graph.h: a model as plain ONNX in memory: typed values, nodes in topological order, and
// constants that are views of the mapped file. The importer's result is not changed afterwards. It
// is the same for all targets, and whether the model comes from a file or from ONNX Runtime's
// graph.
//
// The bodies of If, Loop and Scan are separate Graphs, held by an attribute. A body refers to a
// value of an outer graph through one of the body's values. These are listed in the body's
// Graph::captures; Node::captures lists the corresponding outer value ids in the same order. A node
// with several bodies lists the captures of the first body (in the order of BodiesOf), then those
// of the second, and so on. Value names are unique across a graph and all its bodies, except that a
// capture has the name of the outer value; so a body can be written back to ONNX by name.
#ifndef ANEMONE_IMPORTER_GRAPH_H_
#define ANEMONE_IMPORTER_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "anemone/tensor.h"

namespace anemone {

using ValueId = int32_t;
using NodeId = int32_t;
using OriginId = int32_t;
inline constexpr int32_t kNone = -1;  // no value (an omitted input or output), or no node

struct Graph;

// One dimension: a size, or unknown with an optional symbol ("batch"; "" if the model has no name).
struct Dim {
  int64_t size = -1;
  std::string symbol;
  bool known() const { return size >= 0; }
};

using Shape = std::vector<Dim>;

struct Value {
  std::string name;
  DataType type = DataType::kUndefined;  // kUndefined: unknown, or not a tensor
  std::optional<Shape> shape;            // nullopt: rank unknown
  std::string other_type;  // serialized onnx.TypeProto, if a sequence, optional, map or sparse
  std::optional<Tensor> constant;  // known before the first run
  NodeId producer = kNone;         // kNone: a graph input, a constant, a capture

  // True if the shape is known and every dimension is.
  bool is_static() const;
  // The sizes; is_static() must hold.
  std::vector<int64_t> dims() const;
};

struct Attribute {
  // A kind that is not parsed (sparse tensors, types): the serialized onnx.AttributeProto.
  struct Other {
    std::string bytes;
  };
  using GraphPtr = std::shared_ptr<const Graph>;
  using Variant = std::variant<float, int64_t, std::string, Tensor, GraphPtr, std::vector<float>,
                               std::vector<int64_t>, std::vector<std::string>, std::vector<Tensor>,
                               std::vector<GraphPtr>, Other>;
  std::string name;
  Variant value;
};

struct Node {
  std::string name;  // for display; may be empty or repeated
  std::string op_type;
  std::string domain;            // "" is the ONNX domain ("ai.onnx" is read as "")
  int version = 0;               // the opset version of `domain` that defines this node
  std::vector<ValueId> inputs;   // kNone for an omitted optional input
  std::vector<ValueId> outputs;  // kNone for an omitted optional output
  std::vector<Attribute> attributes;
  std::vector<ValueId> captures;  // outer values that the node's bodies use
  std::vector<OriginId> origins;  // sorted; the nodes of the file that this node replaces

  const Attribute* FindAttribute(absl::string_view attribute_name) const;
};

// kNone if the node has no such input or output.
inline ValueId InputOr(const Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kNone;
}
inline ValueId OutputOr(const Node& node, size_t i) {
  return i < node.outputs.size() ? node.outputs[i] : kNone;
}

// The node has an input `i`, and it is not omitted.
inline bool HasInput(const Node& node, size_t i) { return InputOr(node, i) != kNone; }

// One node of the file: in the main graph, a body or a called function. `id` is its path: "/#17" is
// node 17 of the main graph; "/body:Loop_3/#2" is node 2 of the attribute `body` of the main
// graph's node 3; "/Swish_5/#1" is node 1 of the model-local function that node 5 calls.
struct Origin {
  std::string id;
  std::string name;
  std::string op_type;
  std::string domain;
  bool is_aside = false;  // a part of a node that also has an origin of its own ("/#3/mask")
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // in topological order
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<ValueId> captures;  // values of a body that refer to outer values
  // Inputs that a run may omit (an initializer that is also an input, from IR version 4, if
  // ImportOptions keeps it), and their default values. They are never folded: such an input has no
  // Value::constant, and the caller of a run supplies the default.
  std::map<ValueId, Tensor> defaults;
  // Initializers that are inputs of the file too, and could have had such a default, but are
  // constants. Their values may be folded.
  std::vector<std::string> constant_inputs;
};

// A warning for the user ("fuse-casts did not converge").
struct ImportWarning {
  std::string rule;   // "pass-not-converged", "unknown-operator", ...
  std::string where;  // node id, tensor or file
  std::string message;
  std::string remedy;
};

struct Model {
  std::string path;  // "" if read from memory
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // as imported by the file, by domain ("" is ONNX's)
  Graph graph;
  std::vector<Origin> origins;  // every node of the file; OriginId indexes it
  std::vector<ImportWarning> warnings;
};

// For each value, the ids of the nodes that read it (each node once).
std::vector<std::vector<NodeId>> ConsumersOf(const Graph& graph);

// Whether a node only moves or converts the elements of its first input: Cast, Identity, Reshape,
// Squeeze or Unsqueeze. The value without such nodes; kNone stays.
bool OnlyMoves(const Node& node);
ValueId BehindMoves(const Graph& graph, ValueId value);

// The node's bodies, in the order of its attributes: the order of Node::captures.
std::vector<Attribute::GraphPtr> BodiesOf(const Node& node);

// How a message names a node: "node 'conv1' (Conv, /#4)".
std::string NodeLabel(const Model& model, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_GRAPH_H_
