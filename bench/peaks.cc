#include "bench/peaks.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "math/core/aligned_array.h"
#include "math/core/parallel.h"
#include "tbb/parallel_for.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peaks.cc"
#include "hwy/foreach_target.h"
// Highway requires that foreach_target.h is included first.
#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains of multiply-adds hide the latency on every machine. Returns the number of
// operations.
double MultiplyAddLoop(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto w = hn::Set(d, 0.999f);
  // The start values differ, or the compiler would merge the chains.
  auto a = hn::Iota(d, 0), b = hn::Iota(d, 1), c = hn::Iota(d, 2), e = hn::Iota(d, 3);
  auto f = hn::Iota(d, 4), g = hn::Iota(d, 5), h = hn::Iota(d, 6), i = hn::Iota(d, 7);
  auto j = hn::Iota(d, 8), k = hn::Iota(d, 9), l = hn::Iota(d, 10), m = hn::Iota(d, 11);
  for (int64_t r = 0; r < rounds; ++r) {
    a = hn::MulAdd(a, w, w), b = hn::MulAdd(b, w, w), c = hn::MulAdd(c, w, w);
    e = hn::MulAdd(e, w, w), f = hn::MulAdd(f, w, w), g = hn::MulAdd(g, w, w);
    h = hn::MulAdd(h, w, w), i = hn::MulAdd(i, w, w), j = hn::MulAdd(j, w, w);
    k = hn::MulAdd(k, w, w), l = hn::MulAdd(l, w, w), m = hn::MulAdd(m, w, w);
  }
  a = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  *sink = hn::GetLane(hn::Add(a, hn::Add(hn::Add(j, k), hn::Add(l, m))));
  return 2.0 * 12 * static_cast<double>(rounds * hn::Lanes(d));
}

// Computes y = x + 1, `rounds` times. Both arrays are padded to whole vectors.
void Stream(const float* x, float* y, int64_t count, int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto one = hn::Set(d, 1.0f);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rounds; ++r) {
    for (int64_t i = 0; i < count; i += lanes)
      hn::Store(hn::Add(hn::Load(d, x + i), one), d, y + i);
  }
}

// Returns the sum of `count` floats, a multiple of eight vectors.
float Sum(const float* x, int64_t count) {
  const hn::ScalableTag<float> d;
  constexpr int kSums = 8;  // so that additions do not limit the speed
  hn::Vec<decltype(d)> sums[kSums];
  for (auto& sum : sums) sum = hn::Zero(d);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += kSums * lanes) {
    for (int j = 0; j < kSums; ++j) sums[j] = hn::Add(sums[j], hn::Load(d, x + i + j * lanes));
  }
  for (int j = 1; j < kSums; ++j) sums[0] = hn::Add(sums[0], sums[j]);
  return hn::GetLane(hn::SumOfLanes(d, sums[0]));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone {
namespace {

HWY_EXPORT(MultiplyAddLoop);
HWY_EXPORT(Stream);
HWY_EXPORT(Sum);

// Calls body(thread) once for each thread of the arena, at the same time.
template <class Body>
void OnEachThread(const Body& body) {
  tbb::parallel_for(
      int64_t{0}, math::ThreadCount(), [&](int64_t t) { body(t); }, tbb::static_partitioner());
}

double PeakFlops() {
  std::vector<float> sinks(math::ThreadCount() * 16);
  double operations = 0;
  const double time = BestTime([&] {
    OnEachThread([&](int64_t t) {
      const double done = HWY_DYNAMIC_DISPATCH(MultiplyAddLoop)(1'000'000, &sinks[t * 16]);
      if (t == 0) operations = done * static_cast<double>(math::ThreadCount());
    });
  });
  return operations / time;
}

double BandwidthOf(int64_t bytes) {
  constexpr int64_t kVector = 64;  // floats: at least the vector length of any machine
  const int64_t threads = math::ThreadCount();
  const int64_t count = bytes / 8 / threads / kVector * kVector;  // floats of x, per thread
  const int64_t rounds = std::max<int64_t>(1, (int64_t{1} << 22) / bytes);
  const auto x = hwy::AllocateAligned<float>(count * threads);
  const auto y = hwy::AllocateAligned<float>(count * threads);
  std::fill_n(x.get(), count * threads, 1.0f);
  const double time = BestTime(
      [&] {
        OnEachThread([&](int64_t t) {
          HWY_DYNAMIC_DISPATCH(Stream)(x.get() + t * count, y.get() + t * count, count, rounds);
        });
      },
      0.02);
  return static_cast<double>(count * threads * 8 * rounds) / time;
}

}  // namespace

double Peaks::BandwidthAt(double bytes) const {
  for (const Bandwidth& b : bandwidths) {
    if (bytes <= static_cast<double>(b.bytes)) return b.per_second;
  }
  return bandwidths.back().per_second;
}

double LowTenth(std::vector<double> times) {
  const auto at = times.begin() + static_cast<int64_t>(times.size()) / 10;
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

double ReadBandwidth() {
  constexpr int64_t kFloats = 1 << 26, kParts = 64, kRounds = 4;  // 256 MB in parts of 4 MB
  const int64_t threads = math::ThreadCount(), count = kFloats / kParts / threads / 1024 * 1024;
  math::AlignedArray<float> x(kFloats);  // in large pages, as weights are
  std::fill_n(x.data(), kFloats, 1.0f);  // memory that was never written is one page of zeros
  std::vector<float> sinks(threads * 16);
  std::vector<double> times;
  for (int64_t part = 0; part < kParts * kRounds; ++part) {
    const float* from = x.data() + part % kParts * (kFloats / kParts);
    times.push_back(TimeOf([&] {
      OnEachThread(
          [&](int64_t t) { sinks[t * 16] += HWY_DYNAMIC_DISPATCH(Sum)(from + t * count, count); });
    }));
  }
  return static_cast<double>(count * threads * 4) / LowTenth(std::move(times));
}

Peaks MeasurePeaks() {
  Peaks peaks{.threads = static_cast<int>(math::ThreadCount()), .flops = PeakFlops()};
  for (int64_t bytes = 1 << 15; bytes <= 1 << 27; bytes *= 4) {
    peaks.bandwidths.push_back({bytes, BandwidthOf(bytes)});
  }
  return peaks;
}

void PrintPeaks(const Peaks& peaks) {
  std::printf("%d threads: multiply-add peak %.1f GFLOP/s; bandwidth (read + write):",
              peaks.threads, peaks.flops * 1e-9);
  for (const Peaks::Bandwidth& b : peaks.bandwidths) {
    std::printf(" %.0f GB/s for %d KiB", b.per_second * 1e-9, static_cast<int>(b.bytes >> 10));
    std::printf(&b == &peaks.bandwidths.back() ? "\n" : ",");
  }
}

}  // namespace anemone
#endif  // HWY_ONCE
