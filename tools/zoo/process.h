// tools/zoo/process.h: runs a command in a child process, with limits of time and memory.
#ifndef ANEMONE_TOOLS_ZOO_PROCESS_H_
#define ANEMONE_TOOLS_ZOO_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace anemone {

struct ProcessLimits {
  double seconds = 0;  // 0: no limit
  int64_t memory = 0;  // bytes of address space; 0: no limit
};

// The exit code of a command that cannot be started, for example for lack of memory.
inline constexpr int kNotStarted = 127;

struct Ended {
  std::string out, err;
  int code = 0;    // the exit code, if `signal` is 0
  int signal = 0;  // that ended it
  bool timed_out = false;
};

// A running child. It is killed when this process ends, or when the object does.
class Process {
 public:
  // Starts `words[0]` with the other words as arguments. kResourceExhausted: it cannot be started.
  static absl::StatusOr<Process> Start(const std::vector<std::string>& words,
                                       const ProcessLimits& limits);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // How it ended; nullopt if it runs. Kills it if its time is over. Does not wait.
  std::optional<Ended> Poll();

 private:
  using File = std::unique_ptr<FILE, int (*)(FILE*)>;
  using Clock = std::chrono::steady_clock;
  Process(pid_t id, File out, File err, const ProcessLimits& limits);

  pid_t id_ = -1;
  File out_, err_;
  std::optional<Clock::time_point> deadline_;
  bool timed_out_ = false;
};

// kInvalidArgument, which names the least limit of memory that is enough: with this one the command
// does not start, and the system may end it without a word.
absl::Status CheckStarts(const std::string& command, int64_t memory);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_PROCESS_H_
