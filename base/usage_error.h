// base/usage_error.h: marks an error as wrong usage: an option, or a name in one, that does not
// exist or does not fit the model. The command then exits with 2 instead of 1.
#ifndef ANEMONE_BASE_USAGE_ERROR_H_
#define ANEMONE_BASE_USAGE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace anemone {

inline constexpr char kUsagePayload[] = "anemone/usage";

inline absl::Status AsUsageError(absl::Status status) {
  if (!status.ok()) status.SetPayload(kUsagePayload, absl::Cord());
  return status;
}

// A kInvalidArgument that is wrong usage.
inline absl::Status UsageError(absl::string_view message) {
  return AsUsageError(absl::InvalidArgumentError(message));
}

inline bool IsUsageError(const absl::Status& status) {
  return status.GetPayload(kUsagePayload).has_value();
}

}  // namespace anemone

#endif  // ANEMONE_BASE_USAGE_ERROR_H_
