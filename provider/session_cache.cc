#include "provider/session_cache.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "fallback/ort_runtime.h"
#include "importer/read/model_files.h"
#include "provider/devices.h"
#include "provider/settings.h"

namespace anemone {
namespace {

Tensor ViewOf(absl::Span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  return Tensor::View(DataType::kUInt8, {static_cast<int64_t>(bytes.size())}, bytes,
                      std::move(owner));
}

// Which ONNX Runtime folds constants and runs CPU segments.
std::string RuntimeIdentity(const Settings& settings) {
  std::string library = OrtRuntime::NamedLibrary(settings.ort_library);
  struct stat info = {};
  if (::stat(library.c_str(), &info) != 0) return library;
  return absl::StrCat(library, " ", info.st_size, " ", info.st_mtime);
}

absl::StatusOr<CacheKey> KeyOf(const Settings& settings, const std::vector<Tensor>& sources) {
  CacheKey key;
  key.Add("session", "7");  // the version of session_package.h
  for (const Setting& setting : AllSettings()) {
    if (setting.key != nullptr) key.Add(setting.name, setting.key(settings));
  }
  if (settings.memory_limit > 0) key.Add("need", "");  // the entry has PlanFacts::cpu_need
  if (!settings.limits.empty()) key.Add("limits", LimitsText(settings));
  // A model may be planned so that its state is written where it is (state_in_place.h).
  for (const auto& [past, present] : settings.state) {
    key.Add("state", absl::StrCat(past, "=", present));
  }
  // Another device than the software engine runs no loops (engine/loops.h).
  if (!IsSoftwareOnly(settings)) key.Add("loops", "unrolled");
  key.Add("runtime", RuntimeIdentity(settings));
  for (const Tensor& source : sources) {
    ANEMONE_RETURN_IF_ERROR(key.AddInTime("file", BytesText(source)));
  }
  return key;
}

}  // namespace

std::vector<Tensor> SourcesOf(absl::Span<const FileOfModel> files) {
  std::vector<Tensor> sources;
  for (const FileOfModel& file : files) {
    if (file.contents == nullptr) return {};
    sources.push_back(ViewOf(file.contents->bytes(), file.contents));
  }
  return sources;
}

absl::StatusOr<std::shared_ptr<SessionCache>> SessionCache::Open(
    const Settings& settings, absl::Span<const FileOfModel> files,
    std::shared_ptr<const std::string> bytes) {
  if (!settings.cache || settings.hazards) return nullptr;
  const std::string folder = DefaultCacheFolder();
  if (folder.empty()) return nullptr;
  std::vector<Tensor> sources;
  if (bytes == nullptr) {
    sources = SourcesOf(files);
  } else {
    const auto* data = reinterpret_cast<const std::byte*>(bytes->data());
    sources.push_back(ViewOf({data, bytes->size()}, bytes));
  }
  if (sources.empty()) return nullptr;
  auto cache = ProgramCache::Open({.folder = folder});
  if (!cache.ok()) return nullptr;
  ANEMONE_ASSIGN_OR_RETURN(CacheKey key, anemone::KeyOf(settings, sources));
  return std::shared_ptr<SessionCache>(
      new SessionCache(*std::move(cache), std::move(sources), std::move(key)));
}

CacheKey SessionCache::KeyOf(const ImportOptions& importing) const {
  CacheKey key = key_;
  for (const auto& [name, size] : importing.dims) {
    key.Add(absl::StrCat("dim ", name), absl::StrCat(size));
  }
  for (const auto& [name, shape] : importing.shapes) {
    key.Add(absl::StrCat("shape ", name), absl::StrJoin(shape, "x"));
  }
  return key;
}

std::optional<PlannedModel> SessionCache::Find(const ImportOptions& importing) const {
  const CacheKey key = KeyOf(importing);
  auto found = cache_->Find(key, sources_);
  if (!found.ok() || !found->has_value()) return std::nullopt;
  auto model = Guarded("read a program", [&] { return FromPackage(**found); });
  if (model.ok()) return *std::move(model);
  cache_->Drop(key, model.status());
  return std::nullopt;
}

void SessionCache::Store(const ImportOptions& importing, const Graph& graph, const Plan& plan,
                         const std::vector<CpuModel>& cpu_models, const PlanFacts& facts) const {
  Guarded("store a program", [&]() -> absl::Status {
    const auto package = ToPackage(graph, plan, cpu_models, facts, sources_);
    return package.ok() ? cache_->Store(KeyOf(importing), *package) : package.status();
  }).IgnoreError();
}

}  // namespace anemone
