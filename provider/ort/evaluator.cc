#include "provider/ort/evaluator.h"

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "importer/opset/opsets.h"
#include "importer/write/to_onnx.h"
#include "kernels/custom_domain.h"
#include "provider/custom_ops.h"
#include "provider/ort/ort_attributes.h"
#include "provider/ort_status.h"

namespace anemone {
namespace {

class HostSession {
 public:
  explicit HostSession(const OrtApi& api)
      : api_(api),
        env_(nullptr, api.ReleaseEnv),
        options_(nullptr, api.ReleaseSessionOptions),
        memory_(nullptr, api.ReleaseMemoryInfo),
        session_(nullptr, api.ReleaseSession) {}

  absl::Status Load(const OnnxModel& model) {
    // Adds a reference to the process's environment, held only as long as this session.
    OrtEnv* env = nullptr;
    ANEMONE_RETURN_IF_ERROR(
        FromOrt(api_, api_.CreateEnv(ORT_LOGGING_LEVEL_FATAL, "anemone", &env)));
    env_.reset(env);
    OrtMemoryInfo* memory = nullptr;
    ANEMONE_RETURN_IF_ERROR(
        FromOrt(api_, api_.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory)));
    memory_.reset(memory);
    ANEMONE_RETURN_IF_ERROR(MakeOptions());
    const auto& opsets = model.proto.opset_import();
    const bool is_custom = std::any_of(opsets.begin(), opsets.end(), [](const auto& opset) {
      return opset.domain() == kCustomDomain;
    });
    if (is_custom) ANEMONE_RETURN_IF_ERROR(FromOrt(api_, AddCustomOps(api_, options_.get())));
    ANEMONE_RETURN_IF_ERROR(AddConstants(model));
    const std::string bytes = model.proto.SerializeAsString();
    OrtSession* session = nullptr;
    ANEMONE_RETURN_IF_ERROR(
        FromOrt(api_, api_.CreateSessionFromArray(env_.get(), bytes.data(), bytes.size(),
                                                  options_.get(), &session)));
    session_.reset(session);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<const char*>& names) {
    std::vector<OrtValue*> raw(names.size());
    const absl::Status status = FromOrt(api_, api_.Run(session_.get(), nullptr, nullptr, nullptr, 0,
                                                       names.data(), names.size(), raw.data()));
    std::vector<OrtOwned<OrtValue>> values;
    values.reserve(raw.size());
    for (OrtValue* value : raw) values.emplace_back(value, api_.ReleaseValue);
    ANEMONE_RETURN_IF_ERROR(status);
    std::vector<Tensor> tensors;
    for (const auto& value : values) {
      ANEMONE_ASSIGN_OR_RETURN(const Tensor tensor, ReadValue(api_, value.get()));
      tensors.push_back(tensor.Copy());
    }
    return tensors;
  }

 private:
  absl::Status MakeOptions() {
    OrtSessionOptions* options = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.CreateSessionOptions(&options)));
    options_.reset(options);
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.SetIntraOpNumThreads(options, 1)));
    ANEMONE_RETURN_IF_ERROR(
        FromOrt(api_, api_.SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_FATAL)));
    return FromOrt(api_, api_.SetSessionGraphOptimizationLevel(options, ORT_DISABLE_ALL));
  }

  // Passes large constants without a copy.
  absl::Status AddConstants(const OnnxModel& model) {
    std::vector<const char*> names;
    std::vector<const OrtValue*> values;
    for (const ExternalConstant& constant : model.external) {
      const Tensor& t = constant.tensor;
      if (t.type() >
          DataType::kInt4) {  // versions of ONNX Runtime differ in the numbers of later types
        return absl::UnimplementedError(absl::StrCat("constant '", constant.name,
                                                     "': ", DataTypeName(t.type()),
                                                     " cannot be passed to ONNX Runtime"));
      }
      OrtValue* value = nullptr;
      ANEMONE_RETURN_IF_ERROR(
          FromOrt(api_, api_.CreateTensorWithDataAsOrtValue(
                            memory_.get(), const_cast<std::byte*>(t.bytes().data()),
                            t.bytes().size(), t.dims().data(), t.dims().size(),
                            static_cast<ONNXTensorElementDataType>(t.type()), &value)));
      constants_.emplace_back(value, api_.ReleaseValue);
      names.push_back(constant.name.c_str());
      values.push_back(value);
    }
    if (names.empty()) return absl::OkStatus();
    return FromOrt(api_, api_.AddExternalInitializers(options_.get(), names.data(), values.data(),
                                                      names.size()));
  }

  const OrtApi& api_;
  OrtOwned<OrtEnv> env_;
  OrtOwned<OrtSessionOptions> options_;
  OrtOwned<OrtMemoryInfo> memory_;
  std::vector<OrtOwned<OrtValue>> constants_;
  OrtOwned<OrtSession> session_;
};

absl::StatusOr<std::vector<Tensor>> Evaluate(const OrtApi& api, const Graph& graph,
                                             const std::vector<ValueId>& wanted) {
  std::vector<ValueId> computed;
  std::vector<const char*> names;
  for (ValueId id : wanted) {
    if (graph.values[id].constant) continue;
    computed.push_back(id);
    names.push_back(graph.values[id].name.c_str());
  }
  std::vector<Tensor> results;
  if (!computed.empty()) {
    std::vector<NodeId> nodes(graph.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    ToOnnxOptions as;
    ANEMONE_ASSIGN_OR_RETURN(as.opsets, CommonOpsets(graph, nodes));
    ANEMONE_ASSIGN_OR_RETURN(const OnnxModel model, ToOnnx(graph, nodes, {}, computed, as));
    HostSession session(api);
    ANEMONE_RETURN_IF_ERROR(session.Load(model));
    ANEMONE_ASSIGN_OR_RETURN(results, session.Run(names));
  }
  std::vector<Tensor> tensors;
  size_t next = 0;
  for (ValueId id : wanted) {
    const std::optional<Tensor>& known = graph.values[id].constant;
    tensors.push_back(known ? *known : results[next++]);
  }
  return tensors;
}

}  // namespace

Evaluator MakeHostEvaluator(const OrtApi& api) {
  return [&api](const Graph& graph, const std::vector<ValueId>& wanted) {
    return Evaluate(api, graph, wanted);
  };
}

}  // namespace anemone
