// base/annotated.h: Annotated() adds the place of an error to its message.
#ifndef ANEMONE_BASE_ANNOTATED_H_
#define ANEMONE_BASE_ANNOTATED_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace anemone {

// Returns `status` with "WHERE: " in front of its message, and the same code and payloads. OK stays
// OK.
inline absl::Status Annotated(const absl::Status& status, absl::string_view where) {
  absl::Status annotated(status.code(), absl::StrCat(where, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace anemone

#endif  // ANEMONE_BASE_ANNOTATED_H_
