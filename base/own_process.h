// base/own_process.h: OwnProcess belongs to things that do not survive fork(): in the child, their
// threads do not exist, and their shared memory is still the parent's.
//
//   OwnProcess process;                                       // of the process that made it
//   ANEMONE_RETURN_IF_ERROR(process.Check("the session"));  // before it is used
#ifndef ANEMONE_BASE_OWN_PROCESS_H_
#define ANEMONE_BASE_OWN_PROCESS_H_

#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace anemone {

class OwnProcess {
 public:
  bool is_here() const { return process_ == ::getpid(); }
  // kFailedPrecondition in a child of the process.
  absl::Status Check(absl::string_view what) const {
    if (is_here()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": was made before fork(), and cannot be used in the child; load it in the child"));
  }

 private:
  pid_t process_ = ::getpid();
};

}  // namespace anemone

#endif  // ANEMONE_BASE_OWN_PROCESS_H_
