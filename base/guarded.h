// base/guarded.h: Guarded() turns exceptions of third-party libraries into a status, at public
// functions that must not throw.
#ifndef ANEMONE_BASE_GUARDED_H_
#define ANEMONE_BASE_GUARDED_H_

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/memory_limit.h"

namespace anemone {

// Calls `work` and returns its Status or StatusOr. std::bad_alloc becomes kResourceExhausted with
// the message "not enough memory to DOING; ...", or "" if there is no memory for it, and
// MemoryLimitReached with its own message; any other std::exception becomes kInternal.
template <class F>
auto Guarded(absl::string_view doing, F&& work) -> decltype(work()) {
  try {
    try {
      return work();
    } catch (const MemoryLimitReached& e) {
      return absl::ResourceExhaustedError(e.what());
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(
          absl::StrCat("not enough memory to ", doing,
                       "; bind smaller dimensions, or give the process more memory"));
    } catch (const std::exception& e) {
      return absl::InternalError(absl::StrCat(std::string(doing), ": ", e.what()));
    }
  } catch (const std::bad_alloc&) {  // of the message
    return absl::ResourceExhaustedError("");
  }
}

}  // namespace anemone

#endif  // ANEMONE_BASE_GUARDED_H_
