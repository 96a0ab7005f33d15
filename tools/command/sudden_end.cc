#include "tools/command/sudden_end.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>

#include "absl/strings/string_view.h"
#include "provider/temporaries.h"
#include "tools/command/commands.h"

namespace anemone {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

std::atomic<bool> tells_in_json = false;

// Address space that is free again at the end.
void* reserve = nullptr;

constexpr absl::string_view kNoMemory =
    "not enough memory; bind smaller dimensions, or give the process more memory";
constexpr absl::string_view kCutOff =
    "a file became shorter, or could not be read, while it was used; do not change files meanwhile";

void WriteLine(int stream, absl::string_view before, absl::string_view problem,
               absl::string_view after) {
  for (absl::string_view part : {before, problem, after}) {
    while (!part.empty()) {
      const ssize_t written = write(stream, part.data(), part.size());
      if (written <= 0) return;
      part.remove_prefix(static_cast<size_t>(written));
    }
  }
}

// Allocates nothing by operator new.
[[noreturn]] void EndBecauseOf(absl::string_view problem) {
  static std::atomic<bool> ending = false;
  while (ending.exchange(true)) pause();  // another thread ends the process
  std::free(reserve);
  RemoveTemporaries();
  WriteLine(STDERR_FILENO, "anemone: error: ", problem, "\n");
  if (tells_in_json && !DocumentPrinted()) {
    WriteLine(STDOUT_FILENO, R"({"schema": 1, "error": ")", problem, "\"}\n");
  }
  _exit(kExitRefused);
}

[[noreturn]] void End() { EndBecauseOf(kNoMemory); }

pid_t main_process = 0;

// A child of fork() ends by the signal, which its parent reports.
void OnBusError(int) {
  if (getpid() == main_process) EndBecauseOf(kCutOff);
  std::signal(SIGBUS, SIG_DFL);
}

[[noreturn]] void OnTerminate() {
  const std::exception_ptr exception = std::current_exception();
  try {
    if (exception) std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    End();
  } catch (...) {
  }
  std::abort();
}

}  // namespace

void EndIfMemoryRunsOut() {
  reserve = std::malloc(kLarge);
  std::set_new_handler(End);
  std::set_terminate(OnTerminate);
}

void EndIfAFileIsCutOff() {
  main_process = getpid();
  struct sigaction action = {};
  action.sa_handler = OnBusError;
  sigaction(SIGBUS, &action, nullptr);
}

void TellInJsonIfItEnds() { tells_in_json = true; }

}  // namespace anemone

#ifndef ANEMONE_SANITIZED  // a sanitizer has operators of its own

// As the C++ library's, but only small objects ask the handler.
void* operator new(size_t size) {
  void* const made = std::malloc(std::max<size_t>(size, 1));
  if (made != nullptr) return made;
  const std::new_handler handler = std::get_new_handler();
  if (size < anemone::kLarge && handler != nullptr) handler();
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

#endif
