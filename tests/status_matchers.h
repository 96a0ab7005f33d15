// tests/status_matchers.h: StatusIs, which Debian 12's Abseil does not have. There is no "not ok"
// on purpose: a test names the error it expects.
//
//   EXPECT_THAT(FindTarget("h99"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("near")));
#ifndef ANEMONE_TESTS_STATUS_MATCHERS_H_
#define ANEMONE_TESTS_STATUS_MATCHERS_H_

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace anemone {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && testing::Matches(message)(std::string(status.message()));
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_STATUS_MATCHERS_H_
