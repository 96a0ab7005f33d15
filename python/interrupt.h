// python/interrupt.h: Ctrl-C ends a call into the library. Python's own handler of SIGINT runs only
// between two steps of Python, which a call does not reach before its end. So a handler of ours
// sets a flag that cancels the work (base/deadline.h), and then calls Python's.
//
//   const Interrupt interrupt;
//   const nb::gil_scoped_release release;
//   return work();  // kCancelled
//
// This happens only in the main thread, where Python raises KeyboardInterrupt, and only while the
// program has no handler of SIGINT of its own, because that may want the work to go on. Such a
// handler runs when the call ends.
#ifndef ANEMONE_PYTHON_INTERRUPT_H_
#define ANEMONE_PYTHON_INTERRUPT_H_

#include <optional>

#include "base/deadline.h"

namespace anemone {

// The caller holds the GIL when one is made and when it ends.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Called once, when the module is imported.
  static void SetUp();

 private:
  std::optional<CancelledBy> cancelled_;  // nullopt: Ctrl-C does not end this work
};

}  // namespace anemone

#endif  // ANEMONE_PYTHON_INTERRUPT_H_
