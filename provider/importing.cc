#include "provider/importing.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "fallback/evaluator.h"
#include "kernels/custom_domain.h"
#include "partitioner/plan_groups.h"
#include "provider/custom_ops.h"

namespace anemone {

absl::StatusOr<std::shared_ptr<const OrtRuntime>> OpenRuntime(int threads,
                                                              const std::string& library,
                                                              int64_t memory_limit) {
  return OrtRuntime::Open({.threads = threads,
                           .library = library,
                           .operators = AddCustomOps,
                           .stays_open = true,
                           .memory_limit = memory_limit});
}

absl::StatusOr<std::shared_ptr<const OrtRuntime>> LazyRuntime::Get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!runtime_) runtime_ = OpenRuntime(threads_, library_, memory_limit_);
  return *runtime_;
}

void LazyRuntime::ExplainMissing(Model& model) const {
  if (!runtime_ || runtime_->ok()) return;
  const size_t erased = std::erase_if(
      model.warnings, [](const ImportWarning& warning) { return warning.rule == "not-folded"; });
  if (erased == 0) return;
  const std::string why(runtime_->status().message());
  model.warnings.push_back(
      {kRuntimeMissing, "ONNX Runtime",
       absl::StrCat("constants that ", erased, erased == 1 ? " node computes" : " nodes compute",
                    " are unknown: ", absl::StripSuffix(why, absl::StrCat("; ", kOrtRemedy))),
       kOrtRemedy});
}

ImportOptions ImportingOptions(const Settings& settings, std::shared_ptr<LazyRuntime> runtime) {
  RegisterCustomDomain();
  ImportOptions options{.dims = settings.dims,
                        .shapes = settings.shapes,
                        .overridable = settings.overridable,
                        .last_logits = settings.last_logits};
  for (const auto& [past, present] : settings.state) options.given_inputs.push_back(past);
  if (runtime == nullptr) return options;
  options.evaluate =
      [runtime = std::move(runtime)](
          const Graph& part,
          const std::vector<ValueId>& outputs) -> absl::StatusOr<std::vector<Tensor>> {
    ANEMONE_ASSIGN_OR_RETURN(auto opened, runtime->Get());
    return MakeEvaluator(std::move(opened))(part, outputs);
  };
  return options;
}

}  // namespace anemone
