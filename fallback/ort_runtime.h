// fallback/ort_runtime.h: ONNX Runtime, found and opened at run time, never linked.
//
//   ASSIGN_OR_RETURN(auto runtime, OrtRuntime::Open({.threads = 4}));
//   runtime->version();                                    // "1.31.1"
//
// The library is the first that is named: OrtRuntimeOptions::library, the environment's
// ANEMONE_ORT_LIBRARY, the one set-up found, else libonnxruntime of the system. Any 1.23 or newer
// will do. It stays loaded until the process ends.
//
// Threads. ONNX Runtime has one environment per process and library, and its thread pool is made
// with it. So the first live runtime of a library gets the environment's global pool, which all
// its sessions share; it has `threads` threads, callers included, and never spins. Opening with
// the same number (and operators) again gives the same runtime. While it lives, another number
// gives a runtime whose sessions each have a pool of that number: the budget holds, but for each
// session. The same goes for a program that made an environment with that library before us.
#ifndef ANEMONE_FALLBACK_ORT_RUNTIME_H_
#define ANEMONE_FALLBACK_ORT_RUNTIME_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct OrtApi;
struct OrtEnv;
struct OrtMemoryInfo;
struct OrtSessionOptions;
struct OrtStatus;

namespace anemone {

// What ONNX Runtime's create and release functions come in pairs for.
template <class T>
using OrtPtr = std::unique_ptr<T, void (*)(T*)>;

// Adds operators of the caller's own to what a session knows; null, or a status as a C API has it.
using AddOrtOperators = OrtStatus* (*)(const OrtApi&, OrtSessionOptions*);

struct OrtRuntimeOptions {
  int threads = 0;      // 0: one for each core; at most 1024
  std::string library;  // a path; "": look for it
  AddOrtOperators operators = nullptr;
};

class OrtRuntime {
 public:
  // Errors: kNotFound (no library), kFailedPrecondition (not ONNX Runtime, or too old),
  // kInvalidArgument (fewer than 0 or more than 1024 threads).
  static absl::StatusOr<std::shared_ptr<const OrtRuntime>> Open(const OrtRuntimeOptions& options);

  OrtRuntime(const OrtRuntime&) = delete;
  OrtRuntime& operator=(const OrtRuntime&) = delete;
  ~OrtRuntime();

  const std::string& version() const { return version_; }
  const std::string& library_path() const { return library_path_; }
  int threads() const { return threads_; }

  // False if each session has a pool of its own.
  bool has_global_pool() const { return has_global_pool_; }

  const OrtApi& api() const { return *api_; }
  const OrtEnv* env() const { return env_.get(); }
  const OrtMemoryInfo* cpu_memory() const { return cpu_memory_.get(); }

  // Session options with this runtime's threads and operators.
  absl::StatusOr<OrtPtr<OrtSessionOptions>> NewSessionOptions() const;

  // Takes `status`, which is null for success. The message is one line: "WHERE: ONNX Runtime
  // 1.31.1: MESSAGE".
  absl::Status ToStatus(OrtStatus* status, absl::string_view where) const;

 private:
  OrtRuntime(const OrtApi& api, std::string version, std::string library_path, int threads,
             AddOrtOperators operators);
  absl::Status CreateEnvironment();
  // Whether a session may use the environment's pool: whoever made it may have given it none.
  absl::Status TryGlobalPool() const;

  const OrtApi* api_;
  const std::string version_;
  const std::string library_path_;
  const int threads_;
  const AddOrtOperators operators_;
  bool has_global_pool_ = true;
  OrtPtr<OrtEnv> env_;
  OrtPtr<OrtMemoryInfo> cpu_memory_;
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_ORT_RUNTIME_H_
