#include "engine/apple/stream.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace anemone::apple {
namespace {

constexpr std::chrono::minutes kLongestQueue{10};  // for jobs that nobody waits for

}  // namespace

Stream& Stream::OfProcess() {
  static Stream& stream = *new Stream;
  return stream;
}

void Stream::Add(std::shared_ptr<Task> task) {
  tasks_.push_back(std::move(task));
  if (!has_thread_) std::thread([this] { Work(); }).detach();
  has_thread_ = true;
  changed_.notify_all();
}

absl::Status Stream::Stalled() const {
  return absl::UnavailableError(absl::StrCat("device: an earlier call (", stalled_,
                                             ") has not ended, so the device is not used; start "
                                             "another process"));
}

absl::Status Stream::Run(const std::string& what, absl::Duration timeout, Job job) {
  const auto task = std::make_shared<Task>();
  task->job = std::move(job);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!stalled_.empty()) return Stalled();
  Add(task);
  changed_.wait_for(lock, kLongestQueue, [&] { return task->began || !stalled_.empty(); });
  if (!task->began) {
    if (stalled_.empty()) stalled_ = "an unload";
    tasks_.erase(std::find(tasks_.begin(), tasks_.end(), task));
    return Stalled();
  }
  if (changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [&] { return task->ended; })) {
    return task->status;
  }
  stalled_ = what;
  changed_.notify_all();
  return absl::DeadlineExceededError(
      absl::StrCat("device: ", what, " has not ended after ", absl::FormatDuration(timeout),
                   "; the completion may be lost: start another process"));
}

absl::Status Stream::Check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stalled_.empty() ? absl::OkStatus() : Stalled();
}

void Stream::Post(Job job) {
  const auto task = std::make_shared<Task>();
  task->job = std::move(job);
  const std::lock_guard<std::mutex> lock(mutex_);
  Add(task);
}

void Stream::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !tasks_.empty(); });
    const std::shared_ptr<Task> task = std::move(tasks_.front());
    tasks_.pop_front();
    task->began = true;
    changed_.notify_all();
    lock.unlock();
    task->status = task->job();
    task->job = nullptr;  // frees what it owns, on this thread
    lock.lock();
    task->ended = true;
    stalled_.clear();
    changed_.notify_all();
  }
}

}  // namespace anemone::apple
