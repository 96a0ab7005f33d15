#include "fallback/ort_runtime.h"

#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "fallback/limited_allocator.h"
#include "onnx/onnx_pb.h"

namespace anemone {
namespace {

// The version of the C API that we call; newer versions of ONNX Runtime support it too.
constexpr int kApiVersion = 23;
static_assert(ORT_API_VERSION >= kApiVersion, "ONNX Runtime's C headers must be 1.23 or newer");

#ifdef __APPLE__
constexpr const char* kSystemNames[] = {"libonnxruntime.1.dylib", "libonnxruntime.dylib"};
#else
constexpr const char* kSystemNames[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
#endif

struct Library {
  const OrtApi* api;
  std::string version;
  std::string path;
};

// A library that the user named is the only candidate: if it cannot be opened, there is no other.
std::vector<std::string> Candidates(const std::string& chosen) {
  if (!chosen.empty()) return {chosen};
  if (std::string named = OrtLibraryOfEnvironment(); !named.empty()) return {std::move(named)};
  std::vector<std::string> candidates;
  if (*ANEMONE_ORT_LIBRARY_PATH != '\0') candidates.push_back(ANEMONE_ORT_LIBRARY_PATH);
  for (const char* name : kSystemNames) candidates.push_back(name);
  return candidates;
}

// NODELETE: ONNX Runtime's threads and thread-local objects outlive its environment.
absl::StatusOr<void*> OpenFirst(const std::vector<std::string>& candidates) {
  std::string tried;
  for (const std::string& candidate : candidates) {
    void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) return handle;
    const char* why = dlerror();
    absl::StrAppend(&tried, tried.empty() ? "" : "; ", why == nullptr ? candidate.c_str() : why);
  }
  return absl::NotFoundError(
      absl::StrCat("ONNX Runtime: no library could be opened (", tried, "); ", kOrtRemedy));
}

bool IsRecentEnough(const std::string& version) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return major > 1 || (major == 1 && minor >= kApiVersion);
}

absl::StatusOr<Library> FindLibrary(const std::string& chosen) {
  const std::vector<std::string> candidates = Candidates(chosen);
  ANEMONE_ASSIGN_OR_RETURN(void* const handle, OpenFirst(candidates));
  using GetBase = const OrtApiBase* (*)();
  void* const symbol = dlsym(handle, "OrtGetApiBase");
  if (symbol == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(candidates.size() == 1 ? candidates.front() : "libonnxruntime",
                     ": want ONNX Runtime, found a library without OrtGetApiBase; ", kOrtRemedy));
  }
  Library library{nullptr, "", ""};
  Dl_info place;
  if (dladdr(symbol, &place) != 0) library.path = place.dli_fname;
  const OrtApiBase* const base = reinterpret_cast<GetBase>(symbol)();
  library.version = base->GetVersionString();
  // Check the version first, since GetApi() of an older library prints to the terminal.
  if (IsRecentEnough(library.version)) library.api = base->GetApi(kApiVersion);
  if (library.api == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(library.path,
                                                      ": want ONNX Runtime 1.23 or newer, found ",
                                                      library.version, "; ", kOrtRemedy));
  }
  return library;
}

// Replaces ONNX Runtime's default logger, which prints colours and dates.
void Log(void*, OrtLoggingLevel, const char*, const char*, const char*, const char* message) {
  std::fprintf(stderr, "onnxruntime: %s\n", message);
}

// Creating an environment and releasing the last reference to it must not overlap, because ONNX
// Runtime does the latter outside its lock. It does not report references, so they are counted
// here.
struct Environments {
  std::mutex mutex;
  std::map<std::string, int> references;  // by library
  std::map<std::string, bool> limited;    // has RegisterLimitedAllocator(); by library
  static Environments& Get() {
    static auto& environments = *new Environments;
    return environments;
  }
};

// All runtimes, and the one that stays open.
struct Runtimes {
  using Key = std::tuple<pid_t, std::string, int, AddOrtOperators, int64_t>;
  std::mutex mutex;
  std::map<Key, std::weak_ptr<const OrtRuntime>> live;
  std::shared_ptr<const OrtRuntime> open;
  pid_t opened_by = 0;
  std::vector<std::shared_ptr<const OrtRuntime>> inherited;  // from parent processes

  void KeepOpen(pid_t process, std::shared_ptr<const OrtRuntime> runtime) {
    if (open == runtime) return;
    Close(process);
    open = std::move(runtime);
    opened_by = process;
  }

  // A parent's runtime is never closed here: that would wait for its threads.
  void Close(pid_t process) {
    if (opened_by != process) inherited.push_back(std::move(open));
    open.reset();
  }
};

// The smallest model: its output is its input.
std::string EmptyModel() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  model.mutable_graph()->set_name("empty");
  onnx::ValueInfoProto value;
  value.set_name("x");
  value.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  *model.mutable_graph()->add_input() = value;
  *model.mutable_graph()->add_output() = value;
  return model.SerializeAsString();
}

absl::StatusCode CodeOf(OrtErrorCode code) {
  switch (code) {
    case ORT_INVALID_ARGUMENT:
    case ORT_INVALID_GRAPH:
      return absl::StatusCode::kInvalidArgument;
    case ORT_NO_SUCHFILE:
    case ORT_NO_MODEL:
    case ORT_NOT_FOUND:
      return absl::StatusCode::kNotFound;
    case ORT_INVALID_PROTOBUF:
      return absl::StatusCode::kDataLoss;
    case ORT_NOT_IMPLEMENTED:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kFailedPrecondition;
  }
}

std::string OneLine(absl::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  absl::RemoveExtraAsciiWhitespace(&line);
  return line;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const OrtRuntime>> OrtRuntime::Open(
    const OrtRuntimeOptions& options) {
  if (options.threads < 0 || options.threads > kMostThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "threads: want 1 to ", kMostThreads, ", or 0 for all cores, found ", options.threads));
  }
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = options.threads > 0 ? options.threads : std::max(1, cores);
  ANEMONE_ASSIGN_OR_RETURN(const Library library, FindLibrary(options.library));

  static auto& all = *new Runtimes;
  const std::lock_guard<std::mutex> lock(all.mutex);
  const pid_t process = ::getpid();
  std::weak_ptr<const OrtRuntime>& entry =
      all.live[{process, library.path, threads, options.operators, options.memory_limit}];
  std::shared_ptr<const OrtRuntime> opened = entry.lock();
  if (opened == nullptr) {
    all.Close(process);
    OrtRuntimeOptions with = options;
    with.threads = threads;
    std::shared_ptr<OrtRuntime> runtime(
        new OrtRuntime(*library.api, library.version, library.path, with));
    ANEMONE_RETURN_IF_ERROR(runtime->CreateEnvironment());
    entry = opened = std::move(runtime);
  }
  if (options.stays_open) all.KeepOpen(process, opened);
  return opened;
}

std::string OrtLibraryOfEnvironment() {
  const char* const named = std::getenv("ANEMONE_ORT_LIBRARY");
  return named == nullptr ? "" : named;
}

std::string OrtRuntime::NamedLibrary(const std::string& library) {
  return Candidates(library).front();
}

OrtRuntime::OrtRuntime(const OrtApi& api, std::string version, std::string library_path,
                       OrtRuntimeOptions options)
    : api_(&api),
      version_(std::move(version)),
      library_path_(std::move(library_path)),
      options_(std::move(options)),
      env_(nullptr, api.ReleaseEnv),
      cpu_memory_(nullptr, api.ReleaseMemoryInfo) {}

OrtRuntime::~OrtRuntime() {
  if (env_ == nullptr) return;
  if (!process_.is_here()) {  // its release would wait for threads that do not exist here
    (void)env_.release();
    return;
  }
  Environments& environments = Environments::Get();
  const std::lock_guard<std::mutex> lock(environments.mutex);
  env_.reset();
  if (--environments.references[library_path_] == 0) environments.limited[library_path_] = false;
}

absl::Status OrtRuntime::CreateEnvironment() {
  OrtThreadingOptions* raw_pool = nullptr;
  ANEMONE_RETURN_IF_ERROR(ToStatus(api_->CreateThreadingOptions(&raw_pool), "environment"));
  const OrtPtr<OrtThreadingOptions> pool(raw_pool, api_->ReleaseThreadingOptions);
  // Operators run one after another in a session, so the pool between operators is not used.
  for (OrtStatus* status : {api_->SetGlobalIntraOpNumThreads(pool.get(), options_.threads),
                            api_->SetGlobalInterOpNumThreads(pool.get(), 1),
                            api_->SetGlobalSpinControl(pool.get(), 0)}) {
    ANEMONE_RETURN_IF_ERROR(ToStatus(status, "environment"));
  }
  Environments& environments = Environments::Get();
  const std::lock_guard<std::mutex> lock(environments.mutex);
  OrtEnv* env = nullptr;
  // Errors are returned as statuses, and the caller reports them. Only fatal errors, which end the
  // process, are logged.
  ANEMONE_RETURN_IF_ERROR(
      ToStatus(api_->CreateEnvWithCustomLoggerAndGlobalThreadPools(
                   Log, nullptr, ORT_LOGGING_LEVEL_FATAL, "anemone", pool.get(), &env),
               "environment"));
  env_.reset(env);
  // Without this, official builds send events about sessions to their maker.
  ANEMONE_RETURN_IF_ERROR(ToStatus(api_->DisableTelemetryEvents(env), "environment"));
  const bool is_first = environments.references[library_path_]++ == 0;
  if (options_.memory_limit > 0 && !std::exchange(environments.limited[library_path_], true)) {
    ANEMONE_RETURN_IF_ERROR(RegisterLimitedAllocator(*this, env));
  }
  has_global_pool_ = is_first && TryGlobalPool().ok();
  OrtMemoryInfo* memory = nullptr;
  ANEMONE_RETURN_IF_ERROR(ToStatus(
      api_->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory), "environment"));
  cpu_memory_.reset(memory);
  return absl::OkStatus();
}

absl::Status OrtRuntime::TryGlobalPool() const {
  ANEMONE_ASSIGN_OR_RETURN(const OrtPtr<OrtSessionOptions> options, NewSessionOptions(false));
  const std::string model = EmptyModel();
  OrtSession* session = nullptr;
  ANEMONE_RETURN_IF_ERROR(ToStatus(
      api_->CreateSessionFromArray(env_.get(), model.data(), model.size(), options.get(), &session),
      "global pool"));
  api_->ReleaseSession(session);
  return absl::OkStatus();
}

absl::StatusOr<OrtPtr<OrtSessionOptions>> OrtRuntime::NewSessionOptions(bool operators) const {
  constexpr absl::string_view kWhere = "session options";
  OrtSessionOptions* raw = nullptr;
  ANEMONE_RETURN_IF_ERROR(ToStatus(api_->CreateSessionOptions(&raw), kWhere));
  OrtPtr<OrtSessionOptions> options(raw, api_->ReleaseSessionOptions);
  if (operators && options_.operators != nullptr)
    ANEMONE_RETURN_IF_ERROR(ToStatus(options_.operators(*api_, raw), kWhere));
  if (options_.memory_limit > 0) {
    ANEMONE_RETURN_IF_ERROR(
        ToStatus(api_->AddSessionConfigEntry(raw, "session.use_env_allocators", "1"), kWhere));
  }
  if (has_global_pool_) {
    ANEMONE_RETURN_IF_ERROR(ToStatus(api_->DisablePerSessionThreads(raw), kWhere));
    return options;
  }
  for (OrtStatus* status :
       {api_->SetIntraOpNumThreads(raw, options_.threads), api_->SetInterOpNumThreads(raw, 1),
        api_->AddSessionConfigEntry(raw, "session.intra_op.allow_spinning", "0")}) {
    ANEMONE_RETURN_IF_ERROR(ToStatus(status, kWhere));
  }
  return options;
}

absl::Status OrtRuntime::ToStatus(OrtStatus* status, absl::string_view where) const {
  if (status == nullptr) return absl::OkStatus();
  const OrtPtr<OrtStatus> owned(status, api_->ReleaseStatus);
  const OrtErrorCode code = api_->GetErrorCode(status);
  // We have read the file, so what Protobuf refuses is nested deeper than its own limit.
  const absl::string_view remedy =
      code == ORT_INVALID_PROTOBUF ? "; export the model with less nesting" : "";
  return absl::Status(CodeOf(code), absl::StrCat(where, ": ONNX Runtime ", version_, ": ",
                                                 OneLine(api_->GetErrorMessage(status)), remedy));
}

}  // namespace anemone
