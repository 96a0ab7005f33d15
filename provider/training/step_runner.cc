#include "provider/training/step_runner.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/infer/infer.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

// The model that computes `outputs` by `nodes`: its inputs are what they read and do not make.
absl::StatusOr<std::string> PartModel(const Graph& graph, const std::vector<NodeId>& nodes,
                                      const std::vector<ValueId>& outputs) {
  std::vector<bool> made(graph.values.size()), listed(graph.values.size());
  for (NodeId id : nodes) {
    for (ValueId v : graph.nodes[id].outputs) {
      if (v != kNone) made[v] = true;
    }
  }
  std::vector<ValueId> inputs;
  for (NodeId id : nodes) {
    for (const auto* values : {&graph.nodes[id].inputs, &graph.nodes[id].captures}) {
      for (ValueId v : *values) {
        if (v == kNone || made[v] || listed[v] || graph.values[v].constant) continue;
        listed[v] = true;
        inputs.push_back(v);
      }
    }
  }
  ANEMONE_ASSIGN_OR_RETURN(const OnnxModel model, ToOnnx(graph, nodes, inputs, outputs,
                                                         {.external_from = kNeverExternal}));
  return model.proto.SerializeAsString();
}

// Values that the first part makes and the update reads.
std::vector<ValueId> Crossing(const Graph& graph, const std::vector<bool>& in_update) {
  std::vector<bool> found(graph.values.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!in_update[i]) continue;
    for (ValueId v : graph.nodes[i].inputs) {
      const NodeId maker = v == kNone ? kNone : graph.values[v].producer;
      if (maker != kNone && !in_update[maker]) found[v] = true;
    }
  }
  std::vector<ValueId> values;
  for (size_t v = 0; v < found.size(); ++v) {
    if (found[v]) values.push_back(static_cast<ValueId>(v));
  }
  return values;
}

// The values that the session takes; it keeps its states itself.
std::map<std::string, Tensor> InputsOf(const Session& session,
                                       const std::map<std::string, Tensor>& values) {
  std::map<std::string, Tensor> inputs;
  for (const PortInfo& port : session.inputs()) {
    if (!port.has_default) inputs[port.name] = values.at(port.name);
  }
  return inputs;
}

}  // namespace

absl::StatusOr<std::string> StepModel(const Graph& graph) {
  ANEMONE_ASSIGN_OR_RETURN(const OnnxModel model, ToOnnx(graph, {.external_from = kNeverExternal}));
  return model.proto.SerializeAsString();
}

absl::StatusOr<StepRunner> StepRunner::Make(const TrainingStep& step, absl::string_view step_model,
                                            const Settings& settings) {
  Settings keeping = settings;
  for (const StepState& state : step.states) keeping.state[state.input] = state.output;
  if (step.update.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(Session session, Session::LoadBytes(step_model, keeping));
    StepRunner runner(std::move(session));
    ANEMONE_RETURN_IF_ERROR(runner.Begin(step));
    return runner;
  }
  const Graph& graph = step.model.graph;
  std::vector<bool> in_update(graph.nodes.size());
  for (NodeId id : step.update) in_update[id] = true;
  std::vector<NodeId> first;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!in_update[i]) first.push_back(static_cast<NodeId>(i));
  }
  Model typed = step.model;  // a crossing value needs its type
  ANEMONE_RETURN_IF_ERROR(Inference(typed, {}).InferGraph(typed.graph));
  SetProducers(typed.graph);
  std::vector<ValueId> first_outputs = Crossing(typed.graph, in_update), update_outputs;
  for (ValueId v : graph.outputs) {
    const NodeId maker = typed.graph.values[v].producer;
    (in_update[maker] ? update_outputs : first_outputs).push_back(v);
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::string model, PartModel(typed.graph, first, first_outputs));
  ANEMONE_ASSIGN_OR_RETURN(const std::string update,
                           PartModel(typed.graph, step.update, update_outputs));
  ANEMONE_ASSIGN_OR_RETURN(Session session, Session::LoadBytes(model, settings));
  StepRunner runner(std::move(session));
  keeping.policy = "cpu";
  ANEMONE_ASSIGN_OR_RETURN(runner.update_, Session::LoadBytes(update, keeping));
  for (const PortInfo& port : runner.session_.inputs()) {
    if (keeping.state.contains(port.name)) runner.read_first_.push_back(port.name);
  }
  ANEMONE_RETURN_IF_ERROR(runner.Begin(step));
  return runner;
}

absl::Status StepRunner::Begin(const TrainingStep& step) {
  for (const StepState& state : step.states) {
    ANEMONE_RETURN_IF_ERROR(SetState(state.input, state.first));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Tensor>> StepRunner::Run(
    const std::map<std::string, Tensor>& inputs) const {
  if (!update_) return session_.Run(inputs);
  std::map<std::string, Tensor> all = inputs;
  for (const std::string& name : read_first_) {
    ANEMONE_ASSIGN_OR_RETURN(all[name], update_->ReadState(name));
  }
  ANEMONE_ASSIGN_OR_RETURN(auto outputs, session_.Run(InputsOf(session_, all)));
  all.insert(outputs.begin(), outputs.end());
  ANEMONE_ASSIGN_OR_RETURN(auto updated, update_->Run(InputsOf(*update_, all)));
  outputs.merge(updated);
  return outputs;
}

}  // namespace anemone
