#include "importer/last_row.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "importer/edit.h"
#include "importer/importer.h"
#include "importer/infer/compute.h"
#include "importer/operators/row_rules.h"

namespace anemone {
namespace {

constexpr int kTokens = 1;  // the axis of logits, batch x tokens x vocabulary
constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

Tensor OneInt(int64_t value) { return Tensor::Int64s({1}, {&value, 1}); }

// The only element of a constant of integers.
std::optional<int64_t> IntOf(const Graph& graph, ValueId id) {
  const auto ints = graph.values[id].constant ? IntsOf(*graph.values[id].constant, 1)
                                              : std::optional<std::vector<int64_t>>();
  return ints && ints->size() == 1 ? std::optional<int64_t>(ints->front()) : std::nullopt;
}

bool AreStatic(const Graph& graph, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [&](ValueId id) {
    return id == kNone || (graph.values[id].is_static() && graph.values[id].other_type.empty());
  });
}

// The axis of which the node takes only the last row, of several; kNone if it is another node.
int TakenAxis(const Graph& graph, const Node& node) {
  const bool slices = node.op_type == "Slice" && node.inputs.size() >= 4;
  if (!node.domain.empty() || (!slices && node.op_type != "Gather")) return kNone;
  const Value& data = graph.values[node.inputs[0]];
  const auto from = IntOf(graph, node.inputs[1]);
  if (!data.is_static() || data.constant || !from) return kNone;
  const std::vector<int64_t> dims = data.dims();
  const auto rank = static_cast<int64_t>(dims.size());
  std::optional<int64_t> axis = IntOr(node, "axis", 0);
  if (slices) axis = IntOf(graph, node.inputs[3]);
  if (!axis || *axis < -rank || *axis >= rank) return kNone;
  if (*axis < 0) *axis += rank;
  const int64_t size = dims[*axis];
  if (size < 2 || (*from != -1 && *from != size - 1)) return kNone;
  if (slices) {
    const auto to = IntOf(graph, node.inputs[2]);
    const bool in_steps = HasInput(node, 4) && IntOf(graph, node.inputs[4]) != 1;
    if (!to || *to < size || in_steps) return kNone;
  }
  return static_cast<int>(*axis);
}

class RowComputer {
 public:
  explicit RowComputer(Model& model)
      : graph_(model.graph),
        names_(model.graph),
        needs_(graph_.values.size(), kNothing),
        inputs_(graph_.nodes.size()),
        taken_(graph_.nodes.size(), kNone) {}

  void Run() {
    FindNeeds();
    if (std::all_of(inputs_.begin(), inputs_.end(), [](const auto& own) { return !own; })) return;
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (IsUnread(nodes[i])) continue;  // its inputs may have become rows
      if (taken_[i] != kNone) TakeFromRow(nodes[i]);
      if (inputs_[i]) ComputeRow(nodes[i], *inputs_[i]);
      graph_.nodes.push_back(std::move(nodes[i]));
    }
    SetProducers(graph_);
  }

 private:
  // What is read of a value: the last row of an axis (its number), everything or nothing.
  static constexpr int kEverything = kNone, kNothing = kNone - 1;

  void Need(ValueId id, int what) {
    if (id == kNone) return;
    int& needed = needs_[id];
    needed = needed == kNothing || needed == what ? what : kEverything;
  }

  bool IsUnread(const Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return id == kNone || needs_[id] == kNothing; });
  }

  // The axis of which all readers of the outputs need the last row.
  int RowOfOutputs(const Node& node) const {
    int axis = kNothing;
    for (const ValueId id : node.outputs) {
      if (id == kNone || needs_[id] == kNothing) continue;
      if (axis != kNothing && needs_[id] != axis) return kEverything;
      axis = needs_[id];
    }
    return axis;
  }

  RowInputs InputsFor(const Node& node) const {
    const int axis = RowOfOutputs(node);
    const bool is_known = axis >= 0 && node.captures.empty() && AreStatic(graph_, node.inputs) &&
                          AreStatic(graph_, node.outputs);
    return is_known ? RowInputsOf(graph_, node, axis) : std::nullopt;
  }

  void FindNeeds() {
    for (const ValueId id : graph_.outputs) Need(id, kEverything);
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (IsUnread(node)) continue;
      inputs_[i] = InputsFor(node);
      taken_[i] = inputs_[i] ? kNone : TakenAxis(graph_, node);
      for (const ValueId id : node.outputs) {
        if (id != kNone && !inputs_[i]) needs_[id] = kEverything;
      }
      for (size_t in = 0; in < node.inputs.size(); ++in) {
        const bool is_data = taken_[i] != kNone && in == 0;
        const int whole = is_data ? taken_[i] : kEverything;
        Need(node.inputs[in], inputs_[i] ? (*inputs_[i])[in] : whole);
      }
      for (const ValueId id : node.captures) Need(id, kEverything);
    }
  }

  // A node that took the last row of a value: it may have become the only one.
  void TakeFromRow(Node& node) {
    if (!made_.contains(node.inputs[0])) return;
    if (node.op_type == "Gather") {
      const Tensor& old = *graph_.values[node.inputs[1]].constant;
      node.inputs[1] = Constant(node, Tensor::Zeros(old.type(), old.dims()));
      return;
    }
    node.op_type = "Identity";
    node.inputs.resize(1);
    node.attributes.clear();
  }

  void ComputeRow(Node& node, const std::vector<int>& needs) {
    for (size_t i = 0; i < needs.size(); ++i) {
      ValueId& input = node.inputs[i];
      if (needs[i] != kNone && !made_.contains(input)) input = LastRow(node, input, needs[i]);
    }
    const int axis = RowOfOutputs(node);
    for (const ValueId id : node.outputs) {
      if (id == kNone) continue;
      Value& value = graph_.values[id];
      (*value.shape)[axis] = {.size = 1};
      value.name = names_.Fresh(value.name);  // its elements are not those of the file's value
      made_.insert(id);
    }
    if (node.op_type != "Reshape" && node.op_type != "Expand") return;
    const std::vector<int64_t> dims = graph_.values[node.outputs[0]].dims();
    node.inputs[1] = Constant(node, Tensor::Int64s({static_cast<int64_t>(dims.size())}, dims));
  }

  ValueId Constant(const Node& reader, Tensor tensor) {
    return AddConstant(graph_, names_.Fresh(absl::StrCat(reader.name, "/last_row")),
                       std::move(tensor));
  }

  // A Slice of a value that has other readers, for `reader`.
  ValueId LastRow(const Node& reader, ValueId id, int axis) {
    ValueId& row = sliced_.try_emplace({id, axis}, kNone).first->second;
    if (row != kNone) return row;
    const int64_t size = graph_.values[id].dims()[axis];
    Node slice;
    slice.name = absl::StrCat(reader.name, "/last_row");
    slice.op_type = "Slice";
    slice.version = kWorkingOpset;
    slice.origins = reader.origins;
    slice.inputs = {id, Constant(reader, OneInt(size - 1)), Constant(reader, OneInt(size)),
                    Constant(reader, OneInt(axis))};
    row = AddValue(graph_, names_.Fresh(absl::StrCat(graph_.values[id].name, "/last_row")));
    const Value& whole = graph_.values[id];
    Value& made = graph_.values[row];
    made.type = whole.type;
    made.shape = whole.shape;
    (*made.shape)[axis] = {.size = 1};
    slice.outputs = {row};
    if (whole.constant) {
      std::vector<Tensor> part = ComputeSmall(graph_, slice);
      if (!part.empty()) {
        MakeConstant(made, std::move(part.front()));
        return row;
      }
    }
    graph_.nodes.push_back(std::move(slice));
    return row;
  }

  Graph& graph_;
  NameScope names_;
  std::vector<int> needs_;             // by value
  std::vector<RowInputs> inputs_;      // by node: if it computes one row
  std::vector<int> taken_;             // by node: TakenAxis()
  absl::flat_hash_set<ValueId> made_;  // the values that have become their last row
  std::map<std::pair<ValueId, int>, ValueId> sliced_;
};

void WarnNoLogits(const char* why, const char* remedy, Model& model) {
  model.warnings.push_back(
      {"no-logits", kLogits, absl::StrCat("all rows are computed: ", why), remedy});
}

}  // namespace

void CutLogits(Model& model) {
  Graph& graph = model.graph;
  const auto opset = model.opsets.find("");
  const auto found = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                  [&](ValueId id) { return graph.values[id].name == kLogits; });
  if (opset == model.opsets.end() || opset->second < 10) {
    return WarnNoLogits("the model is older than opset 10", "export it for a newer opset", model);
  }
  if (found == graph.outputs.end() || graph.values[*found].producer == kNone ||
      !graph.values[*found].shape || graph.values[*found].shape->size() != 3) {
    return WarnNoLogits("the model has no output of this name, batch x tokens x vocabulary",
                        "do not ask for the last logits only", model);
  }
  const ValueId all = *found;
  NameScope names(graph);
  const ValueId last = AddValue(graph, kLogits);
  graph.values[last].type = graph.values[all].type;
  graph.values[last].shape = graph.values[all].shape;
  (*graph.values[last].shape)[kTokens] = {.size = 1};
  graph.values[all].name = names.Fresh(kLogits);
  *found = last;
  Node slice;
  slice.name = names.Fresh("last_logits");
  slice.op_type = "Slice";
  slice.version = static_cast<int>(opset->second);
  slice.origins = graph.nodes[graph.values[all].producer].origins;
  slice.inputs = {all};
  for (const int64_t number : {int64_t{-1}, kToTheEnd, int64_t{kTokens}}) {
    slice.inputs.push_back(AddConstant(graph, names.Fresh("last_logits"), OneInt(number)));
  }
  slice.outputs = {last};
  graph.nodes.push_back(std::move(slice));
  SetProducers(graph);
}

void ComputeLastRows(Model& model) { RowComputer(model).Run(); }

}  // namespace anemone
