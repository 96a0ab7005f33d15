// tests/math/math_testing.h: helpers for the tests of math: random numbers, loops over instruction
// sets, threads, comparisons.
#ifndef ANEMONE_TESTS_MATH_MATH_TESTING_H_
#define ANEMONE_TESTS_MATH_MATH_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "hwy/highway.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"
#include "tbb/global_control.h"
#include "tbb/task_arena.h"

namespace anemone::math {

// Array lengths around the vector lengths of all machines: one less, the same, one more, three and
// two more.
inline const std::vector<int64_t>& EdgeSizes() {
  static const auto* const sizes = [] {
    auto* all = new std::vector<int64_t>{1, 2, 47, 48, 49, 100};
    for (int64_t lanes : {4, 8, 16, 32}) {
      for (int64_t size : {lanes - 1, lanes, lanes + 1, 3 * lanes + 2}) all->push_back(size);
    }
    return all;
  }();
  return *sizes;
}

// Runs `body` for each instruction set that is compiled in and that this machine supports. Under
// ThreadSanitizer, for which all would take minutes, uses only the best one: threads divide the
// work in the same way for each.
inline void ForEachSimdTarget(const std::function<void()>& body) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  return body();
#endif
  const int64_t targets = (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
  for (int64_t rest = targets; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    body();
    if (testing::Test::HasFatalFailure()) break;
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

// Runs `body` in an arena of `threads` threads.
inline void WithThreads(int threads, const std::function<void()>& body) {
  const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(threads);
  arena.execute(body);
}

enum class Contents { kNormal, kSubnormal, kLarge, kSpecial };

// `count` random numbers, which depend only on the seed. kNormal: uniform in -1..1; kSubnormal:
// magnitudes below 2^-14; kLarge: up to the largest Half; kSpecial: any bits, including NaN and
// infinities.
inline std::vector<Half> Numbers(int64_t count, int seed = 1,
                                 Contents contents = Contents::kNormal) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<Half> halves(count);
  for (Half& half : halves) {
    switch (contents) {
      case Contents::kNormal:
        half = ToHalf(uniform(random));
        break;
      case Contents::kSubnormal:
        half.bits = static_cast<uint16_t>(random() & 0x83ff);
        break;
      case Contents::kLarge:
        half = ToHalf(uniform(random) * 65504.0f);
        break;
      case Contents::kSpecial:
        half.bits = static_cast<uint16_t>(random());
        break;
    }
  }
  return halves;
}

inline std::vector<float> Floats(int64_t count, int seed = 1) {
  std::vector<float> floats;
  for (Half half : Numbers(count, seed)) floats.push_back(ToFloat(half));
  return floats;
}

// Calls `body` with an epilogue that applies a ReLU to `result`, and checks that the epilogue is
// called with every element exactly once.
inline void WithRelu(std::vector<Half>& result, const std::function<void(const Epilogue&)>& body) {
  std::vector<std::atomic<int>> times(result.size());
  const auto relu = [&](Half* first, int64_t runs, int64_t count, int64_t step) {
    for (int64_t i = 0; i < runs * count; ++i) {
      Half& element = first[i / count * step + i % count];
      ++times.at(&element - result.data());
      if (ToFloat(element) < 0) element = kHalfZero;
    }
  };
  body(Epilogue(relu));
  for (size_t i = 0; i < times.size(); ++i) ASSERT_EQ(times[i], 1) << "element " << i;
}

// Checks that bits are equal; all NaNs count as equal.
inline void ExpectSame(const std::vector<Half>& actual, const std::vector<Half>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (IsNan(actual[i]) && IsNan(expected[i])) continue;
    ASSERT_EQ(actual[i].bits, expected[i].bits)
        << "element " << i << ": " << ToFloat(actual[i]) << ", want " << ToFloat(expected[i]);
  }
}

// compute(y) writes the same bits with one thread and with several. Returns them.
inline std::vector<Half> ExpectThreadsDoNotShow(
    int64_t count, const std::function<void(absl::Span<Half>)>& compute) {
  std::vector<Half> one(count);
  WithThreads(1, [&] { compute(absl::MakeSpan(one)); });
  for (const int threads : {2, 3, 5}) {
    std::vector<Half> many(count);
    WithThreads(threads, [&] { compute(absl::MakeSpan(many)); });
    ExpectSame(many, one);
  }
  return one;
}

// Checks that `body` with an epilogue that begins with a clamp gives the same `result` as `body`
// without an epilogue, clamped afterwards, and that the epilogue finishes each element exactly
// once.
inline void ExpectClamped(std::vector<Half>& result,
                          const std::function<void(const Epilogue&)>& body) {
  body(Epilogue());
  const std::vector<Half> plain = result;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Limits limits : {Limits{0, kInfinity}, {0, 6}, {-0.5f, 0.25f}, {-kInfinity, 0}}) {
    const auto clamp = [&](Half& half) {
      const float x = ToFloat(half);
      if (x <= limits.lo) half = ToHalf(limits.lo);
      if (x > limits.hi) half = ToHalf(limits.hi);
    };
    std::vector<Half> want = plain;
    std::for_each(want.begin(), want.end(), clamp);
    std::vector<std::atomic<int>> times(result.size());
    const auto each = [&](Half* first, int64_t runs, int64_t count, int64_t step, auto change) {
      for (int64_t i = 0; i < runs * count; ++i) {
        Half& element = first[i / count * step + i % count];
        ++times.at(&element - result.data());
        change(element);
      }
    };
    const auto all = [&](Half* first, int64_t runs, int64_t count, int64_t step) {
      each(first, runs, count, step, clamp);
    };
    const auto rest = [&](Half* first, int64_t runs, int64_t count, int64_t step) {
      each(first, runs, count, step, [](Half&) {});
    };
    body(Epilogue(limits, Epilogue(all), Epilogue(rest)));
    ExpectSame(result, want);
    for (size_t i = 0; i < times.size(); ++i) ASSERT_EQ(times[i], 1) << "element " << i;
    body(Epilogue(limits, Epilogue(all), Epilogue()));
    ExpectSame(result, want);
  }
}

// Checks that values equal the expected ones up to one rounding to Half, plus `slack` relative to
// max(1, |value|).
inline void ExpectClose(const std::vector<Half>& actual, const std::vector<double>& expected,
                        double slack = 1e-6) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(IsNan(actual[i])) << "element " << i << ": " << ToFloat(actual[i]);
      continue;
    }
    if (std::isinf(expected[i]) || std::fabs(expected[i]) >= 65520) {
      ASSERT_EQ(ToDouble(actual[i]), std::copysign(HUGE_VAL, expected[i])) << "element " << i;
      continue;
    }
    const double scale = std::fabs(expected[i]);
    const double tolerance = std::fmax(scale * 0x1p-11, 0x1p-25) + slack * std::fmax(1.0, scale);
    ASSERT_NEAR(ToDouble(actual[i]), expected[i], tolerance) << "element " << i;
  }
}

}  // namespace anemone::math

#endif  // ANEMONE_TESTS_MATH_MATH_TESTING_H_
