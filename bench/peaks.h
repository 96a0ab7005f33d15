// bench/peaks.h: measures the peak arithmetic rate and memory bandwidth of this machine, to which
// the speed of kernels is compared.
//
// Work of F operations on B bytes takes at least max(F / flops, B / bandwidth): the roofline limit,
// "roof" for short. Bandwidth depends on which cache B fits into.
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
    int64_t bytes;      // size of the data, read and written
    double per_second;  // bytes
  };
  double flops = 0;                   // fp32 operations per second; a multiply-add counts as two
  std::vector<Bandwidth> bandwidths;  // in rising order of size

  double BandwidthAt(double bytes) const;
  // The least time in seconds that the work can take.
  double LeastTime(double operations, double bytes) const {
    return std::max(operations / flops, bytes / BandwidthAt(bytes));
  }
};

// Uses all threads of the calling oneTBB arena. Takes about a second.
Peaks MeasurePeaks();

// Bytes per second that all threads of the calling oneTBB arena read from memory that is larger
// than the caches.
double ReadBandwidth();

// Prints one line on stdout.
void PrintPeaks(const Peaks& peaks);

// The time in seconds of one run.
template <class Body>
double TimeOf(const Body& body) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The shortest time in seconds of several runs, which together take about `seconds`.
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

// The time that a tenth of `times` are below: other processes of the machine lengthen the others.
double LowTenth(std::vector<double> times);

}  // namespace anemone

#endif  // ANEMONE_BENCH_PEAKS_H_
