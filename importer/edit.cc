#include "importer/edit.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

template <class T>
const T* AttributeAs(const Node& node, absl::string_view name) {
  const Attribute* attribute = node.FindAttribute(name);
  return attribute == nullptr ? nullptr : std::get_if<T>(&attribute->value);
}

template <class T>
std::optional<T> Copied(const T* value) {
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

void Renumber(const std::vector<ValueId>& new_ids, std::vector<ValueId>& ids) {
  for (ValueId& id : ids) {
    if (id != kNone) id = new_ids[id];
  }
}

}  // namespace

int64_t IntOr(const Node& node, absl::string_view name, int64_t fallback) {
  const auto* value = AttributeAs<int64_t>(node, name);
  return value == nullptr ? fallback : *value;
}

float FloatOr(const Node& node, absl::string_view name, float fallback) {
  const auto* value = AttributeAs<float>(node, name);
  return value == nullptr ? fallback : *value;
}

std::string StringOr(const Node& node, absl::string_view name, absl::string_view fallback) {
  const auto* value = AttributeAs<std::string>(node, name);
  return value == nullptr ? std::string(fallback) : *value;
}

std::optional<std::vector<int64_t>> IntsOf(const Node& node, absl::string_view name) {
  return Copied(AttributeAs<std::vector<int64_t>>(node, name));
}

std::vector<int64_t> PermOf(const Node& transpose, size_t rank) {
  if (auto given = IntsOf(transpose, "perm")) return *std::move(given);
  std::vector<int64_t> reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return reversed;
}

std::optional<std::vector<float>> FloatsOf(const Node& node, absl::string_view name) {
  return Copied(AttributeAs<std::vector<float>>(node, name));
}

void SetAttribute(Node& node, absl::string_view name, Attribute::Variant value) {
  RemoveAttribute(node, name);
  node.attributes.push_back({std::string(name), std::move(value)});
}

void RemoveAttribute(Node& node, absl::string_view name) {
  node.attributes.erase(std::remove_if(node.attributes.begin(), node.attributes.end(),
                                       [&](const Attribute& a) { return a.name == name; }),
                        node.attributes.end());
}

std::optional<std::vector<int64_t>> IntsOf(const Tensor& tensor, int64_t limit) {
  if (tensor.elements() > limit) return std::nullopt;
  std::vector<int64_t> ints(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.type() == DataType::kInt64) {
      ints[i] = tensor.at<int64_t>(i);
    } else if (tensor.type() == DataType::kInt32) {
      ints[i] = tensor.at<int32_t>(i);
    } else {
      return std::nullopt;
    }
  }
  return ints;
}

std::string NameScope::Fresh(absl::string_view hint) {
  auto [it, is_new] = taken_.try_emplace(hint, 1);
  if (is_new) return std::string(hint);
  int number = it->second;
  std::string name;
  do {
    name = absl::StrCat(hint, "/", ++number);
  } while (taken_.contains(name));
  it->second = number;
  taken_.try_emplace(name, 1);
  return name;
}

void NameScope::Add(const Graph& graph) {
  for (const Value& value : graph.values) taken_.try_emplace(value.name, 1);
  for (const Node& node : graph.nodes) {
    for (const Attribute::GraphPtr& body : BodiesOf(node)) Add(*body);
  }
}

ValueId AddValue(Graph& graph, std::string name) {
  graph.values.emplace_back().name = std::move(name);
  return static_cast<ValueId>(graph.values.size()) - 1;
}

ValueId AddConstant(Graph& graph, std::string name, Tensor tensor) {
  const ValueId id = AddValue(graph, std::move(name));
  MakeConstant(graph.values[id], std::move(tensor));
  return id;
}

void MakeConstant(Value& value, Tensor tensor) {
  value.type = tensor.type();
  value.shape.emplace();
  for (int64_t size : tensor.dims()) value.shape->push_back({size, ""});
  value.other_type.clear();
  value.producer = kNone;
  value.constant = std::move(tensor);
}

absl::Status EditBodies(Node& node,
                        const std::function<absl::Status(absl::string_view attribute, Graph& body,
                                                         std::vector<ValueId>& captured)>& edit) {
  std::vector<ValueId> kept;
  size_t next = 0;
  const auto edit_one = [&](const std::string& name, Attribute::GraphPtr& body) -> absl::Status {
    auto copy = std::make_shared<Graph>(*body);
    std::vector<ValueId> captured(node.captures.begin() + next,
                                  node.captures.begin() + next + copy->captures.size());
    next += copy->captures.size();
    ANEMONE_RETURN_IF_ERROR(edit(name, *copy, captured));
    kept.insert(kept.end(), captured.begin(), captured.end());
    body = std::move(copy);
    return absl::OkStatus();
  };
  for (Attribute& attribute : node.attributes) {
    if (auto* body = std::get_if<Attribute::GraphPtr>(&attribute.value)) {
      ANEMONE_RETURN_IF_ERROR(edit_one(attribute.name, *body));
    } else if (auto* list = std::get_if<std::vector<Attribute::GraphPtr>>(&attribute.value)) {
      for (Attribute::GraphPtr& member : *list) {
        ANEMONE_RETURN_IF_ERROR(edit_one(attribute.name, member));
      }
    }
  }
  node.captures = std::move(kept);
  return absl::OkStatus();
}

std::vector<OriginId> UnionOfOrigins(const Node& a, const Node& b) {
  std::vector<OriginId> all;
  std::set_union(a.origins.begin(), a.origins.end(), b.origins.begin(), b.origins.end(),
                 std::back_inserter(all));
  return all;
}

void Compact(Graph& graph, const std::vector<bool>& dead) {
  if (!dead.empty()) {
    size_t kept = 0;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (dead[i]) continue;
      if (kept != i) graph.nodes[kept] = std::move(graph.nodes[i]);
      ++kept;
    }
    graph.nodes.resize(kept);
  }
  std::vector<ValueId> new_ids(graph.values.size(), kNone);
  const auto mark = [&](const std::vector<ValueId>& ids) {
    for (ValueId id : ids) {
      if (id != kNone) new_ids[id] = 0;
    }
  };
  mark(graph.inputs);
  mark(graph.outputs);
  mark(graph.captures);
  for (const Node& node : graph.nodes) {
    mark(node.inputs);
    mark(node.outputs);
    mark(node.captures);
  }
  ValueId next = 0;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (new_ids[i] == kNone) continue;
    if (next != static_cast<ValueId>(i)) graph.values[next] = std::move(graph.values[i]);
    new_ids[i] = next++;
  }
  graph.values.resize(next);
  Renumber(new_ids, graph.inputs);
  Renumber(new_ids, graph.outputs);
  Renumber(new_ids, graph.captures);
  std::map<ValueId, Tensor> defaults;
  for (auto& [id, tensor] : graph.defaults) defaults.emplace(new_ids[id], std::move(tensor));
  graph.defaults = std::move(defaults);
  for (Node& node : graph.nodes) {
    Renumber(new_ids, node.inputs);
    Renumber(new_ids, node.outputs);
    Renumber(new_ids, node.captures);
  }
  SetProducers(graph);
}

void DropUnusedCaptures(Graph& body, std::vector<ValueId>& captured) {
  absl::flat_hash_set<ValueId> used(body.outputs.begin(), body.outputs.end());
  for (const Node& node : body.nodes) {
    used.insert(node.inputs.begin(), node.inputs.end());
    used.insert(node.captures.begin(), node.captures.end());
  }
  size_t kept = 0;
  for (size_t i = 0; i < captured.size(); ++i) {
    if (!used.contains(body.captures[i])) continue;
    body.captures[kept] = body.captures[i];
    captured[kept++] = captured[i];
  }
  if (kept == captured.size()) return;
  body.captures.resize(kept);
  captured.resize(kept);
  Compact(body, {});
}

void SetProducers(Graph& graph) {
  for (Value& value : graph.values) value.producer = kNone;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId id : graph.nodes[i].outputs) {
      if (id != kNone) graph.values[id].producer = static_cast<NodeId>(i);
    }
  }
}

GraphEditor::GraphEditor(Graph& graph, NameScope& names)
    : graph_(graph),
      names_(names),
      dead_(graph.nodes.size()),
      is_output_(graph.values.size()),
      is_input_(graph.values.size()),
      uses_(graph.values.size()),
      readers_(graph.values.size()) {
  for (ValueId id : graph.inputs) is_input_[id] = true;
  for (ValueId id : graph.outputs) {
    is_output_[id] = true;
    ++uses_[id];
  }
  for (NodeId id = 0; id < size(); ++id) {
    for (ValueId value : graph.nodes[id].inputs) Use(value, id);
    for (ValueId value : graph.nodes[id].captures) Use(value, id);
  }
}

void GraphEditor::Use(ValueId id, NodeId reader) {
  if (id == kNone) return;
  ++uses_[id];
  if (readers_[id].empty() || readers_[id].back() != reader) readers_[id].push_back(reader);
}

// Adds to `unused` the producer of `id` if none of its outputs is used any more.
void GraphEditor::Release(ValueId id, std::vector<NodeId>& unused) {
  if (id == kNone || --uses_[id] > 0) return;
  const NodeId producer = graph_.values[id].producer;
  if (producer == kNone || dead_[producer]) return;
  for (ValueId output : graph_.nodes[producer].outputs) {
    if (output != kNone && uses_[output] > 0) return;
  }
  unused.push_back(producer);
}

Node* GraphEditor::ProducerOf(ValueId id) {
  if (id == kNone || graph_.values[id].producer == kNone) return nullptr;
  return &graph_.nodes[graph_.values[id].producer];
}

const Tensor* GraphEditor::ConstantOf(ValueId id) const {
  if (id == kNone || !graph_.values[id].constant.has_value()) return nullptr;
  return &*graph_.values[id].constant;
}

ValueId GraphEditor::NewConstant(absl::string_view hint, Tensor tensor) {
  const ValueId id = AddConstant(graph_, names_.Fresh(hint), std::move(tensor));
  is_output_.push_back(false);
  is_input_.push_back(false);
  uses_.push_back(0);
  readers_.emplace_back();
  return id;
}

void GraphEditor::SetInput(NodeId id, size_t index, ValueId value) {
  std::vector<ValueId> inputs = node(id).inputs;
  if (inputs.size() <= index) inputs.resize(index + 1, kNone);
  inputs[index] = value;
  SetInputs(id, std::move(inputs));
}

void GraphEditor::SetInputs(NodeId id, std::vector<ValueId> inputs) {
  const std::vector<ValueId> before = std::exchange(node(id).inputs, std::move(inputs));
  for (ValueId value : node(id).inputs) Use(value, id);
  std::vector<NodeId> unused;
  for (ValueId value : before) Release(value, unused);
  for (NodeId gone : unused) {
    if (alive(gone)) Erase(gone);
  }
}

void GraphEditor::Erase(NodeId id) {
  std::vector<NodeId> pending = {id};
  while (!pending.empty()) {
    const NodeId next = pending.back();
    pending.pop_back();
    if (dead_[next]) continue;
    dead_[next] = true;
    const Node& gone = graph_.nodes[next];
    for (ValueId value : gone.inputs) Release(value, pending);
    for (ValueId value : gone.captures) Release(value, pending);
  }
}

// Copies type and shape information from `from` to `to` where `to` has none, such as a shape that
// only the file declares. Shapes of model inputs are not changed: only the user binds them.
void GraphEditor::KeepKnowledge(ValueId from, ValueId to) {
  if (is_input_[to]) return;
  const Value& source = graph_.values[from];
  Value& target = graph_.values[to];
  if (target.type == DataType::kUndefined && target.other_type.empty()) {
    target.type = source.type;
    target.other_type = source.other_type;
  }
  if (!source.shape.has_value()) return;
  if (!target.shape.has_value()) target.shape = source.shape;
  if (target.shape->size() != source.shape->size()) return;
  for (size_t i = 0; i < source.shape->size(); ++i) {
    Dim& dim = (*target.shape)[i];
    const Dim& known = (*source.shape)[i];
    if (!dim.known() && (known.known() || dim.symbol.empty())) dim = known;
  }
}

void GraphEditor::ReplaceUses(ValueId from, ValueId to) {
  for (NodeId reader : std::exchange(readers_[from], {})) {
    if (dead_[reader]) continue;
    const auto replace = [&](std::vector<ValueId>& ids) {
      for (ValueId& id : ids) {
        if (id != from) continue;
        id = to;
        --uses_[from];
        Use(to, reader);
      }
    };
    replace(graph_.nodes[reader].inputs);
    replace(graph_.nodes[reader].captures);
  }
}

bool GraphEditor::Bypass(NodeId id, ValueId value) {
  const ValueId output = node(id).outputs[0];
  if (!is_output_[output]) {
    KeepKnowledge(output, value);
    ReplaceUses(output, value);
    Erase(id);
    return true;
  }
  // A graph output keeps its value: the producer of `value` writes the output instead.
  const NodeId producer = graph_.values[value].producer;
  if (producer == kNone || is_output_[value]) return false;
  KeepKnowledge(value, output);
  std::vector<ValueId>& made = graph_.nodes[producer].outputs;
  std::replace(made.begin(), made.end(), value, output);
  graph_.values[output].producer = producer;
  graph_.values[value].producer = kNone;
  dead_[id] = true;
  for (ValueId input : node(id).inputs) {
    std::vector<NodeId> unused;
    Release(input, unused);
    for (NodeId gone : unused) Erase(gone);
  }
  ReplaceUses(value, output);
  return true;
}

void GraphEditor::TakeOver(NodeId first, NodeId second) {
  Node& keeper = node(first);
  Node& gone = node(second);
  keeper.origins = UnionOfOrigins(keeper, gone);
  if (keeper.name.empty()) keeper.name = gone.name;
  graph_.values[keeper.outputs[0]].producer = kNone;
  keeper.outputs[0] = gone.outputs[0];
  graph_.values[keeper.outputs[0]].producer = first;
  Erase(second);
}

}  // namespace anemone
