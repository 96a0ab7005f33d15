// provider/session_cache.h: the program cache of direct mode: what a session has planned for a
// model, by everything that the plan depends on.
//
//   const auto files = OpenFilesOfModel("net.onnx");
//   ANEMONE_ASSIGN_OR_RETURN(auto cache, SessionCache::Open(settings, files, nullptr));
//   if (cache == nullptr) return absl::OkStatus();                    // there is no cache
//   auto found = cache->Find(importing);                              // nothing is imported
//   if (!found) cache->Store(importing, graph, plan, models, {.line = "M1: 100 % of MACs"});
#ifndef ANEMONE_PROVIDER_SESSION_CACHE_H_
#define ANEMONE_PROVIDER_SESSION_CACHE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "anemone/settings.h"
#include "anemone/tensor.h"
#include "importer/importer.h"
#include "importer/read/model_files.h"
#include "provider/package/program_cache.h"
#include "provider/program_store.h"

namespace anemone {

// The bytes of the files of a model (OpenFilesOfModel()). Empty if one of them cannot be read.
std::vector<Tensor> SourcesOf(absl::Span<const FileOfModel> files);

class SessionCache : public ProgramStore {
 public:
  // For the model of `files` (OpenFilesOfModel()), or in memory if `bytes` is not null. Null if
  // the settings or the environment turn the cache off, if its folder cannot be used, if the model
  // cannot be read, or if the session needs the whole plan (Settings::hazards). Errors: those of
  // HashInTime().
  static absl::StatusOr<std::shared_ptr<SessionCache>> Open(
      const Settings& settings, absl::Span<const FileOfModel> files,
      std::shared_ptr<const std::string> bytes);

  // A damaged entry is removed. A later Find() or Store() of the same options hashes nothing again.
  std::optional<PlannedModel> Find(const ImportOptions& importing) const override;
  // If that fails, for example because the disk is full, the next session plans again.
  void Store(const ImportOptions& importing, const Graph& graph, const Plan& plan,
             const std::vector<CpuModel>& cpu_models, const PlanFacts& facts) const override;

 private:
  SessionCache(std::unique_ptr<ProgramCache> cache, std::vector<Tensor> sources, CacheKey key)
      : cache_(std::move(cache)), sources_(std::move(sources)), key_(std::move(key)) {}
  CacheKey KeyOf(const ImportOptions& importing) const;

  const std::unique_ptr<ProgramCache> cache_;
  const std::vector<Tensor> sources_;  // the model's files
  const CacheKey key_;                 // of the files and settings
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_SESSION_CACHE_H_
