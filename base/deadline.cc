#include "base/deadline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

thread_local Deadline* deadline_of_thread = nullptr;

}  // namespace

Deadline::Deadline(double seconds)
    : seconds_(std::min(kLongestTimeLimit, seconds)),
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
  return absl::DeadlineExceededError(
      absl::StrCat("time limit of ", seconds_, " s reached while ", kDoing[static_cast<int>(phase)],
                   place.empty() ? "" : ", at ", place,
                   "; allow more (--time-limit, time_limit=), or simplify the model"));
}

Deadline::Scope::Scope(Deadline* deadline) : before_(std::exchange(deadline_of_thread, deadline)) {}
Deadline::Scope::~Scope() { deadline_of_thread = before_; }

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
  if (closing_changed_.wait_until(lock, end_, [this] { return is_closing_; })) return;
  has_rung_ = true;
  for (const Alarm* alarm : alarms_) alarm->stop_();
}

}  // namespace anemone
