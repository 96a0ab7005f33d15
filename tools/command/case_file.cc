#include "tools/command/case_file.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

constexpr int kDeepestCase = 64;

}  // namespace

absl::StatusOr<Json> ReadCaseList(const std::string& path) {
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("file '", path, "': ", why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return refused("is a folder, not a file");
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("file '", path, "': cannot be read; check the path"));
  }
  bool too_deep = false;  // a limit, because JSON is copied and printed recursively
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kDeepestCase;
    return depth <= kDeepestCase;
  };
  Json json = Json::parse(file, keep, /*allow_exceptions=*/false);
  if (too_deep) {
    return refused(
        absl::StrCat("nested deeper than ", kDeepestCase, " levels; want a list of cases"));
  }
  if (json.is_object() && json.contains("compile")) json = Json(std::move(json["compile"]));
  if (json.is_array()) return json;
  return refused("want JSON: a list of cases, or an object with such a list as 'compile'");
}

}  // namespace anemone
