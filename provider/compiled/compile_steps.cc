#include "provider/compiled/compile_steps.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/annotated.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/read/bindings.h"
#include "provider/compiled/program_file.h"
#include "provider/new_file.h"
#include "provider/package/package.h"
#include "provider/program_store.h"
#include "provider/settings.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// Saves a plan as the program of a folder.
class FolderStore : public ProgramStore {
 public:
  FolderStore(std::string folder, std::vector<Tensor> sources, std::string version)
      : folder_(std::move(folder)), sources_(std::move(sources)), version_(std::move(version)) {}

  std::optional<PlannedModel> Find(const ImportOptions&) const override { return std::nullopt; }
  void Store(const ImportOptions&, const Graph& graph, const Plan& plan,
             const std::vector<CpuModel>& cpu_models, const PlanFacts& facts) const override {
    stored_ = Guarded("store a program", [&]() -> absl::Status {
      ANEMONE_ASSIGN_OR_RETURN(Package package,
                               ToPackage(graph, plan, cpu_models, facts, sources_));
      return SaveProgram(folder_, std::move(package), version_);
    });
  }
  const absl::Status& stored() const { return stored_; }

 private:
  const std::string folder_;
  const std::vector<Tensor> sources_;  // as the program refers to them
  const std::string version_;
  mutable absl::Status stored_ = absl::FailedPreconditionError(
      "the policy keeps every node on the CPU, so there is nothing to compile; run the "
      "model itself, or give another --policy");
};

}  // namespace

absl::StatusOr<LoadSetup> SetupToCompile(const std::string& path, Settings settings) {
  settings.cache = false;
  ANEMONE_ASSIGN_OR_RETURN(LoadSetup setup, MakeLoadSetup(settings, path, nullptr));
  setup.compiles = false;
  return setup;
}

absl::StatusOr<std::string> PlanIntoFolder(const std::string& folder, std::vector<Tensor> sources,
                                           const std::string& version, LoadSetup setup,
                                           std::shared_ptr<const LoadedModel> before) {
  const auto store = std::make_shared<FolderStore>(folder, std::move(sources), version);
  setup.cache = store;
  setup.before = std::move(before);
  ANEMONE_ASSIGN_OR_RETURN(const auto loaded, LoadedModel::Load(setup));
  if (loaded->sizes != nullptr) {
    const absl::Status unbound = RequireBound(loaded->sizes->free());
    if (loaded->has_buckets() || unbound.ok()) {
      return UsageError("a compiled model has one size; give --dim instead of --bucket");
    }
    return AsUsageError(Annotated(unbound, "a compiled model has one size"));
  }
  ANEMONE_RETURN_IF_ERROR(store->stored());
  return loaded->PlanLine();
}

absl::Status CopyWith(const Tensor& source, const std::map<uint64_t, Tensor>& replaced,
                      const std::string& to) {
  std::error_code error;
  fs::create_directories(fs::path(to).parent_path(), error);
  if (error) return NotWritten(to);
  ANEMONE_ASSIGN_OR_RETURN(const auto file, NewFile::Make(to));
  absl::string_view left = BytesText(source);
  uint64_t at = 0;
  for (const auto& [offset, tensor] : replaced) {
    ANEMONE_RETURN_IF_ERROR(file->Write(left.substr(0, offset - at)));
    ANEMONE_RETURN_IF_ERROR(file->Write(BytesText(tensor)));
    left.remove_prefix(offset - at + tensor.bytes().size());
    at = offset + tensor.bytes().size();
  }
  ANEMONE_RETURN_IF_ERROR(file->Write(left));
  return file->PutIntoPlace();
}

}  // namespace anemone
