// provider/importing.h: what every way in needs before a model is imported: ONNX Runtime, and the
// operators of the domain ai.anemone, known to it and to ONNX's registry.
#ifndef ANEMONE_PROVIDER_IMPORTING_H_
#define ANEMONE_PROVIDER_IMPORTING_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "fallback/ort_runtime.h"
#include "importer/importer.h"

namespace anemone {

// As OrtRuntime::Open(); its sessions know the domain.
absl::StatusOr<std::shared_ptr<const OrtRuntime>> OpenRuntime(int threads,
                                                              const std::string& library = "");

// ONNX Runtime, opened by the first who needs it: it takes some 25 MB, and many a model runs
// without. From one thread at a time.
class LazyRuntime {
 public:
  explicit LazyRuntime(int threads, std::string library = "")
      : threads_(threads), library_(std::move(library)) {}
  absl::StatusOr<std::shared_ptr<const OrtRuntime>> Get();

 private:
  int threads_;
  std::string library_;
  std::optional<absl::StatusOr<std::shared_ptr<const OrtRuntime>>> runtime_;
};

// Import options with the settings' dims and shapes. Where ONNX Runtime cannot be opened, or is null, fewer
// constants are folded.
ImportOptions ImportingOptions(const Settings& settings, std::shared_ptr<LazyRuntime> runtime);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_IMPORTING_H_
