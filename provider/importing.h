// provider/importing.h: what every entry point needs before it imports a model: ONNX Runtime, and
// the operators of the domain ai.anemone, registered with ONNX Runtime and with ONNX.
#ifndef ANEMONE_PROVIDER_IMPORTING_H_
#define ANEMONE_PROVIDER_IMPORTING_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "fallback/ort_runtime.h"
#include "importer/importer.h"

namespace anemone {

// Like OrtRuntime::Open(). Sessions of the runtime know the operators of ai.anemone.
absl::StatusOr<std::shared_ptr<const OrtRuntime>> OpenRuntime(int threads,
                                                              const std::string& library = "",
                                                              int64_t memory_limit = 0);

// Opens ONNX Runtime on first use, because it takes about 25 MB and many models do not need it.
// Thread-safe.
class LazyRuntime {
 public:
  explicit LazyRuntime(int threads, std::string library = "", int64_t memory_limit = 0)
      : threads_(threads), library_(std::move(library)), memory_limit_(memory_limit) {}
  absl::StatusOr<std::shared_ptr<const OrtRuntime>> Get();

  // If constants of the model could not be computed because ONNX Runtime is missing: replaces the
  // warnings about them by one, kRuntimeMissing.
  void ExplainMissing(Model& model) const;

 private:
  int threads_;
  std::string library_;
  int64_t memory_limit_;
  std::mutex mutex_;
  std::optional<absl::StatusOr<std::shared_ptr<const OrtRuntime>>> runtime_;
};

// Import options with the settings' dims, shapes, and inputs that stay inputs. If ONNX Runtime
// cannot be opened or `runtime` is null, fewer constants are folded.
ImportOptions ImportingOptions(const Settings& settings, std::shared_ptr<LazyRuntime> runtime);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_IMPORTING_H_
