#include "base/deadline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

thread_local Deadline* deadline_of_thread = nullptr;
thread_local const std::atomic<bool>* flag_of_thread = nullptr;

// How often a watcher looks whether the work was cancelled. A signal handler can wake no thread.
constexpr std::chrono::milliseconds kLookAgain{50};

}  // namespace

Deadline::Deadline(double seconds, const std::atomic<bool>* cancelled)
    : seconds_(std::min(kLongestTimeLimit, seconds)),
      cancelled_(cancelled),
      end_(Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_))) {}

Deadline::~Deadline() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_closing_ = true;
  }
  closing_changed_.notify_one();
  watcher_.join();
}

Deadline* Deadline::Current() { return deadline_of_thread; }

absl::Status Deadline::Error(Phase phase, absl::string_view place) const {
  static constexpr absl::string_view kDoing[] = {"reading the model", "planning", "compiling",
                                                 "running", "writing"};
  const std::string doing =
      absl::StrCat(kDoing[static_cast<int>(phase)], place.empty() ? "" : ", at ", place);
  if (is_cancelled()) {
    return absl::CancelledError(absl::StrCat("cancelled while ", doing, "; start it again"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("time limit of ", seconds_, " s reached while ", doing,
                   "; allow more (--time-limit, time_limit=), or simplify the model"));
}

Deadline::Scope::Scope(Deadline* deadline) : before_(std::exchange(deadline_of_thread, deadline)) {}
Deadline::Scope::~Scope() { deadline_of_thread = before_; }

CancelledBy::CancelledBy(const std::atomic<bool>& flag)
    : before_(std::exchange(flag_of_thread, &flag)) {}
CancelledBy::~CancelledBy() { flag_of_thread = before_; }

const std::atomic<bool>* CancelledBy::Current() { return flag_of_thread; }

Deadline::Alarm::Alarm(Deadline* deadline, std::function<void()> stop)
    : deadline_(deadline), stop_(std::move(stop)) {
  if (deadline == nullptr) return;
  const std::lock_guard<std::mutex> lock(deadline->mutex_);
  if (!deadline->watcher_.joinable()) {
    deadline->watcher_ = std::thread([deadline] { deadline->Watch(); });
  }
  if (deadline->has_rung_) stop_();
  deadline->alarms_.insert(this);
}

Deadline::Alarm::~Alarm() {
  if (deadline_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(deadline_->mutex_);
  deadline_->alarms_.erase(this);
}

void Deadline::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!is_over()) {
    const Clock::time_point later = Clock::now() + kLookAgain;
    const Clock::time_point until = cancelled_ == nullptr ? end_
                                    : seconds_ > 0        ? std::min(end_, later)
                                                          : later;
    if (closing_changed_.wait_until(lock, until, [this] { return is_closing_; })) return;
  }
  has_rung_ = true;
  for (const Alarm* alarm : alarms_) alarm->stop_();
}

}  // namespace anemone
