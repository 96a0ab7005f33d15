#include "tools/compare/child_process.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "base/status_macros.h"
#include "base/usage_error.h"

namespace anemone {
namespace {

constexpr int kUsageBit = 64;  // of the child's exit code: the error is wrong usage

}  // namespace

void EndWithParent(pid_t parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(1);  // it ended before
}

double PeakMemoryOf(const rusage& usage) {
#ifdef __APPLE__
  return static_cast<double>(usage.ru_maxrss);
#else
  return static_cast<double>(usage.ru_maxrss) * 1024;
#endif
}

std::filesystem::path ProgramPath() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path;
  Dl_info self;  // on macOS, this is the whole path
  if (dladdr(reinterpret_cast<void*>(&ProgramPath), &self) != 0) path = self.dli_fname;
  return path;
}

std::string ReadAll(FILE* file) {
  std::rewind(file);
  std::string text;
  char part[4096];
  while (const size_t count = std::fread(part, 1, sizeof(part), file)) text.append(part, count);
  return text;
}

absl::StatusOr<ChildResult> InChild(const std::function<absl::StatusOr<std::string>()>& work) {
  // The child writes its result, or its error, to this file.
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), std::fclose);
  if (file == nullptr) {
    return absl::ResourceExhaustedError(
        "child process: cannot create a temporary file; free some disk space");
  }
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    return absl::ResourceExhaustedError("child process: cannot be started; close other programs");
  }
  if (child == 0) {
    EndWithParent(parent);
    // The parent reports memory that runs out here. Its temporary files are not this process's.
    std::set_new_handler(nullptr);
    std::set_terminate(std::abort);
    const absl::StatusOr<std::string> result = Guarded("measure the model", work);
    const std::string text = result.ok() ? *result : std::string(result.status().message());
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                         std::fflush(file.get()) == 0;
    const auto code =
        static_cast<int>(written ? result.status().code() : absl::StatusCode::kDataLoss);
    _exit(IsUsageError(result.status()) ? code | kUsageBit : code);
  }
  int status = 0;
  rusage usage{};
  pid_t ended = 0;
  do {
    ended = wait4(child, &status, 0, &usage);
  } while (ended < 0 && errno == EINTR);
  if (ended != child || !WIFEXITED(status)) {
    return absl::InternalError(
        absl::StrCat("the process that measured it was ended",
                     ended == child && WIFSIGNALED(status)
                         ? absl::StrCat(" by a signal: ", strsignal(WTERMSIG(status)))
                         : std::string(),
                     "; if memory ran out, bind smaller dimensions"));
  }
  std::string text = ReadAll(file.get());
  if (const int code = WEXITSTATUS(status); code != 0) {
    absl::Status error(static_cast<absl::StatusCode>(code & ~kUsageBit), text);
    return (code & kUsageBit) != 0 ? AsUsageError(std::move(error)) : error;
  }
  return ChildResult{std::move(text), PeakMemoryOf(usage)};
}

absl::StatusOr<double> PeakMemoryOf(const std::function<absl::Status()>& work) {
  ANEMONE_ASSIGN_OR_RETURN(const ChildResult result, InChild([&]() -> absl::StatusOr<std::string> {
                             ANEMONE_RETURN_IF_ERROR(work());
                             return std::string();
                           }));
  return result.peak_memory;
}

}  // namespace anemone
