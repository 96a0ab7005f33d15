#include "tools/command/progress.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/wrapped_text.h"
#include "tools/command/commands.h"

namespace anemone {
namespace {

std::atomic<Progress*> current = nullptr;  // a command has one at a time

}  // namespace

Progress::Progress(bool quiet, bool steady)
    : on_terminal_(isatty(STDERR_FILENO) == 1 && !IsDumbTerminal()), steady_(steady) {
  if (!quiet) watcher_ = std::thread([this] { Watch(); });
  current = this;
}

Progress::~Progress() {
  current = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (watcher_.joinable()) watcher_.join();
  Begin("");
}

void Progress::Step(std::string what) { Begin(std::move(what)); }

void Progress::EraseShown() {
  if (Progress* shown = current) shown->Begin("");
}

// Erases the line, lets printed text through, and starts the next step.
void Progress::Begin(std::string step) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (drawn_) std::fprintf(stderr, "\r\x1b[K");
    drawn_ = false;
    if (isatty(STDOUT_FILENO) == 1) std::fflush(stdout);
    step_ = std::move(step);
    ++number_;
  }
  changed_.notify_one();
}

// On a terminal, one line counts the seconds and is erased at the end. Otherwise each slow step is
// one line.
void Progress::Watch() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock<std::mutex> lock(mutex_);
  int seen = 0;
  int seconds = 0;
  auto last = Clock::now();  // when a line was shown
  while (!stop_) {
    bool woken =
        changed_.wait_for(lock, std::chrono::seconds(1), [&] { return stop_ || number_ != seen; });
    const bool due = steady_ && !stop_ && Clock::now() - last >= std::chrono::seconds(2);
    if (woken) {
      seen = number_;
      seconds = 0;
    } else if (!step_.empty()) {
      ++seconds;
    }
    if (step_.empty() || (woken && !due)) continue;
    if (on_terminal_) {
      const std::string time = absl::StrCat(" ... ", seconds, " s");
      const int room = TerminalWidth() - 1 - Columns(time);  // a wrapped line cannot be erased
      std::fprintf(stderr, "\r\x1b[K%s%s", Cut(absl::StrCat("anemone: ", step_), room).c_str(),
                   time.c_str());
      drawn_ = true;
    } else if (due || seconds == 1) {
      std::fprintf(stderr, "anemone: %s ...\n", step_.c_str());
    } else {
      continue;
    }
    last = Clock::now();
  }
}

}  // namespace anemone
