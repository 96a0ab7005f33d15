// tools/zoo/results.h: results.jsonl, one line for each finished model. A line is added with one
// write, so that after a crash at most the last line is incomplete; it is dropped when the file is
// opened.
#ifndef ANEMONE_TOOLS_ZOO_RESULTS_H_
#define ANEMONE_TOOLS_ZOO_RESULTS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/json.h"

namespace anemone {

class Results {
 public:
  // Reads `path` and removes an incomplete last line, or creates it in an empty folder.
  // kInvalidArgument: a line is not one of `anemone zoo`. kAlreadyExists: there is no such file,
  // but the folder has others.
  static absl::StatusOr<Results> Open(const std::string& path);

  // The line of this model, or null.
  const Json* Find(const std::string& path) const;
  // Adds the line, in place of an earlier one of the same model.
  absl::Status Add(Json line);
  // Rewrites the file: one line for each model, sorted by path.
  absl::Status Finish();

  const std::map<std::string, Json>& lines() const { return lines_; }  // by path

 private:
  std::string path_;
  std::map<std::string, Json> lines_;
};

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_RESULTS_H_
