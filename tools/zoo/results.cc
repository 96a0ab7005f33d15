#include "tools/zoo/results.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "engine/formats/parse_json.h"
#include "partitioner/plan_json.h"
#include "provider/new_file.h"
#include "provider/temporaries.h"

namespace anemone {
namespace {

// The line of a model that fails for all targets by a thousand rules is a tenth of this.
constexpr size_t kLongestLine = size_t{16} << 20;

// The id is the name of a folder.
bool IsId(const std::string& id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

// The line of a model. Anyone may have written it.
absl::StatusOr<Json> ParseLine(absl::string_view text) {
  if (text.size() > kLongestLine) return absl::InvalidArgumentError("is longer than 16 MiB");
  ANEMONE_ASSIGN_OR_RETURN(Json line, ParseJson(text));
  if (TextAt(line, "path").empty() || TextAt(line, "key").empty() ||
      TextAt(line, "status").empty() || !IsId(TextAt(line, "id")) ||
      !AtOrNull(line, "targets").is_array()) {
    return absl::InvalidArgumentError("is not a result of `anemone zoo`");
  }
  return line;
}

// A folder without results must be empty: it may be a package, or hold what its owner needs. A zoo
// that was killed before its first result has left a temporary file.
absl::Status CheckIsOurs(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_empty = std::all_of(
      fs::directory_iterator(folder, error), fs::directory_iterator(),
      [](const auto& entry) { return IsTemporaryName(entry.path().filename().string()); });
  if (is_empty || error) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("folder '", folder.string(),
                   "': is not empty, and has no results.jsonl of an earlier zoo; choose another"));
}

}  // namespace

absl::StatusOr<Results> Results::Open(const std::string& path) {
  Results results;
  results.path_ = path;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    ANEMONE_RETURN_IF_ERROR(CheckIsOurs(std::filesystem::path(path).parent_path()));
    ANEMONE_RETURN_IF_ERROR(results.Finish());  // the folder is a zoo's from now on
    return results;
  }
  if (std::filesystem::file_size(path, error) == 0) return results;
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  absl::string_view text = file->text();
  const bool is_complete = text.back() == '\n';
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) break;  // incomplete
    absl::StatusOr<Json> line = ParseLine(text.substr(0, end));
    if (!line.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": line ", number, " ", line.status().message(),
                       "; remove the file, or choose another folder"));
    }
    std::string name = TextAt(*line, "path");
    results.lines_.insert_or_assign(std::move(name), *std::move(line));
    text.remove_prefix(end + 1);
  }
  if (!is_complete) ANEMONE_RETURN_IF_ERROR(results.Finish());
  return results;
}

const Json* Results::Find(const std::string& path) const {
  const auto found = lines_.find(path);
  return found == lines_.end() ? nullptr : &found->second;
}

absl::Status Results::Add(Json line) {
  const std::string text = JsonText(line) + "\n";
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int problem = errno;
  if (file >= 0 && close(file) != 0 && written) {
    return absl::ResourceExhaustedError(absl::StrCat(path_, ": ", std::strerror(errno),
                                                     "; free space on the disk, and run it again"));
  }
  if (!written) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, ": cannot be written: ", std::strerror(problem),
                     "; free space on the disk, and run it again"));
  }
  std::string path = TextAt(line, "path");
  lines_.insert_or_assign(std::move(path), std::move(line));
  return absl::OkStatus();
}

absl::Status Results::Finish() {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, NewFile::Make(path_));
  for (const auto& [path, line] : lines_) {
    ANEMONE_RETURN_IF_ERROR(file->Write(JsonText(line) + "\n"));
  }
  return file->PutIntoPlace();
}

}  // namespace anemone
