#include "importer/infer/unroll.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "importer/importer.h"
#include "importer/infer/infer.h"
#include "importer/infer/trips.h"

namespace anemone {
namespace {

// Each round may find further sizes that change; this many rounds are tried.
constexpr int kMostRounds = 4;

bool ComputesFloats(const Graph& body) {
  return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return id != kNone && IsFloating(body.values[id].type); });
  });
}

bool HoldsBodies(const Graph& body) {
  return std::any_of(body.nodes.begin(), body.nodes.end(),
                     [](const Node& node) { return !BodiesOf(node).empty(); });
}

// The value of stacked output `k` after zero iterations; nullopt if its size is not known.
std::optional<Tensor> EmptyStackOf(const Node& node, size_t k) {
  const Graph& body = *LoopBodyOf(node);
  const bool is_scan = node.op_type == "Scan";
  const Value& element = body.values[body.outputs[!is_scan + CarriedOf(node) + k]];
  if (!element.is_static() || BitsOf(element.type) == 0) return std::nullopt;
  std::vector<int64_t> dims = element.dims();
  int64_t axis = is_scan ? ScanOutputAxes(node)[k] : 0;
  if (axis < 0) axis += static_cast<int64_t>(dims.size()) + 1;
  if (axis < 0 || axis > static_cast<int64_t>(dims.size())) return std::nullopt;
  dims.insert(dims.begin() + axis, 0);
  return Tensor::Zeros(element.type, std::move(dims));
}

// Unrolls one Loop or Scan.
class Unroller {
 public:
  Unroller(const Node& node, Graph& graph, NameScope& names)
      : node_(node),
        body_(*LoopBodyOf(node)),
        graph_(graph),
        names_(names),
        is_scan_(node.op_type == "Scan"),
        carried_(CarriedOf(node)),
        shared_(body_.values.size(), kNone) {}

  std::vector<Node> Unroll(int64_t trips) {
    // The body's inputs in the current iteration; for a Loop, the first two are the iteration
    // number and the condition.
    std::vector<ValueId> given = node_.inputs;
    std::vector<std::vector<ValueId>> stacked(node_.outputs.size() - carried_);
    ShareConstants();
    for (int64_t i = 0; i < trips; ++i) {
      if (is_scan_) {
        SliceInputs(i, trips, given);
      } else {
        given[0] = Constant(OneOf(0, Tensor::Int64s({}, {i})));
        given[1] = Constant(OneOf(1, Truth()));
      }
      const std::vector<ValueId> made = Iterate(given);
      // Skip a Loop's condition, which is true.
      std::copy(made.begin() + !is_scan_, made.begin() + !is_scan_ + carried(),
                given.begin() + first_carried());
      for (size_t k = 0; k < stacked.size(); ++k) {
        stacked[k].push_back(made[!is_scan_ + carried_ + k]);
      }
    }
    for (size_t k = 0; k < carried_; ++k) {
      Emit("Identity", {given[first_carried() + static_cast<int64_t>(k)]}, node_.outputs[k]);
    }
    for (size_t k = 0; k < stacked.size(); ++k) Stack(k, std::move(stacked[k]));
    return std::move(nodes_);
  }

 private:
  int64_t carried() const { return static_cast<int64_t>(carried_); }
  int64_t first_carried() const { return is_scan_ ? 0 : 2; }

  static Tensor Truth() {
    const std::array<bool, 1> yes = {true};
    return Tensor::Of<bool>(DataType::kBool, {}, yes);
  }

  // A scalar, reshaped to the rank of the body's input.
  Tensor OneOf(size_t input, const Tensor& scalar) const {
    const std::optional<Shape>& shape = body_.values[body_.inputs[input]].shape;
    return scalar.Reshaped(std::vector<int64_t>(shape.has_value() ? shape->size() : 0, 1));
  }

  ValueId Constant(Tensor tensor) {
    return AddConstant(graph_, names_.Fresh("unrolled"), std::move(tensor));
  }

  ValueId Emit(const char* op, std::vector<ValueId> inputs, ValueId output = kNone) {
    if (output == kNone) output = AddValue(graph_, names_.Fresh(graph_.values[inputs[0]].name));
    Node& made = nodes_.emplace_back();
    made.op_type = op;
    made.version = kWorkingOpset;
    made.inputs = std::move(inputs);
    made.outputs = {output};
    made.origins = OwnOrigins(node_);
    return output;
  }

  // All iterations share the captured outer values and the constants of the body.
  void ShareConstants() {
    for (size_t i = 0; i < body_.captures.size(); ++i) {
      shared_[body_.captures[i]] = node_.captures[i];
    }
    for (size_t i = 0; i < body_.values.size(); ++i) {
      if (shared_[i] != kNone || !body_.values[i].constant.has_value()) continue;
      shared_[i] = AddConstant(graph_, body_.values[i].name, *body_.values[i].constant);
    }
  }

  std::vector<ValueId> Iterate(const std::vector<ValueId>& given) {
    BodyValues values = shared_;
    for (size_t i = 0; i < given.size(); ++i) values[body_.inputs[i]] = given[i];
    std::vector<Node> nodes = NodesOf(body_, graph_, &names_, values);
    std::move(nodes.begin(), nodes.end(), std::back_inserter(nodes_));
    std::vector<ValueId> made;
    made.reserve(body_.outputs.size());
    for (ValueId id : body_.outputs) made.push_back(values[id]);
    return made;
  }

  void SliceInputs(int64_t trip, int64_t trips, std::vector<ValueId>& given) {
    const std::vector<int64_t> axes = ScanInputAxes(node_);
    const std::vector<int64_t> backwards = ScanInputDirections(node_);
    for (size_t k = 0; k < axes.size(); ++k) {
      const int64_t index = backwards[k] != 0 ? trips - 1 - trip : trip;
      const auto vector = [&](int64_t number) { return Constant(Tensor::Int64s({1}, {number})); };
      const ValueId axis = vector(axes[k]);
      const ValueId slice =
          Emit("Slice", {node_.inputs[carried_ + k], vector(index), vector(index + 1), axis});
      given[carried_ + k] = Emit("Squeeze", {slice, axis});
    }
  }

  void Stack(size_t k, std::vector<ValueId> parts) {
    const ValueId output = node_.outputs[carried_ + k];
    if (output == kNone) return;
    if (parts.empty()) {
      Emit("Identity", {Constant(*EmptyStackOf(node_, k))}, output);
      return;
    }
    const int64_t axis = is_scan_ ? ScanOutputAxes(node_)[k] : 0;
    if (is_scan_ && ScanOutputDirections(node_)[k] != 0) std::reverse(parts.begin(), parts.end());
    const ValueId axes = Constant(Tensor::Int64s({1}, {axis}));
    for (ValueId& part : parts) part = Emit("Unsqueeze", {part, axes});
    Emit("Concat", std::move(parts), output);
    SetAttribute(nodes_.back(), "axis", axis);
  }

  const Node& node_;
  const Graph& body_;
  Graph& graph_;
  NameScope& names_;
  const bool is_scan_;
  const size_t carried_;
  BodyValues shared_;
  std::vector<Node> nodes_;
};

bool AllKnown(const std::optional<Shape>& shape) {
  return shape.has_value() &&
         std::all_of(shape->begin(), shape->end(), [](const Dim& dim) { return dim.known(); });
}

Shape WithoutSymbols(Shape shape) {
  for (Dim& dim : shape) dim.symbol.clear();
  return shape;
}

// Removes the sizes from `assumed` that `made` does not confirm. True if it confirms all.
bool Narrow(std::optional<Shape>& assumed, const std::optional<Shape>& made) {
  if (!assumed.has_value()) return true;
  if (!made.has_value() || made->size() != assumed->size()) {
    assumed.reset();
    return false;
  }
  bool same = true;
  for (size_t i = 0; i < assumed->size(); ++i) {
    Dim& dim = (*assumed)[i];
    if (!dim.known() || dim.size == (*made)[i].size) continue;
    dim = Dim();
    same = false;
  }
  return same;
}

// True if the body maps values of these shapes to values of the same shapes. Removes the sizes that
// differ from `assumed`.
absl::StatusOr<bool> Holds(Model& model, const Graph& graph, const Node& node, Graph trial,
                           std::vector<std::optional<Shape>>& assumed) {
  TypeCaptures(graph, node.captures, trial);
  for (size_t k = 0; k < assumed.size(); ++k) {
    Value& input = trial.values[trial.inputs[2 + k]];
    input.type = graph.values[node.inputs[2 + k]].type;
    input.shape = assumed[k];
  }
  const size_t warnings = model.warnings.size();
  ANEMONE_RETURN_IF_ERROR(Inference::Lenient(model).InferGraph(trial));
  model.warnings.resize(warnings);
  bool holds = true;
  for (size_t k = 0; k < assumed.size(); ++k) {
    holds &= Narrow(assumed[k], trial.values[trial.outputs[1 + k]].shape);
  }
  return holds;
}

}  // namespace

std::vector<Node> NodesOf(const Graph& body, Graph& graph, NameScope* names, BodyValues& known) {
  for (size_t i = 0; i < body.values.size(); ++i) {
    if (known[i] != kNone) continue;
    known[i] = static_cast<ValueId>(graph.values.size());
    Value& value = graph.values.emplace_back(body.values[i]);
    if (names != nullptr) value.name = names->Fresh(value.name);
  }
  std::vector<Node> nodes = body.nodes;
  for (Node& moved : nodes) {
    for (auto* list : {&moved.inputs, &moved.outputs, &moved.captures}) {
      for (ValueId& id : *list) {
        if (id != kNone) id = known[id];
      }
    }
  }
  return nodes;
}

// A node's own origin comes before those of its bodies.
std::vector<OriginId> OwnOrigins(const Node& node) {
  return {node.origins.begin(), node.origins.begin() + !node.origins.empty()};
}

int64_t UnrolledSize(const Graph& graph, const Node& node) {
  const std::optional<int64_t> trips = TripsOf(graph, node);
  if (!trips.has_value()) return 0;
  const Graph& body = *LoopBodyOf(node);
  if (HoldsBodies(body) || !ComputesFloats(body)) return 0;
  // An upper bound, which includes the nodes that slice inputs and stack outputs.
  const auto each =
      static_cast<int64_t>(body.nodes.size() + 2 * node.inputs.size() + node.outputs.size());
  if (*trips > 0) return *trips > (int64_t{1} << 40) / each ? int64_t{1} << 40 : *trips * each;
  for (size_t k = 0; k + CarriedOf(node) < node.outputs.size(); ++k) {
    if (!EmptyStackOf(node, k).has_value()) return 0;
  }
  return static_cast<int64_t>(node.outputs.size());
}

std::vector<Node> Unrolled(const Node& node, Graph& graph, NameScope& names) {
  const int64_t trips = *TripsOf(graph, node);
  return Unroller(node, graph, names).Unroll(trips);
}

absl::Status KeepCarriedShapes(Model& model, const Graph& graph, Node& node,
                               std::vector<std::optional<Shape>>& outputs) {
  const Graph* body = node.op_type == "Loop" ? LoopBodyOf(node) : nullptr;
  if (body == nullptr) return absl::OkStatus();
  std::vector<std::optional<Shape>> assumed;
  for (size_t k = 0; k < CarriedOf(node); ++k) {
    const Value& first = graph.values[node.inputs[2 + k]];
    assumed.push_back(first.shape);
    if (first.shape.has_value()) assumed.back() = WithoutSymbols(*first.shape);
  }
  if (std::none_of(assumed.begin(), assumed.end(), AllKnown)) return absl::OkStatus();
  bool holds = false;
  for (int round = 0; round < kMostRounds && !holds; ++round) {
    ANEMONE_ASSIGN_OR_RETURN(holds, Holds(model, graph, node, *body, assumed));
  }
  if (!holds) return absl::OkStatus();
  for (std::optional<Shape>& shape : assumed) {
    if (!AllKnown(shape)) shape.reset();
  }
  outputs = std::move(assumed);
  return EditBodies(node, [&](absl::string_view, Graph& edited, std::vector<ValueId>&) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].has_value()) edited.values[edited.inputs[2 + k]].shape = outputs[k];
    }
    return absl::OkStatus();
  });
}

}  // namespace anemone
