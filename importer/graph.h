// importer/graph.h: a model as plain ONNX in memory: typed values, nodes in an order that can be
// run, constants as views of the mapped file. What the importer returns is not changed afterwards
// and is the same for all targets and for both doors (a file, ONNX Runtime's graph).
//
// Bodies of If, Loop and Scan are Graphs of their own, held by an attribute. A body refers to a
// value of an outer graph through one of its own values, listed in `Graph::captures` of the body
// and, in the same order, as outer value ids in `Node::captures`; a node with several bodies lists
// the captures of the first body (BodiesOf), then those of the second, and so on. Value names are
// unique in a graph and all its bodies, but for a capture, which has the outer value's name; so a
// body can be written back to ONNX by name.
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
inline constexpr int32_t kNone = -1;  // no value (an input or output left out), no node

struct Graph;

// One dimension: a size, or unknown with an optional symbol ("batch"; "" if the model names none).
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
  // A kind we do not take apart (sparse tensors, types): the serialized onnx.AttributeProto.
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
  std::string domain;            // "" is ONNX's own ("ai.onnx" is read as "")
  int version = 0;               // the opset version of `domain` whose meaning this node has
  std::vector<ValueId> inputs;   // kNone where an optional input is left out
  std::vector<ValueId> outputs;  // kNone where an optional output is left out
  std::vector<Attribute> attributes;
  std::vector<ValueId> captures;  // outer values that the node's bodies use
  std::vector<OriginId> origins;  // sorted; the file's nodes that this node stands for

  const Attribute* FindAttribute(absl::string_view attribute_name) const;
};

// kNone where the node has no such input or output.
inline ValueId InputOr(const Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kNone;
}
inline ValueId OutputOr(const Node& node, size_t i) {
  return i < node.outputs.size() ? node.outputs[i] : kNone;
}

// The node has an input `i`, and it is not left out.
inline bool HasInput(const Node& node, size_t i) { return InputOr(node, i) != kNone; }

// One node of the file, in the main graph, a body or a called function. `id` is the path:
// "/#17" is node 17 of the main graph; "/body:Loop_3/#2" node 2 of attribute `body` of the main
// graph's node 3; "/Swish_5/#1" node 1 of the model's own function that node 5 calls.
struct Origin {
  std::string id;
  std::string name;
  std::string op_type;
  std::string domain;
  bool is_aside = false;  // a part of a node that has an origin besides ("/#3/mask")
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // in an order that can be run
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<ValueId> captures;  // a body's values that stand for outer ones
  // Inputs that may be left out of a run (an initializer that is also an input, from IR 4), and
  // what they are then. Never folded: such an input has no Value::constant, and the caller of a
  // run supplies the default.
  std::map<ValueId, Tensor> defaults;
};

// A remark to the user that is not an error ("fuse-casts did not converge").
struct ImportWarning {
  std::string rule;   // "pass-not-converged", "unknown-operator", ...
  std::string where;  // node id, tensor or file
  std::string message;
  std::string remedy;
};

struct Model {
  std::string path;  // "" if read from memory
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // as the file says, by domain ("" is ONNX's)
  Graph graph;
  std::vector<Origin> origins;  // every node of the file; OriginId indexes it
  std::vector<ImportWarning> warnings;
};

// Node ids by value: who reads it (once per reading node).
std::vector<std::vector<NodeId>> ConsumersOf(const Graph& graph);

// The node's bodies, in the order of its attributes: the order of Node::captures.
std::vector<Attribute::GraphPtr> BodiesOf(const Node& node);

// "node 'conv1' (Conv, /#4)": how a message names a node.
std::string NodeLabel(const Model& model, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_GRAPH_H_
