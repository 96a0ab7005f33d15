#include "importer/row_writes.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/edit.h"
#include "importer/elements.h"

namespace anemone {
namespace {

constexpr char kOrder[] = "order";

// Where the operators that write rows have their inputs.
struct RowWriter {
  const char* op_type;
  size_t positions, rows;
};
constexpr RowWriter kRowWriters[] = {
    {"ScatterND", 1, 2}, {"ScatterElements", 1, 2}, {"TensorScatter", 2, 1}};

const RowWriter* RowWriterOf(const Node& node) {
  const auto* found = std::find_if(std::begin(kRowWriters), std::end(kRowWriters),
                                   [&](const RowWriter& op) { return node.op_type == op.op_type; });
  return node.domain.empty() && found != std::end(kRowWriters) ? found : nullptr;
}

bool IsTranspose(const Node& node) { return node.domain.empty() && node.op_type == "Transpose"; }

std::vector<int64_t> Chained(const std::vector<int64_t>& first,
                             const std::vector<int64_t>& second) {
  std::vector<int64_t> order(first.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = first[second[i]];
  return order;
}

bool IsIdentity(const std::vector<int64_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

class RowsInPlace {
 public:
  explicit RowsInPlace(Model& model)
      : model_(model), graph_(model.graph), consumers_(ConsumersOf(graph_)) {}

  // nullopt: rows are not written into the state at run time. Else why it is copied; "" if it is
  // not.
  std::optional<std::string> Replace(const StateValues& state);
  void Finish();

 private:
  // A value behind transposes: axis i of `from` is axis order[i] of `value`.
  struct Turned {
    ValueId value;
    std::vector<int64_t> order;
    std::vector<NodeId> nodes;
  };
  Turned BehindTransposes(ValueId from) const;
  std::string ReadElsewhere(ValueId value, NodeId by) const;
  bool IsOutput(ValueId value) const {
    return std::count(graph_.outputs.begin(), graph_.outputs.end(), value) > 0;
  }
  std::string Name(ValueId value) const {
    return absl::StrCat("'", graph_.values[value].name, "'");
  }
  void ReadPresent(ValueId written, ValueId present, const std::vector<int64_t>& order,
                   NodeId writer);

  Model& model_;
  Graph& graph_;
  const std::vector<std::vector<NodeId>> consumers_;
  std::set<NodeId> dead_;
  std::vector<std::pair<NodeId, Node>> added_;  // each behind the node of this id
};

RowsInPlace::Turned RowsInPlace::BehindTransposes(ValueId from) const {
  const size_t rank = graph_.values[from].shape->size();
  Turned turned{from, std::vector<int64_t>(rank), {}};
  std::iota(turned.order.begin(), turned.order.end(), 0);
  while (true) {
    const NodeId id = graph_.values[turned.value].producer;
    if (id == kNone || !IsTranspose(graph_.nodes[id])) return turned;
    turned.order = Chained(PermOf(graph_.nodes[id], rank), turned.order);
    turned.value = graph_.nodes[id].inputs[0];
    turned.nodes.push_back(id);
  }
}

// Why the value cannot be overwritten, of which `by` is a reader; "" if it is the only one.
std::string RowsInPlace::ReadElsewhere(ValueId value, NodeId by) const {
  if (IsOutput(value)) return absl::StrCat(Name(value), " is an output too");
  for (const NodeId reader : consumers_[value]) {
    if (reader == by) continue;
    return absl::StrCat(Name(value), " is also read by ", NodeLabel(model_, graph_.nodes[reader]));
  }
  return "";
}

std::optional<std::string> RowsInPlace::Replace(const StateValues& state) {
  const Value &past = graph_.values[state.past], &present = graph_.values[state.present];
  if (!past.is_static() || !present.is_static() || past.dims() != present.dims()) {
    return std::nullopt;
  }
  const Turned after = BehindTransposes(state.present);
  const NodeId id = graph_.values[after.value].producer;
  const RowWriter* op = id == kNone ? nullptr : RowWriterOf(graph_.nodes[id]);
  if (op == nullptr) return std::nullopt;
  const Node& node = graph_.nodes[id];
  const ValueId rows = node.inputs[op->rows], positions = InputOr(node, op->positions);
  const auto is_constant = [&](ValueId v) { return graph_.values[v].constant.has_value(); };
  if (positions == kNone || is_constant(positions)) return std::nullopt;
  const std::string label = NodeLabel(model_, node);
  const Turned before = BehindTransposes(node.inputs[0]);
  if (before.value != state.past || !IsIdentity(Chained(before.order, after.order))) {
    return absl::StrCat(Name(state.present), " is not ", Name(state.past),
                        " with rows written: ", label);
  }
  if (StringOr(node, "reduction", "none") != "none") {
    return absl::StrCat(label, " adds to the rows that were there");
  }
  if (!IsFloating(past.type) || past.type == DataType::kBFloat16 || is_constant(rows)) {
    return absl::StrCat(label, " writes ",
                        is_constant(rows) ? "constants" : DataTypeName(past.type));
  }
  NodeId reader = id;
  for (const NodeId transpose : before.nodes) {
    std::string why = ReadElsewhere(graph_.nodes[transpose].outputs[0], reader);
    if (!why.empty()) return why;
    reader = transpose;
  }
  if (std::string why = ReadElsewhere(state.past, reader); !why.empty()) return why;
  for (size_t i = 0; i + 1 < after.nodes.size(); ++i) {
    std::string why = ReadElsewhere(graph_.nodes[after.nodes[i]].inputs[0], after.nodes[i]);
    if (!why.empty()) return why;
  }

  Node write = node;
  write.domain = kStateDomain;
  write.inputs = {state.past, rows, positions};
  write.outputs = {state.present};
  SetAttribute(write, kOrder, before.order);
  dead_.insert(before.nodes.begin(), before.nodes.end());
  dead_.insert(after.nodes.begin(), after.nodes.end());
  if (after.value != state.present) ReadPresent(after.value, state.present, before.order, id);
  graph_.nodes[id] = std::move(write);
  return "";
}

// Makes all readers of `written`, whose axis i is axis order[i] of `present`, read `present`.
void RowsInPlace::ReadPresent(ValueId written, ValueId present, const std::vector<int64_t>& order,
                              NodeId writer) {
  const Node* other = IsOutput(written) ? &graph_.nodes[writer] : nullptr;  // a reader
  for (const NodeId reader : consumers_[written]) {
    Node& node = graph_.nodes[reader];
    if (dead_.contains(reader)) continue;
    if (!IsTranspose(node)) {
      other = &node;
      continue;
    }
    SetAttribute(node, "perm", Chained(order, PermOf(node, order.size())));
    node.inputs[0] = present;
  }
  if (other == nullptr) return;
  Node turn = graph_.nodes[graph_.values[present].producer];  // one of the transposes
  turn.inputs = {present};
  turn.outputs = {written};
  turn.origins = other->origins;  // placed with it
  SetAttribute(turn, "perm", order);
  added_.emplace_back(writer, std::move(turn));
}

void RowsInPlace::Finish() {
  std::vector<Node> nodes;
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
    if (!dead_.contains(id)) nodes.push_back(std::move(graph_.nodes[id]));
    for (auto& [behind, node] : added_) {
      if (behind == id) nodes.push_back(std::move(node));
    }
  }
  graph_.nodes = std::move(nodes);
  Compact(graph_, {});
}

}  // namespace

RowWrite RowWriteOf(const Node& node) {
  return {.past = node.inputs[0],
          .present = node.outputs[0],
          .rows = node.inputs[1],
          .positions = node.inputs[2],
          .order = IntsOf(node, kOrder).value()};
}

std::string WriteRowsInPlace(absl::Span<const StateValues> states, Model& model) {
  RowsInPlace writer(model);
  std::string refusal;
  for (const StateValues& state : states) {
    const std::optional<std::string> why = writer.Replace(state);
    if (why && refusal.empty()) refusal = *why;
  }
  writer.Finish();
  return refusal;
}

}  // namespace anemone
