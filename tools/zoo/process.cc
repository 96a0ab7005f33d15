#include "tools/zoo/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/byte_sizes.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "tools/compare/child_process.h"

namespace anemone {
namespace {

// In the child, between fork() and exec(): only functions that are safe in a signal handler.
[[noreturn]] void Become(char* const* words, int out, int err, const ProcessLimits& limits,
                         pid_t parent) {
  EndWithParent(parent);
  if (limits.memory > 0) {
    const auto bytes = static_cast<rlim_t>(limits.memory);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execv(words[0], words);
  _exit(kNotStarted);
}

absl::StatusOr<bool> Starts(const std::string& command, int64_t memory) {
  ANEMONE_ASSIGN_OR_RETURN(Process process,
                           Process::Start({command, "--version"}, {.memory = memory}));
  std::optional<Ended> ended = process.Poll();
  while (!ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ended = process.Poll();
  }
  return ended->signal == 0 && ended->code == 0;
}

}  // namespace

Process::Process(pid_t id, File out, File err, const ProcessLimits& limits)
    : id_(id), out_(std::move(out)), err_(std::move(err)) {
  if (limits.seconds > 0) {
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(limits.seconds));
  }
}

Process::Process(Process&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      deadline_(other.deadline_),
      timed_out_(other.timed_out_) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  std::swap(deadline_, other.deadline_);
  std::swap(timed_out_, other.timed_out_);
  return *this;
}

Process::~Process() {
  if (id_ < 0) return;
  kill(id_, SIGKILL);
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::StatusOr<Process> Process::Start(const std::vector<std::string>& words,
                                       const ProcessLimits& limits) {
  File out(std::tmpfile(), std::fclose), err(std::tmpfile(), std::fclose);
  if (out == nullptr || err == nullptr) {
    return absl::ResourceExhaustedError("cannot create a temporary file; free some disk space");
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    return absl::ResourceExhaustedError("a process cannot be started; close other programs");
  }
  if (child == 0) Become(arguments.data(), fileno(out.get()), fileno(err.get()), limits, parent);
  return Process(child, std::move(out), std::move(err), limits);
}

std::optional<Ended> Process::Poll() {
  if (deadline_ && !timed_out_ && Clock::now() > *deadline_) {
    timed_out_ = true;
    kill(id_, SIGKILL);
  }
  int status = 0;
  if (waitpid(id_, &status, WNOHANG) != id_) return std::nullopt;
  id_ = -1;
  Ended ended{ReadAll(out_.get()), ReadAll(err_.get())};
  ended.timed_out = timed_out_;
  if (WIFSIGNALED(status)) {
    ended.signal = WTERMSIG(status);
  } else {
    ended.code = WEXITSTATUS(status);
  }
  return ended;
}

absl::Status CheckStarts(const std::string& command, int64_t memory) {
  constexpr int64_t kMiB = 1 << 20, kMost = int64_t{1} << 20;
  if (memory == 0) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(bool starts, Starts(command, memory));
  if (starts) return absl::OkStatus();
  int64_t below = memory / kMiB, least = below + 1;  // MiB
  for (; least < kMost; least *= 2) {
    ANEMONE_ASSIGN_OR_RETURN(starts, Starts(command, least * kMiB));
    if (starts) break;
    below = least;
  }
  while (least - below > 1) {
    const int64_t middle = below + (least - below) / 2;
    ANEMONE_ASSIGN_OR_RETURN(starts, Starts(command, middle * kMiB));
    (starts ? least : below) = middle;
  }
  return UsageError(absl::StrCat("--memory-limit: the command itself does not start with ",
                                 BytesText(memory), "; give at least ", least, "M"));
}

}  // namespace anemone
