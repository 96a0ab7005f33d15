// base/annotated.h: an error with where it happened.
#ifndef ANEMONE_BASE_ANNOTATED_H_
#define ANEMONE_BASE_ANNOTATED_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace anemone {

// "WHERE: " in front of the message, under the same code. A status that is OK stays so.
inline absl::Status Annotated(const absl::Status& status, absl::string_view where) {
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace anemone

#endif  // ANEMONE_BASE_ANNOTATED_H_
