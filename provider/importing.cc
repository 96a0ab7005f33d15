#include "provider/importing.h"

#include <utility>

#include "fallback/evaluator.h"
#include "kernels/custom_domain.h"
#include "provider/custom_ops.h"

namespace anemone {

absl::StatusOr<std::shared_ptr<const OrtRuntime>> OpenRuntime(int threads) {
  return OrtRuntime::Open({.threads = threads, .operators = AddCustomOps});
}

ImportOptions ImportingOptions(std::map<std::string, int64_t> dims,
                               std::map<std::string, std::vector<int64_t>> shapes,
                               std::shared_ptr<const OrtRuntime> runtime) {
  RegisterCustomDomain();
  ImportOptions options{.dims = std::move(dims), .shapes = std::move(shapes)};
  if (runtime != nullptr) options.evaluate = MakeEvaluator(std::move(runtime));
  return options;
}

}  // namespace anemone
