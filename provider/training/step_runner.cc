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

}  // namespace

absl::StatusOr<std::string> StepModel(const Graph& graph) {
  ANEMONE_ASSIGN_OR_RETURN(const OnnxModel model, ToOnnx(graph, {.external_from = kNeverExternal}));
  return model.proto.SerializeAsString();
}

absl::StatusOr<StepRunner> StepRunner::Make(const TrainingStep& step, absl::string_view step_model,
                                            const Settings& settings) {
  const Graph& graph = step.model.graph;
  if (step.update.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(Session session, Session::LoadBytes(step_model, settings));
    return StepRunner(std::move(session));
  }
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
  Settings on_cpu = settings;
  on_cpu.policy = "cpu";
  ANEMONE_ASSIGN_OR_RETURN(runner.update_, Session::LoadBytes(update, on_cpu));
  return runner;
}

absl::StatusOr<std::map<std::string, Tensor>> StepRunner::Run(
    const std::map<std::string, Tensor>& inputs) const {
  const auto run = [&](const Session& session, const std::map<std::string, Tensor>& more)
      -> absl::StatusOr<std::map<std::string, Tensor>> {
    std::map<std::string, Tensor> given;
    for (const PortInfo& port : session.inputs()) {
      auto found = inputs.find(port.name);
      if (found == inputs.end()) found = more.find(port.name);
      if (found == more.end()) {
        return absl::InternalError(absl::StrCat("training: no value for '", port.name, "'"));
      }
      given[port.name] = found->second;
    }
    return session.Run(given);
  };
  ANEMONE_ASSIGN_OR_RETURN(auto outputs, run(session_, {}));
  if (!update_) return outputs;
  ANEMONE_ASSIGN_OR_RETURN(auto updated, run(*update_, outputs));
  outputs.merge(std::move(updated));
  return outputs;
}

}  // namespace anemone
