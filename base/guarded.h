// base/guarded.h: where libraries below may throw and no exception may leave.
#ifndef ANEMONE_BASE_GUARDED_H_
#define ANEMONE_BASE_GUARDED_H_

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace anemone {

// What `work` returns, a Status or StatusOr. Out of memory is kResourceExhausted, "not enough
// memory to ..."; anything else that is thrown kInternal.
template <class F>
auto Guarded(absl::string_view doing, F&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "not enough memory to ", doing, "; bind smaller dimensions, or give the process more"));
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat(std::string(doing), ": ", e.what()));
  }
}

}  // namespace anemone

#endif  // ANEMONE_BASE_GUARDED_H_
