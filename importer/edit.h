// importer/edit.h: helpers that change a Graph: typed access to attributes, new values, and
// GraphEditor, which tracks the readers of each value while passes rewrite the graph.
//
// Edits must keep the nodes in topological order. A rewrite may only make a node read an older
// value or a new constant, or make a node write the output of a later node. So no pass needs to
// sort the nodes.
#ifndef ANEMONE_IMPORTER_EDIT_H_
#define ANEMONE_IMPORTER_EDIT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

// An attribute's value, or `fallback` if the node has no attribute of that name and type.
int64_t IntOr(const Node& node, absl::string_view name, int64_t fallback);
float FloatOr(const Node& node, absl::string_view name, float fallback);
std::string StringOr(const Node& node, absl::string_view name, absl::string_view fallback);
std::optional<std::vector<int64_t>> IntsOf(const Node& node, absl::string_view name);
// `perm` of a Transpose of this rank: the axes in reverse if it is not set. It is not checked.
std::vector<int64_t> PermOf(const Node& transpose, size_t rank);
std::optional<std::vector<float>> FloatsOf(const Node& node, absl::string_view name);

// The axis counted from 0; also an index along an axis of `rank` elements.
inline int64_t AxisFromZero(int64_t axis, size_t rank) {
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

// The same; nullopt if there is no such axis.
inline std::optional<int64_t> AxisWithin(int64_t axis, size_t rank) {
  axis = AxisFromZero(axis, rank);
  return axis >= 0 && axis < static_cast<int64_t>(rank) ? std::optional(axis) : std::nullopt;
}

void SetAttribute(Node& node, absl::string_view name, Attribute::Variant value);
void RemoveAttribute(Node& node, absl::string_view name);

// The elements of an int32 or int64 tensor of at most `limit` elements.
std::optional<std::vector<int64_t>> IntsOf(const Tensor& tensor, int64_t limit = 1 << 16);

// Generates names that are not yet used by a value of a main graph or of its bodies. A Model needs
// only one NameScope.
class NameScope {
 public:
  NameScope() = default;
  explicit NameScope(const Graph& root) { Add(root); }
  // "hint", or "hint/2", "hint/3", ... if taken.
  std::string Fresh(absl::string_view hint);

 private:
  void Add(const Graph& graph);
  absl::flat_hash_map<std::string, int> taken_;  // -> the last number appended to it
};

ValueId AddValue(Graph& graph, std::string name);
ValueId AddConstant(Graph& graph, std::string name, Tensor tensor);
void MakeConstant(Value& value, Tensor tensor);

// Calls `edit` for each body of `node`, with a copy of the body and the outer ids of its captures.
// `edit` may change both, but must keep `captured` parallel to Graph::captures. The changed copies
// then replace the bodies.
absl::Status EditBodies(Node& node,
                        const std::function<absl::Status(absl::string_view attribute, Graph& body,
                                                         std::vector<ValueId>& captured)>& edit);

// Sorted, without duplicates.
std::vector<OriginId> UnionOfOrigins(const Node& a, const Node& b);

// Removes the nodes for which `dead` is true (an empty `dead` removes no node) and every
// unreferenced value, and renumbers the rest. Inputs, outputs and captures are kept.
void Compact(Graph& graph, const std::vector<bool>& dead);

// Removes the captures of `body` that it does not use, and their entries in `captured`.
void DropUnusedCaptures(Graph& body, std::vector<ValueId>& captured);

// Sets Value::producer of every value.
void SetProducers(Graph& graph);

class GraphEditor {
 public:
  GraphEditor(Graph& graph, NameScope& names);

  Graph& graph() { return graph_; }
  NodeId size() const { return static_cast<NodeId>(dead_.size()); }
  bool alive(NodeId id) const { return !dead_[id]; }
  Node& node(NodeId id) { return graph_.nodes[id]; }
  Value& value(ValueId id) { return graph_.values[id]; }

  // The node that writes `id`, or nullptr for inputs, constants and captures.
  Node* ProducerOf(ValueId id);
  // nullptr if `id` is not a constant.
  const Tensor* ConstantOf(ValueId id) const;
  // The number of references to `id` by nodes and graph outputs.
  int UsesOf(ValueId id) const { return uses_[id]; }
  // A superset of the nodes that read `id`: it may also hold former readers, erased nodes and
  // duplicates.
  absl::Span<const NodeId> ReadersOf(ValueId id) const { return readers_[id]; }
  // True if one node reads `id`, once, and `id` is not a graph output.
  bool HasOneUse(ValueId id) const { return uses_[id] == 1 && !is_output_[id]; }

  ValueId NewConstant(absl::string_view hint, Tensor tensor);
  // Gives the value a new name, because its elements are no longer those of the file's value of
  // that name (ImportOptions::as_read).
  void Rename(ValueId id) { value(id).name = names_.Fresh(value(id).name); }
  void SetInput(NodeId id, size_t index, ValueId value);
  void SetInputs(NodeId id, std::vector<ValueId> inputs);

  // Removes the node, and every producer whose outputs become unused by that. The node's outputs
  // must be unused.
  void Erase(NodeId id);

  // Makes all readers of the node's first output read `value` instead, and removes the node.
  // Returns false and does nothing if that is impossible: a graph output must keep its name and
  // must not become the same value as another graph output, an input or a constant.
  bool Bypass(NodeId id, ValueId value);

  // Makes `first` write the output of `second`, its only reader, and removes `second`.
  void TakeOver(NodeId first, NodeId second);

  // Compacts the graph; the editor must not be used afterwards.
  void Finish() { Compact(graph_, dead_); }

 private:
  void Use(ValueId id, NodeId reader);
  void Release(ValueId id, std::vector<NodeId>& unused);
  void ReplaceUses(ValueId from, ValueId to);
  void KeepKnowledge(ValueId from, ValueId to);

  Graph& graph_;
  NameScope& names_;
  std::vector<bool> dead_;
  std::vector<bool> is_output_;
  std::vector<bool> is_input_;
  std::vector<int> uses_;
  std::vector<std::vector<NodeId>> readers_;  // see ReadersOf()
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_EDIT_H_
