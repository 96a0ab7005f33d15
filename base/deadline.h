// base/deadline.h: Settings::time_limit. Work that takes longer ends with kDeadlineExceeded, at the
// next place that looks. Work that the caller cancels ends there too, with kCancelled.
//
//   const TimeLimit limit(settings.time_limit);  // of what this thread does while it exists
//   ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kPlan, [] { return "node 'conv1'"; }));
//
// The deadline belongs to a thread. Work that another thread may do takes it along:
//
//   arena.execute(WithDeadline([&] { Work(); }));
//
// To cancel what a thread does, from any thread or signal handler:
//
//   const CancelledBy scope(flag);  // of each TimeLimit that this thread makes while it exists
//   CancelledBy::Cancel(flag);      // elsewhere
#ifndef ANEMONE_BASE_DEADLINE_H_
#define ANEMONE_BASE_DEADLINE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace anemone {

inline constexpr double kLongestTimeLimit = 1e9;  // seconds

enum class Phase { kRead, kPlan, kCompile, kRun, kWrite };

// Thread-safe.
class Deadline {
 public:
  // 0 seconds: no limit. `cancelled` may be null.
  explicit Deadline(double seconds, const std::atomic<bool>* cancelled = nullptr);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Of what this thread does; null: it has no limit.
  static Deadline* Current();

  bool is_over() const { return is_cancelled() || (seconds_ > 0 && Clock::now() >= end_); }
  // kDeadlineExceeded or kCancelled. `place`: the node that was reached, or "".
  absl::Status Error(Phase phase, absl::string_view place) const;

  // While it exists, this thread works for `deadline`, which may be null.
  class Scope {
   public:
    explicit Scope(Deadline* deadline);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Deadline* const before_;
  };

  // While it exists, `stop` is called by another thread when the time is over and when the work is
  // cancelled, or at once if that was before. It must be short, and must not throw. `deadline` may
  // be null.
  class Alarm {
   public:
    Alarm(Deadline* deadline, std::function<void()> stop);
    ~Alarm();
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;

   private:
    friend class Deadline;
    friend class CancelWatcher;
    Deadline* const deadline_;
    const std::function<void()> stop_;
  };

 private:
  friend class CancelWatcher;
  using Clock = std::chrono::steady_clock;
  bool is_cancelled() const {
    return cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed);
  }
  void Watch();

  const double seconds_;
  const std::atomic<bool>* const cancelled_;
  const Clock::time_point end_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable closing_changed_;
  bool is_closing_ = false, has_rung_ = false;
  std::set<Alarm*> alarms_;
  std::thread watcher_;  // runs once there is an alarm
};

// Returns a function that calls `work` with the deadline that this thread has now.
template <class Work>
auto WithDeadline(Work work) {
  return [work = std::move(work), deadline = Deadline::Current()] {
    const Deadline::Scope scope(deadline);
    return work();
  };
}

// While it exists, a TimeLimit of this thread also ends when `flag` is true.
class CancelledBy {
 public:
  explicit CancelledBy(const std::atomic<bool>& flag);
  ~CancelledBy();
  CancelledBy(const CancelledBy&) = delete;
  CancelledBy& operator=(const CancelledBy&) = delete;

  // Sets the flag and rings the alarms of its work. A signal handler may call it.
  static void Cancel(std::atomic<bool>& flag);

  // Of this thread, or null.
  static const std::atomic<bool>* Current();

 private:
  const std::atomic<bool>* const before_;
};

// Limits what this thread does while it exists. 0: no limit. Inside another limit, only that one
// counts.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds) {
    const std::atomic<bool>* const cancelled = CancelledBy::Current();
    if ((seconds <= 0 && cancelled == nullptr) || Deadline::Current() != nullptr) return;
    deadline_.emplace(seconds, cancelled);
    scope_.emplace(&*deadline_);
  }

 private:
  std::optional<Deadline> deadline_;
  std::optional<Deadline::Scope> scope_;
};

// kDeadlineExceeded if the time of this thread's work is over, kCancelled if it was cancelled.
// `place` returns the node that was reached; it is called only then.
template <class Place>
absl::Status CheckTime(Phase phase, const Place& place) {
  const Deadline* const deadline = Deadline::Current();
  if (deadline == nullptr || !deadline->is_over()) return absl::OkStatus();
  return deadline->Error(phase, place());
}
inline absl::Status CheckTime(Phase phase) {
  return CheckTime(phase, [] { return ""; });
}

// True of the errors of CheckTime(): the caller wants no more work, so nothing else is tried.
inline bool IsOutOfTime(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsCancelled(status);
}

}  // namespace anemone

#endif  // ANEMONE_BASE_DEADLINE_H_
