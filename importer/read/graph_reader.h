// importer/read/graph_reader.h: converts GraphProto and FunctionProto to a Graph. It resolves
// names, reads attributes and bodies, inlines model-local functions, and checks each node against
// its schema.
//
// A Scope maps names to values in one graph, one body or one function call. A body also sees the
// scope around it, and the outer values it uses become captures. A function sees only its formal
// inputs, and its nodes are added to the calling graph. Values of bodies and functions are renamed
// by their path ("/Swish_5/tmp"), so that names are unique in the model.
#ifndef ANEMONE_IMPORTER_READ_GRAPH_READER_H_
#define ANEMONE_IMPORTER_READ_GRAPH_READER_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/edit.h"
#include "importer/graph.h"
#include "importer/read/functions.h"
#include "importer/read/tensor_reader.h"
#include "onnx/onnx_pb.h"

namespace anemone {

class GraphReader {
 public:
  // All arguments must outlive the reader. `model->opsets` and `ir_version` must be set; the reader
  // adds origins and warnings to the model.
  GraphReader(Model* model, NameScope* names, Functions* functions, const TensorReader* tensors)
      : model_(*model), names_(*names), functions_(*functions), tensors_(*tensors) {}

  // Fills the model's graph. `overridable`: as in ReadModel().
  absl::Status ReadMain(const onnx::GraphProto& proto, const std::vector<std::string>& overridable);

  // Adds the values of `function`, called by `call` of `graph`, to `graph`. Returns the function's
  // nodes, which are not added yet; they write the outputs of `call` and have its origins.
  absl::StatusOr<std::vector<Node>> Expand(Graph& graph, const Node& call,
                                           const onnx::FunctionProto& function);

 private:
  using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  // One call of a function while its nodes are read.
  struct Call {
    std::vector<Attribute> attributes;  // the caller's, then defaults
    absl::flat_hash_map<std::string, size_t> attribute_at;
    std::vector<std::vector<ValueId>>
        captures;                           // by attribute: captures of its bodies, in the caller
    std::map<std::string, int64_t> opsets;  // the function's own
    std::vector<OriginId> origins;          // of its nodes; if empty, each gets a new origin
  };
  struct Scope {
    Graph* graph = nullptr;
    std::vector<Node>* nodes = nullptr;  // nodes are added here
    Scope* outer = nullptr;              // the enclosing scope, for a body
    const Call* call = nullptr;          // the enclosing function call
    std::string path;                    // "", "/body:Loop_3", "/Swish_5"
    int depth = 0;
    absl::flat_hash_map<std::string, ValueId> names;  // kNone: an omitted optional input
    absl::flat_hash_map<std::string, ValueId> bound;  // a function's outputs -> the call's
    absl::flat_hash_map<ValueId, ValueId> captured;   // outer value -> value of this graph
    std::vector<ValueId> captures;                    // outer values, parallel to Graph::captures
  };
  // Names of a node, for paths and messages.
  struct Place {
    std::string id;     // "/#3"
    std::string label;  // "node 'x' (Conv, /#3)"
    std::string step;   // "Conv_3"
  };

  absl::Status ReadGraph(const onnx::GraphProto& proto, Scope& scope);
  absl::Status ReadInputs(const onnx::GraphProto& proto, Scope& scope);
  absl::Status ReadInitializers(const onnx::GraphProto& proto, Scope& scope);
  absl::Status PlaceInitializer(const std::string& name, Tensor tensor, Scope& scope,
                                absl::flat_hash_set<std::string>& seen);
  absl::Status DeclareOutputs(const NodeList& nodes, Scope& scope);
  absl::Status ReadGraphOutputs(const onnx::GraphProto& proto, Scope& scope);
  absl::Status ReadDeclaredTypes(const onnx::GraphProto& proto, Scope& scope);

  absl::Status ReadNodes(const NodeList& nodes, Scope& scope);
  absl::Status ReadNode(const onnx::NodeProto& proto, int index, Scope& scope);
  absl::Status ReadParts(const onnx::NodeProto& proto, const Place& place, Scope& scope,
                         Node* node);
  absl::Status AddNode(Node node, const Place& place, Scope& scope);

  absl::Status ReadAttributes(const onnx::NodeProto& proto, const Place& place, Scope& scope,
                              Node* node);
  absl::Status ReadReference(const onnx::AttributeProto& proto, const Place& place, Scope& scope,
                             Node* node);
  absl::StatusOr<Attribute> ReadAttribute(const onnx::AttributeProto& proto, const Place& place,
                                          Scope& scope, std::vector<ValueId>* captures);
  absl::StatusOr<Attribute::GraphPtr> ReadBody(const onnx::GraphProto& proto,
                                               const std::string& attribute, const Place& place,
                                               Scope& scope, std::vector<ValueId>* captures);

  absl::Status InlineCall(const onnx::NodeProto& proto, const onnx::FunctionProto& function,
                          const Place& place, Scope& scope);
  absl::StatusOr<Call> MakeCall(const Node& node, const onnx::FunctionProto& function,
                                const Place& place);
  absl::Status ReadFunction(const onnx::FunctionProto& function, const Node& node,
                            const Place& place, Scope& inner);
  absl::Status PassThrough(ValueId from, ValueId to, const Node& node, const Place& place,
                           Scope& inner);

  absl::StatusOr<ValueId> NewValue(absl::string_view name, const Scope& scope);
  std::optional<ValueId> Resolve(Scope& scope, const std::string& name);
  ValueId Capture(Scope& scope, ValueId outer);
  ValueId CaptureFromCaller(Scope& scope, ValueId id);
  int VersionOf(const Scope& scope, const std::string& domain) const;
  absl::Status AddOrigin(const Node& node, const Place& place);
  absl::Status Spend(size_t bytes);
  absl::Status CheckDepth(const Place& place, const Scope& scope) const;

  Model& model_;
  NameScope& names_;
  Functions& functions_;
  const TensorReader& tensors_;
  absl::flat_hash_set<std::string> overridable_;
  absl::flat_hash_set<std::pair<std::string, std::string>> unknown_;  // operators with a warning
  int64_t nodes_ = 0;                                                 // of the graph and its bodies
  size_t spent_ = 0;  // bytes of generated names, expanded functions and copied attributes
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_GRAPH_READER_H_
