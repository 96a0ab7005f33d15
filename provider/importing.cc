#include "provider/importing.h"

#include <utility>

#include "base/status_macros.h"
#include "fallback/evaluator.h"
#include "kernels/custom_domain.h"
#include "provider/custom_ops.h"

namespace anemone {

absl::StatusOr<std::shared_ptr<const OrtRuntime>> OpenRuntime(int threads,
                                                              const std::string& library) {
  return OrtRuntime::Open({.threads = threads, .library = library, .operators = AddCustomOps});
}

absl::StatusOr<std::shared_ptr<const OrtRuntime>> LazyRuntime::Get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!runtime_) runtime_ = OpenRuntime(threads_, library_);
  return *runtime_;
}

ImportOptions ImportingOptions(const Settings& settings, std::shared_ptr<LazyRuntime> runtime) {
  RegisterCustomDomain();
  ImportOptions options{.dims = settings.dims, .shapes = settings.shapes};
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
