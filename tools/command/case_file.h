// tools/command/case_file.h: files of cases, which `confirm --probe` and `doctor --self-test` read.
#ifndef ANEMONE_TOOLS_COMMAND_CASE_FILE_H_
#define ANEMONE_TOOLS_COMMAND_CASE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/json.h"

namespace anemone {

// The cases in a file: a JSON list, or the list 'compile' of an object. The file may be a pipe.
// Errors, each with the path: kNotFound, kInvalidArgument (a folder, not such a list, nested deeper
// than 64 levels).
absl::StatusOr<Json> ReadCaseList(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_CASE_FILE_H_
