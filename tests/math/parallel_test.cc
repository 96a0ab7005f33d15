// Parallel loops: each element once, whoever helps; exceptions; loops of several threads at once.
#include "math/core/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

void ExpectEachOnce(int64_t count, int64_t grain) {
  std::vector<std::atomic<int>> times(count);
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) times[i].fetch_add(1);
  });
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(times[i], 1) << i << " of " << count;
}

TEST(ParallelTest, EachElementOnce) {
  for (int threads : {1, 2, 5, 20}) {
    WithThreads(threads, [] {
      for (int64_t count : {0, 1, 2, 7, 64, 1000}) {
        for (int64_t grain : {0, 1, 3, 5000}) ExpectEachOnce(count, grain);
      }
    });
  }
}

// The first share is the caller's; what it computes of the others' is behind it.
TEST(ParallelTest, TheCallerReadsMemoryInOneDirection) {
  WithThreads(3, [] {
    const std::thread::id caller = std::this_thread::get_id();
    for (int loop = 0; loop < 200; ++loop) {
      std::vector<int64_t> begins;
      ParallelFor(100, 1, [&](int64_t begin, int64_t /*end*/) {
        if (std::this_thread::get_id() == caller) begins.push_back(begin);
      });
      EXPECT_TRUE(std::is_sorted(begins.begin(), begins.end()));
    }
  });
}

// Helpers are there for the next loop, or have left, or leave at this moment.
TEST(ParallelTest, ManyLoopsWithPauses) {
  WithThreads(3, [] {
    for (int loop = 0; loop < 2000; ++loop) {
      ExpectEachOnce(loop % 9 + 2, 1);
      if (loop % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(loop % 500));
    }
  });
}

TEST(ParallelTest, ThreadsShareALoop) {
  WithThreads(2, [] {
    // Each element waits for the other one, or until a helper has had time to come.
    std::atomic<int> arrived = 0;
    ParallelFor(2, 1, [&](int64_t begin, int64_t end) {
      arrived += static_cast<int>(end - begin);
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (arrived < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  });
}

TEST(ParallelTest, AnExceptionReachesTheCaller) {
  WithThreads(3, [] {
    for (int64_t bad = 0; bad < 40; ++bad) {
      EXPECT_THROW(ParallelFor(40, 1,
                               [&](int64_t begin, int64_t end) {
                                 if (begin <= bad && bad < end) throw std::runtime_error("bad");
                               }),
                   std::runtime_error);
    }
    ExpectEachOnce(100, 1);
  });
}

TEST(ParallelTest, ALoopWithinALoopIsComputed) {
  WithThreads(3, [] {
    std::atomic<int64_t> sum = 0;
    ParallelFor(8, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ParallelFor(10, 1, [&](int64_t first, int64_t last) { sum += last - first; });
      }
    });
    EXPECT_EQ(sum, 80);
  });
}

TEST(ParallelTest, CallersAtOnce) {
  tbb::task_arena arena(3);
  constexpr int kCallers = 4;
  std::vector<std::thread> callers;
  callers.reserve(kCallers);
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&] {
      for (int loop = 0; loop < 300; ++loop) {
        arena.execute([&] { ExpectEachOnce(loop % 40 + 2, 1); });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace anemone::math
