#include "base/deadline.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/own_process.h"

namespace anemone {
namespace {

thread_local Deadline* deadline_of_thread = nullptr;
thread_local const std::atomic<bool>* flag_of_thread = nullptr;

// The end to write of the pipe of this process's CancelWatcher; -1: it has none. Only by a pipe can
// a signal handler wake a thread.
std::atomic<int> wake_descriptor = -1;

}  // namespace

// Rings the alarms of work that is cancelled, in a thread that begins with the first such alarm.
class CancelWatcher {
 public:
  // That of this process: a child has no thread of its parent, which may have held the lock.
  static CancelWatcher& Get() {
    static std::atomic<CancelWatcher*> current = nullptr;
    CancelWatcher* watcher = current.load();
    if (watcher != nullptr && watcher->process_.is_here()) return *watcher;
    auto made = std::make_unique<CancelWatcher>();
    // Never freed: its thread uses it up to the end of the process.
    return current.compare_exchange_strong(watcher, made.get()) ? *made.release() : *watcher;
  }

  void Add(const Deadline::Alarm* alarm) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_started_) Start();
    alarms_.insert(alarm);
    if (alarm->deadline_->is_cancelled()) alarm->stop_();
  }

  void Remove(const Deadline::Alarm* alarm) {
    const std::lock_guard<std::mutex> lock(mutex_);
    alarms_.erase(alarm);
  }

 private:
  // Without descriptors or threads, work ends only where it looks itself.
  void Start() {
    int ends[2];
    if (::pipe(ends) != 0) return;
    for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    try {
      std::thread([this, end = ends[0]] { Listen(end); }).detach();
    } catch (const std::system_error&) {
      for (const int end : ends) ::close(end);
      return;
    }
    is_started_ = true;
    wake_descriptor = ends[1];
  }

  void Listen(int end) {
    char byte;
    for (;;) {
      if (::read(end, &byte, 1) != 1) {
        if (errno == EINTR) continue;
        return;
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const Deadline::Alarm* alarm : alarms_) {
        if (alarm->deadline_->is_cancelled()) alarm->stop_();
      }
    }
  }

  const OwnProcess process_ = {};
  std::mutex mutex_;  // guards the members below
  bool is_started_ = false;
  std::set<const Deadline::Alarm*> alarms_;
};

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

void CancelledBy::Cancel(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_relaxed);
  const int descriptor = wake_descriptor;
  if (descriptor < 0) return;
  const int error = errno;
  (void)!::write(descriptor, "", 1);  // if the pipe is full, the thread is about to look
  errno = error;
}

const std::atomic<bool>* CancelledBy::Current() { return flag_of_thread; }

Deadline::Alarm::Alarm(Deadline* deadline, std::function<void()> stop)
    : deadline_(deadline), stop_(std::move(stop)) {
  if (deadline == nullptr) return;
  if (deadline->cancelled_ != nullptr) CancelWatcher::Get().Add(this);
  if (deadline->seconds_ <= 0) return;
  const std::lock_guard<std::mutex> lock(deadline->mutex_);
  if (!deadline->watcher_.joinable()) {
    deadline->watcher_ = std::thread([deadline] { deadline->Watch(); });
  }
  if (deadline->has_rung_) stop_();
  deadline->alarms_.insert(this);
}

Deadline::Alarm::~Alarm() {
  if (deadline_ == nullptr) return;
  if (deadline_->cancelled_ != nullptr) CancelWatcher::Get().Remove(this);
  if (deadline_->seconds_ <= 0) return;
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
