#include "fallback/evaluator.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "fallback/cpu_session.h"
#include "importer/opset/opsets.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

absl::StatusOr<std::vector<CpuValue>> RunOnce(const std::shared_ptr<const OrtRuntime>& runtime,
                                              const Graph& graph,
                                              absl::Span<const ValueId> wanted) {
  std::vector<NodeId> nodes(graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  ToOnnxOptions as;
  ANEMONE_ASSIGN_OR_RETURN(as.opsets, CommonOpsets(graph, nodes));
  ANEMONE_ASSIGN_OR_RETURN(OnnxModel model, ToOnnx(graph, nodes, {}, wanted, as));
  CpuSessionOptions options;
  options.optimization = OrtOptimization::kNone;
  options.memory_pattern = false;
  options.arena = false;
  options.prepack = false;
  const std::string where = absl::StrCat("constant ", ShortLabel(graph, graph.nodes.front()));
  const MemoryLimit::Pause taken;  // the importer takes the results before
  ANEMONE_ASSIGN_OR_RETURN(const auto session,
                           CpuSession::FromModel(runtime, where, std::move(model), options));
  return session->Run({}, std::vector<CpuOutput>(wanted.size()));
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const std::shared_ptr<const OrtRuntime>& runtime,
                                             const Graph& graph,
                                             const std::vector<ValueId>& wanted) {
  std::vector<ValueId> computed;
  for (const ValueId id : wanted) {
    if (!graph.values[id].constant.has_value()) computed.push_back(id);
  }
  std::vector<CpuValue> results;
  if (!computed.empty()) {
    if (graph.nodes.empty()) {
      return absl::InvalidArgumentError("constants: want nodes that compute them, found none");
    }
    ANEMONE_ASSIGN_OR_RETURN(results, RunOnce(runtime, graph, computed));
  }
  std::vector<Tensor> tensors;
  size_t next = 0;
  for (const ValueId id : wanted) {
    if (graph.values[id].constant.has_value()) {
      tensors.push_back(*graph.values[id].constant);
      continue;
    }
    ANEMONE_ASSIGN_OR_RETURN(Tensor tensor, results[next++].ToTensor());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

Evaluator MakeEvaluator(std::shared_ptr<const OrtRuntime> runtime) {
  return [runtime = std::move(runtime)](const Graph& graph, const std::vector<ValueId>& wanted) {
    return Evaluate(runtime, graph, wanted);
  };
}

}  // namespace anemone
