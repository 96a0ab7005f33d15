// `anemone doctor`: checks whether this machine has everything that Anemone needs, and prints
// remedies. The plugin is tested as a program would use it: ONNX Runtime loads it and lists its
// devices.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "anemone/version.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "fallback/ort_runtime.h"
#include "partitioner/plan_json.h"
#include "provider/importing.h"
#include "provider/new_file.h"
#include "provider/package/program_cache.h"
#include "tools/command/commands.h"
#include "tools/command/self_test.h"
#include "tools/compare/child_process.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

constexpr char kProvider[] = "ANEExecutionProvider";
constexpr char kRegistration[] = "anemone-doctor";
#ifdef __APPLE__
constexpr char kPluginFile[] = "libonnxruntime_ane_ep.dylib";
#else
constexpr char kPluginFile[] = "libonnxruntime_ane_ep.so";
#endif

struct Finding {
  std::string name;
  bool well = true;
  std::string text;
  std::string remedy;  // if not well
};

Finding Well(const char* name, std::string text) { return {name, true, std::move(text), ""}; }
// The remedy in a status's message follows the last semicolon.
Finding Ill(const char* name, absl::string_view message) {
  const size_t at = message.rfind("; ");
  if (at == absl::string_view::npos) return {name, false, std::string(message), "see the message"};
  return {name, false, std::string(message.substr(0, at)), std::string(message.substr(at + 2))};
}

std::string SizeText(double bytes) {
  if (bytes < 1e3) return absl::StrFormat("%.0f bytes", bytes);
  if (bytes < 1e6) return absl::StrFormat("%.1f kB", bytes / 1e3);
  if (bytes < 1e9) return absl::StrFormat("%.1f MB", bytes / 1e6);
  return absl::StrFormat("%.1f GB", bytes / 1e9);
}

// Finds the plugin next to the command (in a build) or in ../lib (in an installation).
absl::StatusOr<std::string> FindPlugin(const std::string& named) {
  std::error_code error;
  if (!named.empty()) {
    if (fs::exists(named, error)) return fs::absolute(named, error).string();
    return absl::NotFoundError(
        absl::StrCat(named, ": no such file; give the path of the plugin's library"));
  }
  const fs::path folder = ProgramPath().parent_path();
  for (const fs::path& place : {folder / kPluginFile, folder.parent_path() / "lib" / kPluginFile}) {
    if (fs::exists(place, error)) return place.string();
  }
  return absl::NotFoundError(
      absl::StrCat(kPluginFile,
                   ": neither next to this command nor in ../lib; build the target "
                   "onnxruntime_ane_ep, or give the library with --plugin"));
}

// Why the library cannot be loaded; empty if it can. The message is the dynamic loader's, because
// ONNX Runtime does not always report it.
std::string LoadingProblem(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::StrCat(why == nullptr ? path : why,
                        "; install the library that it names, or reinstall the plugin");
  }
  for (const char* symbol : {"CreateEpFactories", "ReleaseEpFactory"}) {
    if (dlsym(library, symbol) != nullptr) continue;
    return absl::StrCat(path, ": exports no ", symbol,
                        ", so it is not a plugin; give another file");
  }
  return "";
}

// LoadingProblem() in a child process, because a damaged library may crash the process that loads
// it. Must be called before there are threads.
std::string LoadingProblemInChild(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return "cannot create a pipe; close other programs";
  const pid_t child = fork();
  if (child == 0) {
    const std::string problem = LoadingProblem(path);
    _exit(write(ends[1], problem.data(), problem.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string problem;
  char piece[512];
  for (ssize_t got = 0; child > 0 && (got = read(ends[0], piece, sizeof(piece))) > 0;) {
    problem.append(piece, static_cast<size_t>(got));
  }
  close(ends[0]);
  if (child < 0) return "cannot start a process; close other programs";
  int how = 0;
  waitpid(child, &how, 0);
  if (how == 0) return problem;
  return absl::StrCat(path, ": loading it ends the process",
                      WIFSIGNALED(how) ? absl::StrCat(" by signal ", WTERMSIG(how)) : "",
                      "; reinstall the plugin");
}

std::string DeviceText(const OrtApi& api, const OrtEpDevice* device) {
  const OrtHardwareDevice* hardware = api.EpDevice_Device(device);
  const OrtKeyValuePairs* metadata = api.EpDevice_EpMetadata(device);
  const char* engine = metadata == nullptr ? nullptr : api.GetKeyValue(metadata, "engine");
  constexpr const char* kTypes[] = {"CPU", "GPU", "NPU"};
  const auto type = static_cast<size_t>(api.HardwareDevice_Type(hardware));
  return absl::StrCat(type < std::size(kTypes) ? kTypes[type] : "another device", " (",
                      engine == nullptr ? "unknown" : engine, " engine)");
}

// Our devices, as ONNX Runtime tells them of the plugin, which it loads and unloads.
absl::StatusOr<std::vector<std::string>> Registered(const OrtRuntime& runtime,
                                                    const std::string& plugin) {
  const OrtApi& api = runtime.api();
  auto* env = const_cast<OrtEnv*>(runtime.env());
  ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(
      api.RegisterExecutionProviderLibrary(env, kRegistration, plugin.c_str()), plugin));
  const absl::Cleanup unregister = [&] {
    if (OrtStatus* status = api.UnregisterExecutionProviderLibrary(env, kRegistration)) {
      api.ReleaseStatus(status);  // the process ends soon
    }
  };
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.GetEpDevices(env, &devices, &count), plugin));
  std::vector<std::string> ours;
  for (size_t i = 0; i < count; ++i) {
    if (absl::string_view(api.EpDevice_EpName(devices[i])) == kProvider) {
      ours.push_back(DeviceText(api, devices[i]));
    }
  }
  return ours;
}

// Registers a plugin that can be loaded, and lists its devices.
std::vector<Finding> FindDevices(const OrtRuntime* runtime, const std::string& plugin) {
  if (runtime == nullptr) {
    return {Ill("plugin", absl::StrCat(plugin,
                                       ": loads, but there is no ONNX Runtime to register "
                                       "it with; see the line onnxruntime"))};
  }
  const auto devices = Registered(*runtime, plugin);
  if (!devices.ok()) {
    return {{"plugin", false, std::string(devices.status().message()),
             "rebuild it, or try a newer onnxruntime"}};
  }
  std::vector<Finding> findings = {
      Well("plugin", absl::StrCat(plugin, " registers as ", kProvider))};
  for (const std::string& device : *devices) findings.push_back(Well("device", device));
  if (devices->empty()) {
    findings.push_back(
        Ill("device",
            "ONNX Runtime lists no device of the plugin, because it reported no CPU to "
            "it; try a newer onnxruntime"));
  }
  return findings;
}

Finding FindRuntime(const absl::StatusOr<std::shared_ptr<const OrtRuntime>>& runtime) {
  if (!runtime.ok()) return Ill("onnxruntime", runtime.status().message());
  return Well("onnxruntime", absl::StrCat((*runtime)->version(), ", ", (*runtime)->library_path()));
}

bool CanWriteTo(const std::string& folder) {
  const auto probe = NewFile::Make(absl::StrCat(folder, "/.doctor"));  // never put into place
  return probe.ok() && (*probe)->Write("x").ok();
}

// Checks that files can be created in the cache folder, and counts its entries.
Finding FindCache() {
  constexpr char kRemedy[] = "set XDG_CACHE_HOME to a writable folder";
  const std::string folder = DefaultCacheFolder();
  if (folder.empty() && std::getenv("ANEMONE_PROGRAM_CACHE") != nullptr) {
    return Well("cache", "off, because ANEMONE_PROGRAM_CACHE is empty");
  }
  if (folder.empty()) {
    return {"cache", false, "neither XDG_CACHE_HOME nor HOME names a folder", kRemedy};
  }
  const auto cache = ProgramCache::Open({.folder = folder});
  if (!cache.ok()) return {"cache", false, std::string(cache.status().message()), kRemedy};
  if (!CanWriteTo(folder)) {
    return {"cache", false, absl::StrCat(folder, ": is not writable"), kRemedy};
  }
  std::error_code error;
  int64_t entries = 0;
  double bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    ++entries;
    bytes += static_cast<double>(entry.file_size(error));
  }
  const fs::space_info space = fs::space(folder, error);
  return Well("cache",
              absl::StrCat(folder, ": writable, ", entries, entries == 1 ? " entry" : " entries",
                           entries == 0 ? "" : absl::StrCat(" of ", SizeText(bytes)), "; ",
                           SizeText(static_cast<double>(space.available)), " free"));
}

// A row of /proc/meminfo, in bytes; 0 if it is missing.
double MemoryRow(absl::string_view name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kilobytes = 0;
    if (words.size() > 1 && words[0] == name && absl::SimpleAtoi(words[1], &kilobytes)) {
      return 1024.0 * static_cast<double>(kilobytes);
    }
  }
  return 0;
}

Finding FindMemory() {
  constexpr double kLeast = 512e6;  // the small models of models/ run in less
  const double free = MemoryRow("MemAvailable:");
  if (free == 0) return Well("memory", "not reported by this system");
  const std::string text =
      absl::StrCat(SizeText(free), " free of ", SizeText(MemoryRow("MemTotal:")), ", ",
                   std::thread::hardware_concurrency(), " cores");
  if (free < kLeast) return Ill("memory", absl::StrCat(text, "; close other programs"));
  return Well("memory", text);
}

Json ToJson(const std::vector<Finding>& findings, bool well) {
  Json checks = Json::array();
  for (const Finding& f : findings) {
    checks.push_back(
        {{"name", f.name}, {"well", f.well}, {"text", f.text}, {"remedy", OrNull(f.remedy)}});
  }
  return {{"schema", 1}, {"version", kVersion}, {"well", well}, {"checks", std::move(checks)}};
}

}  // namespace

int DoctorCommand(const Options& options) {
  if (!options.self_test.empty()) return SelfTest(options);
  const auto plugin = FindPlugin(options.plugin);
  const std::string problem =
      plugin.ok() ? LoadingProblemInChild(*plugin) : std::string(plugin.status().message());
  const auto runtime = OpenRuntime(1);
  std::vector<Finding> findings = {FindRuntime(runtime)};
  if (problem.empty()) {
    const auto devices = FindDevices(runtime.ok() ? runtime->get() : nullptr, *plugin);
    findings.insert(findings.end(), devices.begin(), devices.end());
  } else {
    findings.push_back(Ill("plugin", problem));
  }
  findings.push_back(FindCache());
  findings.push_back(FindMemory());
  bool well = true;
  for (const Finding& f : findings) well = well && f.well;
  if (options.json) {
    PrintJson(ToJson(findings, well));
    return well ? kExitDone : kExitRefused;
  }
  for (const Finding& f : findings) {
    std::printf("%-4s %-12s %s\n", f.well ? "ok" : "BAD", f.name.c_str(),
                Printable(f.text).c_str());
    if (!f.well) std::printf("     %-12s remedy: %s\n", "", Printable(f.remedy).c_str());
  }
  return well ? kExitDone : kExitRefused;
}

}  // namespace anemone
