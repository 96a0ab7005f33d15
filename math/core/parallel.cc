#include "math/core/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "base/own_process.h"
#include "hwy/cache_control.h"
#include "tbb/task_arena.h"

namespace anemone::math {
namespace {

// A loop that is being computed. Threads claim its pieces: first those of their own share, one
// behind the other, because memory is read faster in one stretch; then what is left of others'.
class Job {
 public:
  Job(int64_t count, int64_t piece, int64_t threads, absl::FunctionRef<void(int64_t, int64_t)> body)
      : count_(count), piece_(piece), shares_(std::min(threads, kMostShares)), body_(body) {
    for (int64_t share = 0; share < shares_; ++share) next_[share].piece = FirstOf(share);
  }

  int64_t pieces() const { return (count_ - 1) / piece_ + 1; }

  // Computes pieces until none is left. `thread` is 0 for the caller, and above for helpers.
  void Work(int64_t thread) {
    for (int64_t i = 0; i < shares_; ++i) WorkOn((thread + i) % shares_);
  }

  void ThrowIfFailed() const {
    if (failed_) std::rethrow_exception(error_);
  }

 private:
  static constexpr int64_t kMostShares = 16;
  struct alignas(64) Next {
    std::atomic<int64_t> piece = 0;
  };

  int64_t FirstOf(int64_t share) const { return pieces() * share / shares_; }

  void WorkOn(int64_t share) {
    std::atomic<int64_t>& next = next_[share].piece;
    const int64_t end = FirstOf(share + 1);
    while (next < end && !failed_) {
      const int64_t begin = next.fetch_add(1) * piece_;
      if (begin >= end * piece_) return;
      try {
        body_(begin, std::min(begin + piece_, count_));
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
  }

  const int64_t count_, piece_, shares_;
  const absl::FunctionRef<void(int64_t, int64_t)> body_;
  std::array<Next, kMostShares> next_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr error_;  // the first, by the thread that set `failed_`
};

// The loops of one thread, and workers of its arena that help with them. A decoder has dozens of
// loops of a few microseconds for each token, and waking a worker takes longer than such a loop. So
// a helper stays for a while after a loop, and looks for the next one.
class Team : public std::enable_shared_from_this<Team> {
 public:
  // False if this thread is computing a loop already.
  bool Run(Job& job, int64_t threads);

 private:
  static constexpr std::chrono::microseconds kPatience{200};

  bool Ask();  // for one more helper
  void Help(int64_t thread);

  std::atomic<Job*> job_ = nullptr;
  std::atomic<uint64_t> loops_ = 0;   // counts them, so that a helper enters each once
  std::atomic<int64_t> inside_ = 0;   // helpers that may be using *job_
  std::atomic<int64_t> helpers_ = 0;  // those that were asked for and have not left
  bool busy_ = false;
};

// The team of the calling thread. A child that fork() made has none of the helpers, and would wait
// for those that were inside a loop.
Team& OwnTeam() {
  struct Own {
    OwnProcess process;
    std::shared_ptr<Team> team = std::make_shared<Team>();
  };
  thread_local Own own;
  if (!own.process.is_here()) {
    [[maybe_unused]] const auto* const kept = new (std::nothrow) Own(std::move(own));
    own = Own();
  }
  return *own.team;
}

bool Team::Run(Job& job, int64_t threads) {
  if (busy_) return false;
  busy_ = true;
  loops_.fetch_add(1);
  job_ = &job;
  const int64_t wanted = std::min(threads, job.pieces()) - 1;
  while (helpers_ < wanted && Ask()) {
  }
  job.Work(/*thread=*/0);
  // A helper that enters from now on sees no job; those inside have it until they leave.
  job_ = nullptr;
  constexpr int kPauses = 1000;  // after these, the helper has probably been interrupted
  for (int pauses = 0; inside_ != 0; ++pauses) {
    if (pauses < kPauses) {
      hwy::Pause();
    } else {
      std::this_thread::yield();
    }
  }
  busy_ = false;
  return true;
}

bool Team::Ask() {
  const int64_t thread = helpers_.fetch_add(1) + 1;
  try {
    tbb::this_task_arena::enqueue([team = shared_from_this(), thread] { team->Help(thread); });
    return true;
  } catch (...) {  // no memory: the loop is computed with the helpers that there are
    helpers_.fetch_sub(1);
    return false;
  }
}

void Team::Help(int64_t thread) {
  constexpr int kLooks = 64;  // between looks at the clock
  using Clock = std::chrono::steady_clock;
  uint64_t last = 0;
  for (Clock::time_point until = Clock::now() + kPatience; Clock::now() < until;) {
    for (int look = 0; look < kLooks; ++look, hwy::Pause()) {
      const uint64_t loop = loops_;
      if (loop == last || job_ == nullptr) continue;
      inside_.fetch_add(1);
      if (Job* job = job_; job != nullptr) {
        job->Work(thread);
        until = Clock::now() + kPatience;
      }
      inside_.fetch_sub(1);
      last = loop;
    }
  }
  helpers_.fetch_sub(1);
}

}  // namespace

int64_t ThreadCount() { return tbb::this_task_arena::max_concurrency(); }

void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  const int64_t threads = ThreadCount();
  if (count <= grain || threads == 1) return body(0, count);
  // Several pieces for each thread, because one may be held up.
  constexpr int64_t kPieces = 4;
  Job job(count, std::max(grain, count / (kPieces * threads)), threads, body);
  if (!OwnTeam().Run(job, threads)) return body(0, count);
  job.ThrowIfFailed();
}

}  // namespace anemone::math
