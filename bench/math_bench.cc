// Speed of engine/math on typical layers, as a share of what this machine's multiply-add units can
// do: the peak is measured in the same run, with the same threads.
//
//   math_bench [threads [filter]]     # default: all cores, every layer
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/math/conv.h"
#include "engine/math/elementwise.h"
#include "engine/math/gemm.h"
#include "engine/math/parallel.h"
#include "engine/math/pool.h"
#include "engine/math/sdpa.h"
#include "engine/math/softmax.h"
#include "engine/math/unary.h"
#include "tbb/global_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/math_bench.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains hide the latency of every machine's multiply-add. Returns operations done.
double MultiplyAddLoop(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto w = hn::Set(d, 0.999f);
  // Different, or the compiler makes one chain of all.
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

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {
namespace {

HWY_EXPORT(MultiplyAddLoop);

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

// Shortest of several runs over about a third of a second.
template <class Body>
double BestTime(const Body& body) {
  body();
  double best = 1e9;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 5 || (Seconds(start) < 0.3 && i < 1000); ++i) {
    const Clock::time_point begin = Clock::now();
    body();
    best = std::min(best, Seconds(begin));
  }
  return best;
}

double PeakFlops() {
  std::vector<float> sinks(ThreadCount() * 16);
  double operations = 0;
  const double time = BestTime([&] {
    tbb::parallel_for(int64_t{0}, ThreadCount(), [&](int64_t t) {
      const double done = HWY_DYNAMIC_DISPATCH(MultiplyAddLoop)(1'000'000, &sinks[t * 16]);
      if (t == 0) operations = done * ThreadCount();
    });
  });
  return operations / time;
}

std::vector<Half> Numbers(int64_t count) {
  std::vector<Half> halves(count);
  uint32_t state = 12345;
  for (Half& half : halves) {
    state = state * 1664525 + 1013904223;
    half = ToHalf(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f);
  }
  return halves;
}

class Report {
 public:
  Report(double peak, std::string filter) : peak_(peak), filter_(std::move(filter)) {}

  template <class Body>
  void Flops(const std::string& name, double flops, const Body& body) {
    if (name.find(filter_) == std::string::npos) return;
    const double time = BestTime(body);
    std::printf("%-44s %9.3f ms %8.1f GFLOP/s %5.1f %% of peak\n", name.c_str(), time * 1e3,
                flops / time * 1e-9, flops / time / peak_ * 100);
    std::fflush(stdout);
  }
  template <class Body>
  void Bytes(const std::string& name, double bytes, const Body& body) {
    if (name.find(filter_) == std::string::npos) return;
    const double time = BestTime(body);
    std::printf("%-44s %9.3f ms %8.2f GB/s\n", name.c_str(), time * 1e3, bytes / time * 1e-9);
    std::fflush(stdout);
  }
  // A convolution of a network, counted `times` in the network's sum.
  void Conv(const std::string& network, int64_t times, int64_t in, int64_t size, int64_t out,
            int64_t kernel, int64_t stride, int64_t groups = 1) {
    const std::string name = network + " " + std::to_string(kernel) + "x" + std::to_string(kernel) +
                             (stride == 2 ? "/2 " : " ") + std::to_string(in) + "->" +
                             std::to_string(out) + " @" + std::to_string(size) +
                             (groups == 1 ? "" : " depthwise");
    if (name.find(filter_) == std::string::npos) return;
    ConvShape shape{
        .in_channels = in, .in_h = size, .in_w = size, .out_channels = out, .groups = groups};
    shape.window = {.kernel_h = kernel,
                    .kernel_w = kernel,
                    .stride_h = stride,
                    .stride_w = stride,
                    .pad_top = kernel / 2,
                    .pad_left = kernel / 2,
                    .pad_bottom = kernel / 2,
                    .pad_right = kernel / 2};
    const int64_t weights = out * in / groups * kernel * kernel;
    const PackedConv packed = PackConv(shape, Numbers(weights), {});
    const std::vector<Half> x = Numbers(in * size * size);
    std::vector<Half> y(out * shape.out_h() * shape.out_w());
    const double flops = 2.0 * weights * shape.out_h() * shape.out_w();
    const double before = sum_time_;
    const double time = BestTime([&] { math::Conv(packed, x, absl::MakeSpan(y)); });
    std::printf("%-44s %9.3f ms %8.1f GFLOP/s %5.1f %% of peak  x%d\n", name.c_str(), time * 1e3,
                flops / time * 1e-9, flops / time / peak_ * 100, static_cast<int>(times));
    std::fflush(stdout);
    sum_time_ = before + time * times;
    sum_flops_ += flops * times;
  }
  void Sum(const std::string& network) {
    if (sum_time_ == 0) return;
    std::printf("%-44s %9.3f ms %8.1f GFLOP/s %5.1f %% of peak\n\n", (network + " in all").c_str(),
                sum_time_ * 1e3, sum_flops_ / sum_time_ * 1e-9,
                sum_flops_ / sum_time_ / peak_ * 100);
    sum_time_ = sum_flops_ = 0;
  }

 private:
  double peak_;
  std::string filter_;
  double sum_time_ = 0, sum_flops_ = 0;
};

void ResNet50(Report& report) {
  const std::string n = "ResNet-50";
  report.Conv(n, 1, 3, 224, 64, 7, 2);
  report.Conv(n, 1, 64, 56, 64, 1, 1);
  report.Conv(n, 3, 64, 56, 64, 3, 1);
  report.Conv(n, 4, 64, 56, 256, 1, 1);
  report.Conv(n, 2, 256, 56, 64, 1, 1);
  report.Conv(n, 1, 256, 56, 128, 1, 1);
  report.Conv(n, 1, 128, 56, 128, 3, 2);
  report.Conv(n, 1, 256, 56, 512, 1, 2);
  report.Conv(n, 4, 128, 28, 512, 1, 1);
  report.Conv(n, 3, 512, 28, 128, 1, 1);
  report.Conv(n, 3, 128, 28, 128, 3, 1);
  report.Conv(n, 1, 512, 28, 256, 1, 1);
  report.Conv(n, 1, 256, 28, 256, 3, 2);
  report.Conv(n, 1, 512, 28, 1024, 1, 2);
  report.Conv(n, 6, 256, 14, 1024, 1, 1);
  report.Conv(n, 5, 1024, 14, 256, 1, 1);
  report.Conv(n, 5, 256, 14, 256, 3, 1);
  report.Conv(n, 1, 1024, 14, 512, 1, 1);
  report.Conv(n, 1, 512, 14, 512, 3, 2);
  report.Conv(n, 1, 1024, 14, 2048, 1, 2);
  report.Conv(n, 3, 512, 7, 2048, 1, 1);
  report.Conv(n, 2, 2048, 7, 512, 1, 1);
  report.Conv(n, 2, 512, 7, 512, 3, 1);
  report.Sum(n);
}

void OtherConvolutions(Report& report) {
  report.Conv("VGG", 1, 3, 224, 64, 3, 1);
  report.Conv("VGG", 1, 64, 224, 64, 3, 1);
  report.Conv("VGG", 1, 128, 112, 128, 3, 1);
  report.Conv("VGG", 1, 512, 28, 512, 3, 1);
  report.Conv("VGG", 1, 512, 14, 512, 3, 1);
  report.Sum("VGG's layers");
  report.Conv("MobileNet", 1, 3, 224, 32, 3, 2);
  report.Conv("MobileNet", 1, 32, 112, 32, 3, 1, 32);
  report.Conv("MobileNet", 1, 96, 112, 96, 3, 2, 96);
  report.Conv("MobileNet", 1, 144, 56, 144, 3, 1, 144);
  report.Conv("MobileNet", 1, 384, 14, 384, 3, 1, 384);
  report.Conv("MobileNet", 1, 960, 7, 960, 3, 1, 960);
  report.Conv("MobileNet", 1, 96, 56, 24, 1, 1);
  report.Conv("MobileNet", 1, 24, 56, 144, 1, 1);
  report.Conv("MobileNet", 1, 160, 7, 960, 1, 1);
  report.Sum("MobileNet's layers");
}

void Products(Report& report) {
  for (const auto& mkn : std::vector<std::array<int64_t, 3>>{{1, 2048, 1000},
                                                             {1, 4096, 4096},
                                                             {4, 768, 3072},
                                                             {128, 768, 768},
                                                             {128, 768, 3072},
                                                             {128, 3072, 768},
                                                             {1024, 1024, 1024}}) {
    const int64_t m = mkn[0], k = mkn[1], n = mkn[2];
    const std::string size = std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
    const std::vector<Half> a = Numbers(m * k), b = Numbers(k * n);
    std::vector<Half> c(m * n);
    const PackedMatrix packed = PackMatrix(k, n, MatrixOrder::kRowMajor, b);
    const GemmShape shape{.m = m, .k = k, .n = n};
    report.Flops("product " + size + " packed", 2.0 * m * k * n,
                 [&] { Gemm(shape, a, RowMajor(k), packed, {}, absl::MakeSpan(c), RowMajor(n)); });
    report.Flops("product " + size, 2.0 * m * k * n, [&] {
      Gemm(shape, a, RowMajor(k), b, RowMajor(n), {}, absl::MakeSpan(c), RowMajor(n));
    });
    report.Flops("product " + size + " transposed", 2.0 * m * k * n, [&] {
      Gemm(shape, a, RowMajor(k), b, ColumnMajor(k), {}, absl::MakeSpan(c), RowMajor(n));
    });
  }
}

void OtherUnits(Report& report) {
  for (const auto& lengths :
       std::vector<std::array<int64_t, 2>>{{128, 128}, {512, 512}, {1, 1024}}) {
    const int64_t queries = lengths[0], keys = lengths[1];
    const SdpaShape shape{
        .heads = 12, .queries = queries, .keys = keys, .dim = 64, .value_dim = 64};
    const std::vector<Half> q = Numbers(queries * 12 * 64), k = Numbers(keys * 12 * 64);
    std::vector<Half> y(q.size());
    report.Flops("sdpa 12 heads of 64, " + std::to_string(queries) + " by " + std::to_string(keys),
                 4.0 * 12 * 64 * queries * keys,
                 [&] { Sdpa(shape, 0.125f, q, k, k, {}, absl::MakeSpan(y)); });
  }
  const int64_t count = 256 * 56 * 56;
  const Extents extents = {1, 1, 256, 56, 56};
  const std::vector<Half> a = Numbers(count), b = Numbers(count);
  std::vector<Half> y(count);
  report.Bytes("add", 6.0 * count,
               [&] { Binary(BinaryOp::kAdd, a, extents, b, extents, absl::MakeSpan(y), extents); });
  report.Bytes("mul by channel", 4.0 * count, [&] {
    Binary(BinaryOp::kMul, a, extents, absl::MakeSpan(b).subspan(0, 256), {1, 1, 256, 1, 1},
           absl::MakeSpan(y), extents);
  });
  report.Bytes("relu", 4.0 * count, [&] { Relu(a, absl::MakeSpan(y)); });
  const auto gelu = TableFor({Unary::kGelu});
  report.Bytes("gelu", 4.0 * count, [&] { ApplyTable(*gelu, a, absl::MakeSpan(y)); });
  report.Bytes("softmax over 1x1x256x56x56, W", 4.0 * count,
               [&] { Softmax(extents, AxisSet({kAxisW}), a, absl::MakeSpan(y)); });
  const PoolShape pool{.planes = 64,
                       .in_h = 112,
                       .in_w = 112,
                       .out_h = 56,
                       .out_w = 56,
                       .window = {.kernel_h = 3,
                                  .kernel_w = 3,
                                  .stride_h = 2,
                                  .stride_w = 2,
                                  .pad_top = 1,
                                  .pad_left = 1,
                                  .pad_bottom = 1,
                                  .pad_right = 1}};
  report.Bytes("max pool 3x3/2 64 @112", 2.0 * 64 * (112 * 112 + 56 * 56), [&] {
    MaxPool(pool, absl::MakeSpan(a).subspan(0, 64 * 112 * 112),
            absl::MakeSpan(y).subspan(0, 64 * 56 * 56));
  });
}

int Main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  threads > 0 ? threads : tbb::this_task_arena::max_concurrency());
  tbb::task_arena arena(threads > 0 ? threads : tbb::task_arena::automatic);
  arena.execute([&] {
    const double peak = PeakFlops();
    std::printf("%d threads, multiply-add peak %.1f GFLOP/s\n", static_cast<int>(ThreadCount()),
                peak * 1e-9);
    Report report(peak, argc > 2 ? argv[2] : "");
    ResNet50(report);
    OtherConvolutions(report);
    Products(report);
    OtherUnits(report);
  });
  return 0;
}

}  // namespace
}  // namespace anemone::math

int main(int argc, char** argv) { return anemone::math::Main(argc, argv); }
#endif  // HWY_ONCE
