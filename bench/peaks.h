// bench/peaks.h: what this machine can do at most, measured: what a kernel's speed is held against.
//
// A unit that does F operations and moves B bytes cannot run faster than F / flops, nor than
// B / bandwidth: the roof over it. Bandwidth depends on which cache B fits into.
#ifndef ANEMONE_BENCH_PEAKS_H_
#define ANEMONE_BENCH_PEAKS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace anemone {

struct Peaks {
  int threads = 0;
  struct Bandwidth {
    int64_t bytes;  // read and written
    double per_second;
  };
  double flops = 0;                   // fp32 multiply-adds, each two operations
  std::vector<Bandwidth> bandwidths;  // by rising size

  double BandwidthAt(double bytes) const;
  // Seconds that the work takes at least.
  double LeastTime(double operations, double bytes) const {
    return std::max(operations / flops, bytes / BandwidthAt(bytes));
  }
};

// With all threads of the calling oneTBB arena. Takes about a second.
Peaks MeasurePeaks();

// One line on stdout.
void PrintPeaks(const Peaks& peaks);

// Shortest of several runs over about `seconds`.
template <class Body>
double BestTime(const Body& body, double seconds = 0.3) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  body();
  double best = 1e9;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 5 || (since(start) < seconds && i < 1000); ++i) {
    const Clock::time_point begin = Clock::now();
    body();
    best = std::min(best, since(begin));
  }
  return best;
}

}  // namespace anemone

#endif  // ANEMONE_BENCH_PEAKS_H_
