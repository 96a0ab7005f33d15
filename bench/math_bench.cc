// Measures the functions of math on typical layers, as a share of the roofline limit of this
// machine (bench/peaks.h), which is measured in the same run with the same number of threads.
//
//   math_bench [threads [filter]]     # default: all cores, every layer
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/peaks.h"
#include "math/attention/sdpa.h"
#include "math/conv/conv.h"
#include "math/conv/conv_transpose.h"
#include "math/conv/pool.h"
#include "math/core/parallel.h"
#include "math/elementwise/elementwise.h"
#include "math/elementwise/unary.h"
#include "math/gemm/coded_weights.h"
#include "math/gemm/gemm.h"
#include "math/move/convert.h"
#include "math/move/copy.h"
#include "math/move/resize.h"
#include "math/move/transpose.h"
#include "math/reduce/normalize.h"
#include "math/reduce/reduce.h"
#include "math/reduce/softmax.h"
#include "math/reduce/sort.h"
#include "tbb/global_control.h"
#include "tbb/task_arena.h"

namespace anemone::math {
namespace {

std::vector<Half> Numbers(int64_t count) {
  std::vector<Half> halves(count);
  uint32_t state = 12345;
  for (Half& half : halves) {
    state = state * 1664525 + 1013904223;
    half = ToHalf(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f);
  }
  return halves;
}

// Prints each measurement as a share of its roofline limit (bench/peaks.h). Bytes are those of
// operands, weights and result, each counted once.
class Report {
 public:
  Report(const Peaks& peaks, std::string filter) : peaks_(peaks), filter_(std::move(filter)) {}

  bool Wants(const std::string& name) const { return name.find(filter_) != std::string::npos; }
  // Returns seconds; 0 if the filter excludes it.
  template <class Body>
  double Measure(const std::string& name, double flops, double bytes, const Body& body) {
    if (!Wants(name)) return 0;
    const double time = BestTime(body);
    Print(name, flops, bytes, time, peaks_.LeastTime(flops, bytes));
    return time;
  }
  // Measures a convolution that a network contains `times` times.
  void Conv(const std::string& network, int64_t times, int64_t in, int64_t size, int64_t out,
            int64_t kernel, int64_t stride, int64_t groups = 1) {
    const std::string name = network + " " + std::to_string(kernel) + "x" + std::to_string(kernel) +
                             (stride == 2 ? "/2 " : " ") + std::to_string(in) + "->" +
                             std::to_string(out) + " @" + std::to_string(size) +
                             (groups == 1    ? ""
                              : groups == in ? " depthwise"
                                             : " in " + std::to_string(groups) + " groups");
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
    const double bytes = 2.0 * (x.size() + y.size() + weights);
    const double time =
        Measure(name, flops, bytes, [&] { math::Conv(packed, x, absl::MakeSpan(y)); });
    if (time == 0) return;
    sum_time_ += time * times;
    sum_flops_ += flops * times;
    sum_bytes_ += bytes * times;
    sum_least_ += peaks_.LeastTime(flops, bytes) * times;
  }
  // Measures multiply(i) for each of `count` matrices of `bytes` bytes. They take turns, so that
  // memory is read and not a cache.
  template <class Multiply>
  void Weights(const std::string& name, int64_t bytes, size_t count, const Multiply& multiply) {
    if (read_bandwidth_ == 0) {
      read_bandwidth_ = ReadBandwidth();
      std::printf("memory is read at %.1f GB/s\n", read_bandwidth_ * 1e-9);
    }
    constexpr size_t kRounds = 8;
    std::vector<double> times;
    for (size_t i = 0; i < kRounds * count; ++i) {
      times.push_back(TimeOf([&] { multiply(i % count); }));
    }
    const double time = LowTenth(std::move(times));
    const double speed = static_cast<double>(bytes) / time;
    std::printf("%-44s %9.3f ms %7.2f GB/s of weights %5.1f %% of memory's\n", name.c_str(),
                time * 1e3, speed * 1e-9, speed / read_bandwidth_ * 100);
    std::fflush(stdout);
  }
  void Sum(const std::string& network) {
    if (sum_time_ == 0) return;
    Print(network + " total", sum_flops_, sum_bytes_, sum_time_, sum_least_);
    std::printf("\n");
    sum_time_ = sum_flops_ = sum_bytes_ = sum_least_ = 0;
  }

 private:
  static void Print(const std::string& name, double flops, double bytes, double time,
                    double least) {
    std::printf("%-44s %9.3f ms %8.1f GFLOP/s %7.2f GB/s %5.1f %% of the roof\n", name.c_str(),
                time * 1e3, flops / time * 1e-9, bytes / time * 1e-9, least / time * 100);
    std::fflush(stdout);
  }

  const Peaks& peaks_;
  const std::string filter_;
  double read_bandwidth_ = 0;
  double sum_time_ = 0, sum_flops_ = 0, sum_bytes_ = 0, sum_least_ = 0;
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
  report.Conv("ShuffleNet", 1, 136, 28, 136, 1, 1, 4);
  report.Conv("ShuffleNet", 1, 272, 14, 272, 1, 1, 4);
  report.Sum("ShuffleNet's layers");
}

void Deconvolutions(Report& report) {  // 2x2/2 as in PP-OCR's detector, and 4x4/2
  for (int64_t kernel : {2, 4}) {
    const int64_t pad = (kernel - 2) / 2;
    const ConvTransposeShape shape{.in_channels = 64,
                                   .in_h = 80,
                                   .in_w = 80,
                                   .out_channels = 64,
                                   .window = {.kernel_h = kernel,
                                              .kernel_w = kernel,
                                              .stride_h = 2,
                                              .stride_w = 2,
                                              .pad_top = pad,
                                              .pad_left = pad,
                                              .pad_bottom = pad,
                                              .pad_right = pad}};
    const int64_t weights = 64 * 64 * kernel * kernel;
    const PackedConvTranspose packed = PackConvTranspose(shape, Numbers(weights), {});
    const std::vector<Half> x = Numbers(64 * 80 * 80);
    std::vector<Half> y(64 * shape.out_h() * shape.out_w());
    report.Measure(
        kernel == 2 ? "deconvolution 2x2/2 64->64 @80" : "deconvolution 4x4/2 64->64 @80",
        2.0 * weights * 80 * 80, 2.0 * (x.size() + y.size() + weights),
        [&] { ConvTranspose(packed, x, absl::MakeSpan(y)); });
  }
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
    const double flops = 2.0 * m * k * n, bytes = 2.0 * (m * k + k * n + m * n);
    report.Measure("product " + size + " packed", flops, bytes, [&] {
      Gemm(shape, a, RowMajor(k), packed, {}, absl::MakeSpan(c), RowMajor(n));
    });
    report.Measure("product " + size, flops, bytes, [&] {
      Gemm(shape, a, RowMajor(k), b, RowMajor(n), {}, absl::MakeSpan(c), RowMajor(n));
    });
    report.Measure("product " + size + " transposed", flops, bytes, [&] {
      Gemm(shape, a, RowMajor(k), b, ColumnMajor(k), {}, absl::MakeSpan(c), RowMajor(n));
    });
  }
}

// The product of one row, as of one token, in the forms of weights: fp16, int8 with a scale for
// each column, and uint4 with a scale and a zero point for each block of 32 terms.
void OneRow(Report& report) {
  const std::string name = "one row by 2048x2400, ";
  if (!report.Wants(name)) return;
  constexpr int64_t kTerms = 2048, kColumns = 2400, kBlock = 32;
  const std::vector<Half> a = Numbers(kTerms), weights = Numbers(kTerms * kColumns);
  const auto read = [&](int64_t first, absl::Span<Half> to) {
    std::copy_n(weights.data() + first, to.size(), to.data());
  };
  std::vector<std::byte> codes(weights.size());
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(weights[i].bits);
  for (int bits : {16, 8, 4}) {
    const int64_t runs = bits == 4 ? kTerms / kBlock : 1;
    const std::vector<float> scales(kColumns * runs, 0.01f);
    const std::vector<int16_t> zeros(bits == 4 ? scales.size() : 0, 7);
    CodedWeights coded{.form = bits == 16 ? WeightForm::kDense : WeightForm::kAffine,
                       .bits = bits,
                       .is_signed = bits == 8,
                       .codes = codes.data(),
                       .scales = scales,
                       .zero_points = zeros};
    coded.grid = {.axis = kColumns * runs,
                  .inner = kTerms / runs,
                  .block = 1,
                  .outer_stride = 0,
                  .axis_stride = 1,
                  .inner_stride = 0};
    std::vector<PackedMatrix> matrices;
    int64_t bytes = 0;
    while (bytes < int64_t{256} << 20) {
      matrices.push_back(PackMatrix(kTerms, kColumns, MatrixOrder::kColumnMajor, read, &coded));
      bytes += matrices.back().bytes();
    }
    std::vector<Half> c(kColumns);
    report.Weights(name + std::to_string(bits) + " bits", matrices[0].bytes(), matrices.size(),
                   [&](size_t i) {
                     Gemm({.m = 1, .k = kTerms, .n = kColumns}, a, RowMajor(kTerms), matrices[i],
                          {}, absl::MakeSpan(c), RowMajor(kColumns));
                   });
  }
}

void Attention(Report& report) {
  for (const auto& lengths :
       std::vector<std::array<int64_t, 2>>{{128, 128}, {512, 512}, {1, 1024}}) {
    const int64_t queries = lengths[0], keys = lengths[1];
    const SdpaShape shape{
        .heads = 12, .queries = queries, .keys = keys, .dim = 64, .value_dim = 64};
    const std::vector<Half> q = Numbers(queries * 12 * 64), k = Numbers(keys * 12 * 64);
    std::vector<Half> y(q.size());
    report.Measure(
        "sdpa 12 heads of 64, " + std::to_string(queries) + " by " + std::to_string(keys),
        4.0 * 12 * 64 * queries * keys, 4.0 * (q.size() + k.size()),
        [&] { Sdpa(shape, 0.125f, q, k, k, {}, absl::MakeSpan(y)); });
  }
}

// Functions that read every element once and are limited by memory bandwidth alone.
void Elementwise(Report& report) {
  const int64_t count = 256 * 56 * 56;
  const Extents extents = {1, 1, 256, 56, 56};
  const double bytes = 4.0 * count;  // one operand, one result
  const std::vector<Half> a = Numbers(count), b = Numbers(count);
  std::vector<Half> y(count);
  const absl::Span<Half> to = absl::MakeSpan(y);
  report.Measure("add", 0, 1.5 * bytes,
                 [&] { Binary(BinaryOp::kAdd, a, extents, b, extents, to, extents); });
  report.Measure("mul by channel", 0, bytes, [&] {
    Binary(BinaryOp::kMul, a, extents, absl::MakeSpan(b).subspan(0, 256), {1, 1, 256, 1, 1}, to,
           extents);
  });
  report.Measure("relu", 0, bytes, [&] { Relu(a, to); });
  const auto table = TableFor({Unary::kSigmoid});
  report.Measure("function by table lookup", 0, bytes, [&] { ApplyTable(*table, a, to); });
  report.Measure("gelu", 0, bytes, [&] { Gelu(a, to); });
  report.Measure("softmax over 1x1x256x56x56, W", 0, bytes,
                 [&] { Softmax(extents, AxisSet({kAxisW}), a, to); });
  const Extents tokens = {1, 1, 1, 1024, 768};
  const absl::Span<const Half> rows = absl::MakeSpan(a).subspan(0, Count(tokens));
  const absl::Span<Half> to_rows = to.subspan(0, rows.size());
  report.Measure("layer norm of 1024 rows of 768", 0, 4.0 * rows.size(),
                 [&] { Normalize(tokens, AxisSet({kAxisW}), {}, {}, {}, rows, to_rows); });
  report.Measure("mean over H and W", 0, bytes / 2, [&] {
    Reduce(ReduceOp::kMean, extents, AxisSet({kAxisH, kAxisW}), a, to.subspan(0, 256));
  });
  report.Measure("transpose, C last", 0, bytes, [&] {
    Transpose(extents, {kAxisN, kAxisD, kAxisH, kAxisW, kAxisC}, a, to);
  });
}

// Functions that move data or work on short rows: limited by memory bandwidth, if vectors run along
// the longer axes.
void ShortRows(Report& report) {
  const int64_t count = 4 * 512 * 896;
  const std::vector<Half> a = Numbers(count), b = Numbers(count);
  std::vector<Half> y(2 * count);
  const auto measure = [&](const std::string& name, int64_t in, int64_t out, const auto& body) {
    report.Measure(name, 0, 2.0 * (in + out), [&] {
      body(absl::MakeSpan(a).subspan(0, in), absl::MakeSpan(y).subspan(0, out));
    });
  };
  for (const auto& rows : std::vector<std::array<int64_t, 2>>{
           {1076, 2}, {458752, 4}, {16384, 21}, {16384, 56}, {2400, 400}}) {
    measure("softmax of " + std::to_string(rows[0]) + " rows of " + std::to_string(rows[1]),
            rows[0] * rows[1], rows[0] * rows[1], [&](auto x, auto to) {
              Softmax({1, 1, 1, rows[0], rows[1]}, AxisSet({kAxisW}), x, to);
            });
  }
  const auto transpose = [&](const std::string& name, const Extents& extents,
                             const std::array<int, kRank>& axes) {
    measure("transpose " + name, Count(extents), Count(extents),
            [&](auto x, auto to) { Transpose(extents, axes, x, to); });
  };
  constexpr std::array<int, kRank> kSwap = {0, 1, 4, 3, 2}, kLast = {0, 1, 3, 4, 2};
  transpose("896x512x4 to 4x512x896", {1, 1, 896, 512, 4}, kSwap);
  transpose("4x512x448 to 448x512x4", {1, 1, 4, 512, 448}, kSwap);
  transpose("16x256x224 to 224x256x16", {1, 1, 16, 256, 224}, kSwap);
  transpose("448x256x16 to 16x256x448", {1, 1, 448, 256, 16}, kSwap);
  transpose("21x257x257 to 257x257x21", {1, 1, 21, 257, 257}, kLast);
  transpose("257x257x21 to 21x257x257", {1, 1, 257, 257, 21}, {0, 1, 4, 2, 3});
  transpose("3x512x896 to 512x896x3", {1, 1, 3, 512, 896}, kLast);
  transpose("512x896x3 to 3x512x896", {1, 1, 512, 896, 3}, {0, 1, 4, 2, 3});
  transpose("12x128x64 to 128x12x64", {1, 1, 12, 128, 64}, {0, 1, 3, 2, 4});
  const auto multiply = [&](const std::string& name, const Extents& with, const Extents& out) {
    measure("mul " + name, Count(out) + Count(with), Count(out), [&](auto x, auto to) {
      Binary(BinaryOp::kMul, x.subspan(0, Count(out)), out,
             absl::MakeSpan(b).subspan(0, Count(with)), with, to, out);
    });
  };
  multiply("512x128x1x3 by 512x128x1x1", {512, 1, 128, 1, 1}, {512, 1, 128, 1, 3});
  multiply("512x128x1x3 by 512x1x1x3", {512, 1, 1, 1, 3}, {512, 1, 128, 1, 3});
  multiply("65536x3 by 3", {1, 1, 1, 1, 3}, {1, 1, 1, 65536, 3});
  multiply("256x1048x1x1 by 1048", {1, 1, 1048, 1, 1}, {256, 1, 1048, 1, 1});
  multiply("64x64x7x7 by 64", {1, 1, 64, 1, 1}, {64, 1, 64, 7, 7});
  multiply("64x64x4x16 by 64x1x4x1", {64, 1, 1, 4, 1}, {64, 1, 64, 4, 16});
  measure("broadcast 512x128x1x1 to 512x128x1x3", 512 * 128, 512 * 128 * 3, [&](auto x, auto to) {
    Broadcast({512, 1, 128, 1, 1}, {512, 1, 128, 1, 3}, x, to);
  });
  measure("broadcast 512x3 to 512x128x3", 512 * 3, 512 * 128 * 3, [&](auto x, auto to) {
    Broadcast({512, 1, 1, 1, 3}, {512, 1, 128, 1, 3}, x, to);
  });
  for (int64_t size : {4, 16, 128}) {
    const int64_t planes = 48 * 128 * 128 / size / size, out = size + 3;
    measure("pad " + std::to_string(planes) + "x" + std::to_string(size) + "x" +
                std::to_string(size) + " by 1 and 2",
            planes * size * size, planes * out * out, [&](auto x, auto to) {
              Pad({1, 1, planes, size, size}, {0, 0, 0, 1, 1}, {0, 0, 0, 2, 2}, PadMode::kConstant,
                  kHalfZero, x, to);
            });
  }
  for (int64_t size : {7, 20, 80}) {
    std::vector<int32_t> twice(2 * size);
    for (size_t i = 0; i < twice.size(); ++i) twice[i] = static_cast<int32_t>(i / 2);
    const ResizeShape shape{.planes = 96, .in_h = size, .in_w = size};
    measure("nearest resize by 2, 96x" + std::to_string(size) + "x" + std::to_string(size),
            96 * size * size, 4 * 96 * size * size,
            [&](auto x, auto to) { ResizeNearest(shape, twice, twice, x, to); });
  }
  for (int64_t size : {24, 128, 384}) {
    measure("layer norm of 400 rows of " + std::to_string(size), 400 * size, 400 * size,
            [&](auto x, auto to) {
              const std::vector<float> terms(size, 0.5f);
              const NormalizeTerm term{terms, {1, 1, 1, 1, size}};
              Normalize({1, 1, 1, 400, size}, AxisSet({kAxisW}), {}, term, term, x, to);
            });
  }
  for (const auto& rows :
       std::vector<std::array<int64_t, 2>>{{65536, 3}, {16384, 49}, {512, 400}}) {
    measure("mean of " + std::to_string(rows[0]) + " rows of " + std::to_string(rows[1]),
            rows[0] * rows[1], rows[0], [&](auto x, auto to) {
              Reduce(ReduceOp::kMean, {1, 1, 1, rows[0], rows[1]}, AxisSet({kAxisW}), x, to);
            });
  }
  measure("sum of 512x128x3 along 512", 512 * 128 * 3, 128 * 3, [&](auto x, auto to) {
    Reduce(ReduceOp::kSum, {1, 1, 512, 128, 3}, AxisSet({kAxisC}), x, to);
  });
  for (const auto& line : std::vector<std::array<int64_t, 2>>{{64, 16}, {256, 256}}) {
    const int64_t size = line[0], count = line[1];
    measure(
        "largest " + std::to_string(count) + " of 64 rows of " + std::to_string(size), 64 * size,
        64 * count, [&](auto x, auto to) {
          const int64_t lanes[] = {0};
          Sort({.lanes = lanes, .descending = true, .count = count}, {1, 1, 1, 64, size}, x, to);
        });
  }
}

void Conversions(Report& report) {
  const int64_t count = 256 * 56 * 56;
  std::vector<Half> halves = Numbers(count);
  std::vector<float> floats(count);
  report.Measure("fp16 to fp32", 0, 6.0 * count,
                 [&] { HalfToFloat(halves, absl::MakeSpan(floats)); });
  report.Measure("fp32 to fp16", 0, 6.0 * count,
                 [&] { FloatToHalf(floats, absl::MakeSpan(halves)); });
  // Rows of a surface begin at multiples of 64 bytes, so 56 Halfs take 128 bytes.
  const Extents extents = {1, 1, 256, 56, 56};
  Layout padded = DenseLayout(Element::kHalf, {1, 1, 256, 56, 64});
  std::vector<Half> surface(256 * 56 * 64);
  report.Measure("fp32 to a surface", 0, 6.0 * count, [&] {
    ConvertStrided(extents, floats.data(), DenseLayout(Element::kFloat, extents), surface.data(),
                   padded);
  });
}

void Pools(Report& report) {
  const PoolShape shape{.planes = 64,
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
  const std::vector<Half> x = Numbers(shape.planes * shape.in_h * shape.in_w);
  std::vector<Half> y(shape.planes * shape.out_h * shape.out_w);
  const double bytes = 2.0 * (x.size() + y.size());
  report.Measure("max pool 3x3/2 64 @112", 0, bytes, [&] { MaxPool(shape, x, absl::MakeSpan(y)); });
  report.Measure("average pool 3x3/2 64 @112", 0, bytes,
                 [&] { AveragePool(shape, AverageDivisor::kInside, x, absl::MakeSpan(y)); });
}

int Main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  threads > 0 ? threads : tbb::this_task_arena::max_concurrency());
  tbb::task_arena arena(threads > 0 ? threads : tbb::task_arena::automatic);
  arena.execute([&] {
    const Peaks peaks = MeasurePeaks();
    PrintPeaks(peaks);
    Report report(peaks, argc > 2 ? argv[2] : "");
    ResNet50(report);
    OtherConvolutions(report);
    Deconvolutions(report);
    Products(report);
    OneRow(report);
    Attention(report);
    Elementwise(report);
    ShortRows(report);
    Conversions(report);
    Pools(report);
  });
  return 0;
}

}  // namespace
}  // namespace anemone::math

int main(int argc, char** argv) { return anemone::math::Main(argc, argv); }
