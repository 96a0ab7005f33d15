#include "tools/command/save_rejected.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/command/commands.h"

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
  const std::string unwritten =
      saved.unwritten == 0
          ? ""
          : absl::StrCat("; ", saved.unwritten, " could not be written: rejected.json says why");
  Note(absl::StrCat(model, ": ", saved.written, " rejected node", saved.written == 1 ? "" : "s",
                    " written to ", folder, unwritten));
  return absl::OkStatus();
}

}  // namespace anemone
