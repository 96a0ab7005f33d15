#include "python/interrupt.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <csignal>

namespace anemone {
namespace {

namespace nb = nanobind;

// Functions of Python. They are never released: modules end after their objects.
struct {
  PyObject *handler_of, *default_handler;
} python_functions;
// A child that another thread forked has another one: there Ctrl-C waits for the end of a call.
unsigned long main_thread = 0;

std::atomic<bool> is_interrupted = false;
bool is_watched = false;  // while an Interrupt of the main thread looks at it
struct sigaction pythons;

void OnInterrupt(int number, siginfo_t* info, void* context) {
  CancelledBy::Cancel(is_interrupted);
  if ((pythons.sa_flags & SA_SIGINFO) != 0) {
    pythons.sa_sigaction(number, info, context);
  } else {
    pythons.sa_handler(number);
  }
}

// Our handler stays: another one would cost two calls of the system for each run. Python puts its
// own in its place when the program sets a handler.
bool HandlerIsInPlace() {
  struct sigaction now = {};
  if (sigaction(SIGINT, nullptr, &now) != 0) return false;
  if (now.sa_sigaction == OnInterrupt) return true;
  if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return false;
  pythons = now;
  now.sa_sigaction = OnInterrupt;
  now.sa_flags |= SA_SIGINFO;
  return sigaction(SIGINT, &now, nullptr) == 0;
}

bool PythonRaisesKeyboardInterrupt() {
  const nb::object handler = nb::handle(python_functions.handler_of)(SIGINT);
  return handler.is(python_functions.default_handler);
}

}  // namespace

void Interrupt::SetUp() {
  const nb::module_ signals = nb::module_::import_("_signal");
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  python_functions = {
      signals.attr("getsignal").inc_ref().ptr(),
      signals.attr("default_int_handler").inc_ref().ptr(),
  };
}

Interrupt::Interrupt() {
  if (is_watched || PyThread_get_thread_ident() != main_thread) return;
  if (!PythonRaisesKeyboardInterrupt() || !HandlerIsInPlace()) return;
  is_interrupted.store(false, std::memory_order_relaxed);
  if (PyErr_CheckSignals() != 0) throw nb::python_error();  // one that came just before
  is_watched = true;
  cancelled_.emplace(is_interrupted);
}

Interrupt::~Interrupt() {
  if (cancelled_) is_watched = false;
}

}  // namespace anemone
