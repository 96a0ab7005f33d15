// base/own_process.h: OwnProcess belongs to things that do not survive fork(): in the child, their
// threads do not exist, and their shared memory is still the parent's.
//
//   OwnProcess process;                                       // of the process that made it
//   ANEMONE_RETURN_IF_ERROR(process.Check("the session"));  // before it is used
#ifndef ANEMONE_BASE_OWN_PROCESS_H_
#define ANEMONE_BASE_OWN_PROCESS_H_

#include <pthread.h>

#include <atomic>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace anemone {

class OwnProcess {
 public:
  bool is_here() const { return forks_ == Forks(); }
  // kFailedPrecondition in a child of the process.
  absl::Status Check(absl::string_view what) const {
    if (is_here()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": was made before fork(), and cannot be used in the child; load it in the child"));
  }

 private:
  // The forks between this process and the first that asked. Asking the system for the process
  // would take as long as a tenth of a small model's run.
  static int Forks() {
    static std::atomic<int> forks = 0;
    static const int watched = pthread_atfork(nullptr, nullptr, [] { ++forks; });
    if (watched != 0) throw std::bad_alloc();
    return forks.load(std::memory_order_relaxed);
  }

  int forks_ = Forks();
};

}  // namespace anemone

#endif  // ANEMONE_BASE_OWN_PROCESS_H_
