// fallback/ort_runtime.h: finds ONNX Runtime's library and opens it at run time; it is never
// linked.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto runtime, OrtRuntime::Open({.threads = 4}));
//   runtime->version();  // "1.31.1"
//
// The library is the first of these that is named: OrtRuntimeOptions::library, the environment
// variable ANEMONE_ORT_LIBRARY, the library that set-up found, libonnxruntime of the system. Any
// version from 1.23 on works. It stays loaded until the process ends.
//
// Threads. ONNX Runtime has one environment per process and library, created together with its
// thread pool. So all sessions of the first live runtime of a library share that global pool. It
// has `threads` threads, including the caller's, and never spins. Opening again with the same
// number (and operators) returns the same runtime. Opening with another number while the first
// runtime is alive returns a runtime in which each session has a pool of that number: the limit
// then holds for each session, not for all of them. The same happens if the program created an
// environment with that library before, and in a child process (fork) of one that opened a runtime:
// threads are not inherited.
#ifndef ANEMONE_FALLBACK_ORT_RUNTIME_H_
#define ANEMONE_FALLBACK_ORT_RUNTIME_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/own_process.h"

struct OrtApi;
struct OrtEnv;
struct OrtMemoryInfo;
struct OrtSessionOptions;
struct OrtStatus;

namespace anemone {

// The library that the environment variable ANEMONE_ORT_LIBRARY names; "" if it names none.
std::string OrtLibraryOfEnvironment();

// What to do if no library can be opened.
inline constexpr char kOrtRemedy[] =
    "run tools/quickstart, or set ANEMONE_ORT_LIBRARY to the path of a libonnxruntime.so, 1.23 or "
    "newer";

// An object of ONNX Runtime with its release function.
template <class T>
using OrtPtr = std::unique_ptr<T, void (*)(T*)>;

// Adds the caller's custom operators to a session. Returns null for success, like the C API.
using AddOrtOperators = OrtStatus* (*)(const OrtApi&, OrtSessionOptions*);

struct OrtRuntimeOptions {
  int threads = 0;      // 0: one for each core; at most 1024
  std::string library;  // a path; if empty, it is searched for
  AddOrtOperators operators = nullptr;
  // Stay open after the last user has gone, until one with other options is opened. Opening takes
  // longer than loading a small model.
  bool stays_open = false;
  // Of what one session makes while it is opened, and in each run (base/memory_limit.h), in bytes.
  // Memory that was freed is given back to the system at once, which costs time. 0: no limit.
  int64_t memory_limit = 0;
};

class OrtRuntime {
 public:
  // Errors: kNotFound (no library), kFailedPrecondition (not ONNX Runtime, or too old),
  // kInvalidArgument (fewer than 0 or more than 1024 threads).
  static absl::StatusOr<std::shared_ptr<const OrtRuntime>> Open(const OrtRuntimeOptions& options);

  // The library that Open() tries first, given OrtRuntimeOptions::library. It is not opened.
  static std::string NamedLibrary(const std::string& library);

  OrtRuntime(const OrtRuntime&) = delete;
  OrtRuntime& operator=(const OrtRuntime&) = delete;
  ~OrtRuntime();

  const std::string& version() const { return version_; }
  const std::string& library_path() const { return library_path_; }
  int threads() const { return options_.threads; }
  int64_t memory_limit() const { return options_.memory_limit; }

  // False if each session has a separate pool.
  bool has_global_pool() const { return has_global_pool_; }

  const OrtApi& api() const { return *api_; }
  const OrtEnv* env() const { return env_.get(); }
  const OrtMemoryInfo* cpu_memory() const { return cpu_memory_.get(); }

  // Session options with this runtime's threads, and its operators if the session needs them. A
  // session takes about a millisecond to learn them.
  absl::StatusOr<OrtPtr<OrtSessionOptions>> NewSessionOptions(bool operators) const;

  // Takes ownership of `status` (null: success). The message is one line: "WHERE: ONNX Runtime
  // 1.31.1: MESSAGE".
  absl::Status ToStatus(OrtStatus* status, absl::string_view where) const;

 private:
  OrtRuntime(const OrtApi& api, std::string version, std::string library_path,
             OrtRuntimeOptions options);
  absl::Status CreateEnvironment();
  // Ok if sessions can use the environment's pool. The program may have created the environment
  // without one.
  absl::Status TryGlobalPool() const;

  const OrtApi* api_;
  const std::string version_;
  const std::string library_path_;
  const OrtRuntimeOptions options_;
  bool has_global_pool_ = true;
  const OwnProcess process_;
  OrtPtr<OrtEnv> env_;
  OrtPtr<OrtMemoryInfo> cpu_memory_;
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_ORT_RUNTIME_H_
