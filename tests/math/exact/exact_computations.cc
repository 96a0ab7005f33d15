#include "tests/math/exact/exact_computations.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <random>
#include <utility>

#include "math/exact/exact_contract.h"
#include "math/exact/exact_elementwise.h"
#include "math/exact/exact_pool.h"
#include "math/exact/exact_reduce.h"
#include "math/exact/exact_table.h"

namespace anemone::math {
namespace {

// Returns a number in [-1, 1). std::uniform_real_distribution differs between machines, this does
// not.
float Uniform(std::mt19937& random) {
  return static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
}

std::vector<float> RandomFloats(int64_t count, float scale, int seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = scale * Uniform(random);
  return values;
}

Computation ConvOf(std::string name, ConvShape shape, float scale) {
  const Window& w = shape.window;
  const Halfs weights = RandomHalfs(
      shape.out_channels * shape.in_channels / shape.groups * w.kernel_h * w.kernel_w, scale, 7);
  const std::vector<float> bias = RandomFloats(shape.out_channels, scale, 8);
  return {std::move(name), shape.in_channels * shape.in_h * shape.in_w,
          shape.out_channels * shape.out_h() * shape.out_w(), scale,
          [=](const Numerics& n, int64_t batch, absl::Span<const Half> x, absl::Span<Half> y) {
            ConvShape of_batch = shape;
            of_batch.batch = batch;
            ExactConv(n, of_batch, x, weights, {.offset = bias}, y);
          }};
}

Computation GemmOf(std::string name, int64_t m, int64_t k, int64_t columns, float scale) {
  const Halfs b = RandomHalfs(k * columns, scale, 9);
  return {std::move(name), m * k, m * columns, scale,
          [=](const Numerics& n, int64_t batch, absl::Span<const Half> x, absl::Span<Half> y) {
            MatrixLayout from = RowMajor(k), to = RowMajor(columns);
            from.batch[2] = m * k;
            to.batch[2] = m * columns;
            ExactGemm(n, {.m = m, .k = k, .n = columns, .batch = {1, 1, batch}}, x, from, b,
                      RowMajor(columns), {}, y, to);
          }};
}

// A computation on arrays whose first axis is the batch.
template <class Run>
Computation Over(std::string name, Extents image, Extents out, float scale, Run run) {
  return {std::move(name), Count(image), Count(out), scale,
          [=](const Numerics& n, int64_t batch, absl::Span<const Half> x, absl::Span<Half> y) {
            Extents extents = image;
            extents[0] = batch;
            run(n, extents, x, y);
          }};
}

}  // namespace

Halfs RandomHalfs(int64_t count, float scale, int seed, bool has_infinities) {
  std::mt19937 random(seed);
  Halfs values(count);
  for (Half& value : values) {
    value = ToHalf(scale * Uniform(random));
    if (random() % 16 == 0) value.bits = static_cast<uint16_t>(random() % 0x800);  // +0 to 2^-13
    if (has_infinities && random() % 97 == 0) value = kHalfInfinity;
  }
  return values;
}

std::vector<Computation> Computations() {
  const Extents image = {1, 1, 5, 7, 9}, columns = {1, 1, 5, 7, 1};
  const AxisSet width({kAxisW}), plane({kAxisH, kAxisW});
  const std::vector<float> gamma = RandomFloats(9, 2, 3), beta = RandomFloats(9, 2, 4);
  std::vector<Computation> all = {
      ConvOf("conv",
             {.in_channels = 13,
              .in_h = 9,
              .in_w = 11,
              .out_channels = 10,
              .window = {.kernel_h = 3,
                         .kernel_w = 3,
                         .pad_top = 1,
                         .pad_left = 1,
                         .pad_bottom = 1,
                         .pad_right = 1}},
             4),
      ConvOf("overflowing_conv", {.in_channels = 40, .in_h = 5, .in_w = 5, .out_channels = 3}, 90),
      ConvOf("depthwise",
             {.in_channels = 6,
              .in_h = 8,
              .in_w = 8,
              .out_channels = 6,
              .groups = 6,
              .window = {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2}},
             2),
      GemmOf("gemm", 5, 67, 33, 3),
      GemmOf("tall_gemm", 40, 31, 3, 3),
      GemmOf("vector_gemm", 1, 130, 50, 3)};
  all.push_back(
      Over("softmax", image, image, 8, [=](const Numerics& n, const Extents& e, auto x, auto y) {
        ExactSoftmax(n, e, width, x, y);
      }));
  all.push_back(Over("channel_softmax", image, image, 8,
                     [=](const Numerics& n, const Extents& e, auto x, auto y) {
                       ExactSoftmax(n, e, AxisSet({kAxisC}), x, y);
                     }));
  all.push_back(
      Over("layer_norm", image, image, 8, [=](const Numerics& n, const Extents& e, auto x, auto y) {
        ExactNormalize(n, e, width, 1e-3f, {gamma, {1, 1, 1, 1, 9}}, {beta, {1, 1, 1, 1, 9}}, x, {},
                       y);
      }));
  all.push_back(Over("instance_norm", image, image, 8,
                     [=](const Numerics& n, const Extents& e, auto x, auto y) {
                       ExactNormalize(n, e, plane, 1e-3f, {}, {}, x, {}, y);
                     }));
  all.push_back(
      Over("l2_norm", image, image, 8, [=](const Numerics& n, const Extents& e, auto x, auto y) {
        ExactL2Normalize(n, e, AxisSet({kAxisC}), 1e-3f, x, y);
      }));
  all.push_back(Over("reduce_mean", image, columns, 100,
                     [=](const Numerics& n, const Extents& e, auto x, auto y) {
                       ExactReduce(n, ReduceOp::kMean, /*squares=*/false, e, width, x, y);
                     }));
  all.push_back(Over("average_pool", image, {1, 1, 5, 4, 5}, 8,
                     [](const Numerics& n, const Extents& e, auto x, auto y) {
                       const PoolShape shape = {.planes = e[0] * 5,
                                                .in_h = 7,
                                                .in_w = 9,
                                                .out_h = 4,
                                                .out_w = 5,
                                                .window = {.kernel_h = 3,
                                                           .kernel_w = 3,
                                                           .stride_h = 2,
                                                           .stride_w = 2,
                                                           .pad_top = 1,
                                                           .pad_left = 1,
                                                           .pad_bottom = 1,
                                                           .pad_right = 1}};
                       ExactAveragePool(n, shape, AverageDivisor::kInside, x, y);
                     }));
  all.push_back(
      Over("divide", image, image, 300, [](const Numerics& n, const Extents& e, auto x, auto y) {
        const Halfs by = RandomHalfs(5, 3, 11);
        ExactBinary(n, BinaryOp::kDiv, x, e, by, {1, 1, 5, 1, 1}, y, e);
      }));
  all.push_back(
      Over("affine", image, image, 300, [](const Numerics& n, const Extents&, auto x, auto y) {
        ExactAffine(n, /*rounds_product=*/true, x, 1.7f, -0.3f, y);
      }));
  all.push_back(
      Over("gelu", image, image, 8, [](const Numerics& n, const Extents&, auto x, auto y) {
        ApplyTable(*ExactTableFor({Unary::kGelu}, n), x, y);
      }));
  all.push_back(Over("width_slice", image, image, 6000,
                     [](const Numerics& n, const Extents&, auto x, auto y) {
                       std::copy(x.begin(), x.end(), y.begin());
                       ThroughWidthSlice(n, y);
                     }));
  return all;
}

Halfs InputOf(const Computation& c, int64_t batch, bool has_infinities) {
  return RandomHalfs(c.size * batch, c.scale, 5, has_infinities);
}

Halfs ResultOf(const Computation& c, const Numerics& n, int64_t batch, absl::Span<const Half> x) {
  Halfs y(c.out_size * batch);
  c.run(n, batch, x, absl::MakeSpan(y));
  return y;
}

uint64_t DigestOf(absl::Span<const Half> values, uint64_t digest) {
  for (Half value : values) digest = (digest ^ value.bits) * 0x100000001b3;
  return digest;
}

std::vector<std::string> ComputationDigests() {
  std::vector<std::string> lines;
  for (const Computation& c : Computations()) {
    for (const char* family : kExactFamilies) {
      uint64_t digest = kEmptyDigest;
      for (bool has_infinities : {false, true}) {
        const Halfs x = InputOf(c, 3, has_infinities);
        digest = DigestOf(ResultOf(c, NumericsOf(family), 3, x), digest);
      }
      char text[17];
      std::snprintf(text, sizeof(text), "%016" PRIx64, digest);
      lines.push_back("math " + c.name + " " + family + " " + text);
    }
  }
  return lines;
}

}  // namespace anemone::math
