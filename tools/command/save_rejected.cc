#include "tools/command/save_rejected.h"

#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/command/progress.h"

namespace anemone {

namespace fs = std::filesystem;

absl::Status RejectedFolders::Check() const {
  std::error_code error;
  const std::string& folder = options_.save_rejected;
  if (folder.empty() || options_.arguments.size() == 1 || !fs::exists(folder, error) ||
      (fs::is_directory(folder, error) && fs::is_empty(folder, error))) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "folder '", folder, "': already exists and is not empty; choose another, or remove it"));
}

absl::Status RejectedFolders::Save(const CheckReport& report, const std::string& model) {
  if (options_.save_rejected.empty()) return absl::OkStatus();
  std::string folder = options_.save_rejected;
  if (options_.arguments.size() > 1) {
    const std::string stem = fs::path(model).stem().string();
    std::string name = stem;
    for (int i = 2; !names_.insert(name).second; ++i) name = absl::StrCat(stem, "-", i);
    absl::StrAppend(&folder, "/", name);
  }
  ANEMONE_ASSIGN_OR_RETURN(const SavedRejected saved, report.SaveRejected(folder));
  if (options_.quiet) return absl::OkStatus();
  Progress::EraseShown();
  std::fprintf(stderr, "anemone: %s: %d rejected node%s written to %s", model.c_str(),
               saved.written, saved.written == 1 ? "" : "s", folder.c_str());
  if (saved.unwritten > 0) {
    std::fprintf(stderr, "; %d could not be written: rejected.json says why", saved.unwritten);
  }
  std::fputs("\n", stderr);
  return absl::OkStatus();
}

}  // namespace anemone
