// engine/apple/stream.h: the one execution stream of a process. Overlapping two streams can lose a
// completion (device.md, "Rules that bite"), so all calls of the framework run on one thread, one
// after the other, and every wait has a timeout.
//
//   ANEMONE_RETURN_IF_ERROR(
//       stream.Run("a load", absl::Seconds(30), [&] { return Load(*model); }));
//
// A job cannot be stopped. After a timeout it may still run, so it must own all that it uses.
#ifndef ANEMONE_ENGINE_APPLE_STREAM_H_
#define ANEMONE_ENGINE_APPLE_STREAM_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace anemone::apple {

class Stream {
 public:
  using Job = std::function<absl::Status()>;

  // The stream of this process. It is never destroyed.
  static Stream& OfProcess();

  // Runs `job` after the jobs before it, and returns its status. kDeadlineExceeded: it has not
  // ended `timeout` after it began. kUnavailable: an earlier job is still running after its
  // timeout, so this one was not started. Thread-safe.
  absl::Status Run(const std::string& what, absl::Duration timeout, Job job);

  // kUnavailable while a job is still running after its timeout.
  absl::Status Check();

  // Runs `job`, which frees something, as Run() does. But it is not given up: if an earlier job is
  // still running after its timeout, it runs when that one has ended, and is not waited for.
  void Free(const std::string& what, absl::Duration timeout, Job job);

 private:
  struct Task {
    Job job;
    bool began = false, ended = false;
    absl::Status status;
  };

  Stream() = default;
  void Work();
  // These are called with mutex_ held.
  std::shared_ptr<Task> Add(Job job);
  // Whether the task has begun; false if a job before it is over its time.
  bool WaitForBegin(const Task& task, std::unique_lock<std::mutex>& lock);
  // Whether the task has ended in time.
  bool WaitForEnd(const Task& task, const std::string& what, absl::Duration timeout,
                  std::unique_lock<std::mutex>& lock);
  absl::Status Stalled() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;
  bool has_thread_ = false;
  std::string stalled_;  // what has not ended after its timeout; "" if nothing
};

}  // namespace anemone::apple

#endif  // ANEMONE_ENGINE_APPLE_STREAM_H_
