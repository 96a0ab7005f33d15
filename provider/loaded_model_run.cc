// Runs the model.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "provider/failed_node.h"
#include "provider/loaded_model.h"

namespace anemone {

absl::StatusOr<NamedValues> LoadedModel::Run(NamedValues given, Trace* trace, HazardLog* hazards,
                                             Scheduler::Resident* resident) const {
  if (sizes != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, sizes->Prepare(given));
    ANEMONE_ASSIGN_OR_RETURN(auto made, job.program->Run(job.inputs, trace, hazards));
    return Bucketed::Crop(job, std::move(made));
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<OnnxValue> values,
                           InputsInOrder(planned.model.graph, inputs, std::move(given)));
  absl::StatusOr<std::vector<OnnxValue>> results;
  const std::shared_ptr<Scheduler> current = scheduler.Get();
  const MemoryLimit limit(memory_limit, "a run");
  arena->execute(WithMemoryLimit(
      WithDeadline([&] { results = current->Run(std::move(values), trace, hazards, resident); })));
  if (!results.ok()) return OfUsersNode(results.status());
  NamedValues named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    named.emplace(outputs[i].name, std::move((*results)[i]));
  }
  return named;
}

// An error of ONNX Runtime about a node without a name, if ONNX Runtime alone has read the model:
// it is read for its nodes only now.
absl::Status LoadedModel::OfUsersNode(const absl::Status& status) const {
  if (!whole || !planned.model.graph.nodes.empty() || !LacksNodeName(status)) return status;
  const auto read = WholePlan();
  return read.ok() ? WithFailedNode(status, (*read)->model.graph) : status;
}

absl::StatusOr<std::vector<Hazard>> LoadedModel::FindHazards(
    const std::map<std::string, Tensor>& given) const {
  if (sizes != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, sizes->Prepare({given.begin(), given.end()}));
    std::map<std::string, Tensor> padded;
    for (const auto& [name, value] : job.inputs) padded[name] = value.tensor;
    return job.program->FindHazards(padded);
  }
  HazardLog log(planned.model, planned.plan);
  ANEMONE_RETURN_IF_ERROR(Run({given.begin(), given.end()}, nullptr, &log).status());
  return log.Take();
}

}  // namespace anemone
