// tests/status_matchers.h: StatusIs and IsOk, which Debian 12's Abseil does not have. There is no
// "not ok" on purpose: a test names the error it expects.
//
//   EXPECT_THAT(FindTarget("m1pro"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("m1-pro")));
#ifndef ANEMONE_TESTS_STATUS_MATCHERS_H_
#define ANEMONE_TESTS_STATUS_MATCHERS_H_

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace anemone {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P2(StatusIs, code, message,
           absl::StrCat("has status ", absl::StatusCodeToString(code), " and a message that ",
                        testing::DescribeMatcher<std::string>(message))) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && testing::Matches(message)(std::string(status.message()));
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_STATUS_MATCHERS_H_
