#include "tools/command/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace anemone {

Progress::Progress(bool quiet) : on_terminal_(isatty(STDERR_FILENO) == 1) {
  if (!quiet) watcher_ = std::thread([this] { Watch(); });
}

Progress::~Progress() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (watcher_.joinable()) watcher_.join();
}

void Progress::Step(std::string what) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    step_ = std::move(what);
    ++number_;
  }
  changed_.notify_one();
}

// On a terminal, one line counts the seconds and is erased at the end. Otherwise each slow step is
// one line.
void Progress::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  int seen = 0;
  int seconds = 0;
  while (!stop_) {
    bool woken =
        changed_.wait_for(lock, std::chrono::seconds(1), [&] { return stop_ || number_ != seen; });
    if (woken) {
      if (on_terminal_ && seconds > 0) std::fprintf(stderr, "\r\x1b[K");
      seen = number_;
      seconds = 0;
    } else if (!step_.empty()) {
      ++seconds;
      if (on_terminal_) {
        std::fprintf(stderr, "\ranemone: %s ... %d s", step_.c_str(), seconds);
      } else if (seconds == 1) {
        std::fprintf(stderr, "anemone: %s ...\n", step_.c_str());
      }
    }
  }
  if (on_terminal_ && seconds > 0) std::fprintf(stderr, "\r\x1b[K");
}

}  // namespace anemone
