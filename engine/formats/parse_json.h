// engine/formats/parse_json.h: parses JSON that anyone may have written.
#ifndef ANEMONE_ENGINE_FORMATS_PARSE_JSON_H_
#define ANEMONE_ENGINE_FORMATS_PARSE_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/json.h"

namespace anemone {

// Our own documents are far below these bounds. They limit the recursion of readers, and the time
// to find a key: an object looks through its keys in order.
inline constexpr int kDeepestJson = 16;     // arrays and objects inside each other
inline constexpr int kMostJsonKeys = 1000;  // of one object

// Takes time and memory proportional to the text. kInvalidArgument: it is not JSON, or exceeds a
// bound.
absl::StatusOr<Json> ParseJson(absl::string_view text);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_PARSE_JSON_H_
