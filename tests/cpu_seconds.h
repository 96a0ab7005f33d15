// tests/cpu_seconds.h: the processor time of some work, which other processes hardly change.
//
//   const double few = CpuSeconds([&] { Work(10'000); });
//   const double many = CpuSeconds([&] { Work(100'000); });
//   EXPECT_LT(many, few * kAtMostLinear);
#ifndef ANEMONE_TESTS_CPU_SECONDS_H_
#define ANEMONE_TESTS_CPU_SECONDS_H_

#include <algorithm>
#include <ctime>

namespace anemone {

// For ten times the work. Linear work takes some 10 times as long, quadratic work 100 times.
inline constexpr double kAtMostLinear = 40;

template <class Work>
double CpuSeconds(const Work& work) {
  const std::clock_t start = std::clock();
  work();
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return std::max(seconds, 0.001);  // the clock's steps
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_CPU_SECONDS_H_
