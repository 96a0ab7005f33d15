#include "python/interrupt.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <csignal>

namespace anemone {
namespace {

namespace nb = nanobind;

// Functions of Python. They are never released: modules end after their objects.
struct {
  PyObject *main_thread, *handler_of, *default_handler;
} python_functions;

std::atomic<bool> is_interrupted = false;
bool has_handler = false;         // while an Interrupt of the main thread exists
struct sigaction handler_before;  // stays, because a signal may still be on its way to another thread

void OnInterrupt(int number, siginfo_t* info, void* context) {
  is_interrupted.store(true, std::memory_order_relaxed);
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(number, info, context);
  } else {
    handler_before.sa_handler(number);
  }
}

bool IsMainThread() {
  const auto main = nb::steal(PyObject_CallNoArgs(python_functions.main_thread));
  if (!main.is_valid()) throw nb::python_error();
  return nb::cast<unsigned long>(main.attr("ident")) == PyThread_get_thread_ident();
}

bool PythonRaisesKeyboardInterrupt() {
  const nb::object handler = nb::handle(python_functions.handler_of)(SIGINT);
  return handler.is(python_functions.default_handler);
}

void PutBackHandler() {
  has_handler = false;
  struct sigaction now = {};
  if (sigaction(SIGINT, &handler_before, &now) != 0 || now.sa_sigaction == OnInterrupt) return;
  sigaction(SIGINT, &now, nullptr);  // somebody set another one meanwhile
}

}  // namespace

void Interrupt::SetUp() {
  const nb::module_ signals = nb::module_::import_("_signal");
  python_functions = {
      nb::module_::import_("threading").attr("main_thread").inc_ref().ptr(),
      signals.attr("getsignal").inc_ref().ptr(),
      signals.attr("default_int_handler").inc_ref().ptr(),
  };
}

Interrupt::Interrupt() {
  if (has_handler || !IsMainThread() || !PythonRaisesKeyboardInterrupt()) return;
  struct sigaction own = {};
  own.sa_sigaction = OnInterrupt;
  sigemptyset(&own.sa_mask);
  struct sigaction before = {};
  if (sigaction(SIGINT, nullptr, &before) != 0) return;
  if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) return;
  own.sa_flags = before.sa_flags | SA_SIGINFO;
  handler_before = before;
  is_interrupted.store(false, std::memory_order_relaxed);
  if (sigaction(SIGINT, &own, nullptr) != 0) return;
  has_handler = true;
  if (PyErr_CheckSignals() != 0) {  // one that came just before
    PutBackHandler();
    throw nb::python_error();
  }
  cancelled_.emplace(is_interrupted);
}

Interrupt::~Interrupt() {
  if (cancelled_) PutBackHandler();
}

}  // namespace anemone
