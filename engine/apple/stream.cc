#include "engine/apple/stream.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace anemone::apple {
namespace {

constexpr std::chrono::minutes kLongestQueue{10};  // after a job that nobody waits for

}  // namespace

Stream& Stream::OfProcess() {
  static Stream& stream = *new Stream;
  return stream;
}

std::shared_ptr<Stream::Task> Stream::Add(Job job) {
  auto task = std::make_shared<Task>();
  task->job = std::move(job);
  tasks_.push_back(task);
  if (!has_thread_) std::thread([this] { Work(); }).detach();
  has_thread_ = true;
  changed_.notify_all();
  return task;
}

bool Stream::WaitForBegin(const Task& task, std::unique_lock<std::mutex>& lock) {
  changed_.wait_for(lock, kLongestQueue, [&] { return task.began || !stalled_.empty(); });
  if (!task.began && stalled_.empty()) stalled_ = "an unload";
  return task.began;
}

bool Stream::WaitForEnd(const Task& task, const std::string& what, absl::Duration timeout,
                        std::unique_lock<std::mutex>& lock) {
  if (changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [&] { return task.ended; })) {
    return true;
  }
  stalled_ = what;
  changed_.notify_all();
  return false;
}

absl::Status Stream::Stalled() const {
  return absl::UnavailableError(absl::StrCat("device: an earlier call (", stalled_,
                                             ") has not ended, so the device is not used; start "
                                             "another process"));
}

absl::Status Stream::Run(const std::string& what, absl::Duration timeout, Job job) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!stalled_.empty()) return Stalled();
  const std::shared_ptr<Task> task = Add(std::move(job));
  if (!WaitForBegin(*task, lock)) {
    tasks_.erase(std::find(tasks_.begin(), tasks_.end(), task));
    return Stalled();
  }
  if (WaitForEnd(*task, what, timeout, lock)) return task->status;
  return absl::DeadlineExceededError(
      absl::StrCat("device: ", what, " has not ended after ", absl::FormatDuration(timeout),
                   "; the completion may be lost: start another process"));
}

absl::Status Stream::Check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stalled_.empty() ? absl::OkStatus() : Stalled();
}

void Stream::Free(const std::string& what, absl::Duration timeout, Job job) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::shared_ptr<Task> task = Add(std::move(job));
  if (WaitForBegin(*task, lock)) WaitForEnd(*task, what, timeout, lock);
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
