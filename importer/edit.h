// importer/edit.h: changing a Graph: typed attributes, fresh values, and GraphEditor, which knows
// who reads a value and keeps that true while passes rewrite.
//
// A Graph under an editor keeps its order: a rewrite may make a node read an older value or a new
// constant, or take over the output of a later node, and nothing else; so no pass sorts.
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

// An attribute's value, or `fallback` if the node has none of that name and type.
int64_t IntOr(const Node& node, absl::string_view name, int64_t fallback);
float FloatOr(const Node& node, absl::string_view name, float fallback);
std::string StringOr(const Node& node, absl::string_view name, absl::string_view fallback);
std::optional<std::vector<int64_t>> IntsOf(const Node& node, absl::string_view name);
std::optional<std::vector<float>> FloatsOf(const Node& node, absl::string_view name);

void SetAttribute(Node& node, absl::string_view name, Attribute::Variant value);
void RemoveAttribute(Node& node, absl::string_view name);

// The elements of an int32 or int64 tensor of at most `limit` elements.
std::optional<std::vector<int64_t>> IntsOf(const Tensor& tensor, int64_t limit = 1 << 16);

// Names that no value of a main graph and its bodies has yet. One serves the whole Model.
class NameScope {
 public:
  NameScope() = default;
  explicit NameScope(const Graph& root) { Add(root); }
  // "hint", or "hint/2", "hint/3", ... if taken.
  std::string Fresh(absl::string_view hint);

 private:
  void Add(const Graph& graph);
  absl::flat_hash_map<std::string, int> taken_;  // -> the number tried last behind it
};

ValueId AddValue(Graph& graph, std::string name);
ValueId AddConstant(Graph& graph, std::string name, Tensor tensor);
void MakeConstant(Value& value, Tensor tensor);

// Calls `edit` with each body of `node` in turn, as a copy that may be changed, and the outer ids
// of its captures, which `edit` keeps in step with Graph::captures; then puts the copies in place.
absl::Status EditBodies(Node& node,
                        const std::function<absl::Status(absl::string_view attribute, Graph& body,
                                                         std::vector<ValueId>& captured)>& edit);

// Sorted, without repetitions.
std::vector<OriginId> UnionOfOrigins(const Node& a, const Node& b);

// Drops the nodes for which `dead` is true (empty: none) and every value nobody refers to, and
// renumbers. Inputs, outputs and captures stay.
void Compact(Graph& graph, const std::vector<bool>& dead);

// Drops the captures of `body` that nothing in it refers to, and their entries in `captured`.
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

  // The node that makes `id`; nullptr for inputs, constants and captures.
  Node* ProducerOf(ValueId id);
  // nullptr if `id` is no constant.
  const Tensor* ConstantOf(ValueId id) const;
  // How many times nodes and graph outputs refer to `id`.
  int UsesOf(ValueId id) const { return uses_[id]; }
  bool IsOutput(ValueId id) const { return is_output_[id]; }
  // Every node that reads `id`; also some that no longer do, or are gone, and some twice.
  absl::Span<const NodeId> ReadersOf(ValueId id) const { return readers_[id]; }
  // True if one node reads `id`, once, and it is no graph output.
  bool HasOneUse(ValueId id) const { return uses_[id] == 1 && !is_output_[id]; }

  ValueId NewConstant(absl::string_view hint, Tensor tensor);
  void SetInput(NodeId id, size_t index, ValueId value);
  void SetInputs(NodeId id, std::vector<ValueId> inputs);

  // Takes the node away, and every producer that nobody needs after it. Its outputs must be unused.
  void Erase(NodeId id);

  // Everybody who reads `node`'s first output reads `value` instead, and the node goes away. False,
  // with nothing done, if that cannot be: a graph output must keep its name and its own value.
  bool Bypass(NodeId id, ValueId value);

  // `first` makes what `second`, its only reader, makes now; `second` goes away.
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
