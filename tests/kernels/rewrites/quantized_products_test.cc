// Products of quantized activations and 8-bit weights: the sums of the model's integers. Processors
// that multiply bytes round the result only; the others round operands to fp16 too.
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "anemone/session.h"
#include "gtest/gtest.h"
#include "math/core/half.h"
#include "math/gemm/gemm_operands.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

constexpr int kZero = 117;

// fp16 numbers, so that the engine's scales are those of the model.
float ScaleOfInput() { return math::ToFloat(math::ToHalf(0.0123f)); }
float ScaleOf(int64_t channel) { return 0.00371f + 0.00013f * static_cast<float>(channel); }

std::vector<int> Integers(int64_t count, int least, int most, int seed) {
  std::mt19937 random(seed);
  std::vector<int> numbers(count);
  for (int& number : numbers) number = least + static_cast<int>(random() % (most - least + 1));
  return numbers;
}

struct Operands {
  std::vector<int> codes;  // of the activation
  std::vector<int> weights;
  int64_t channels;

  // The declarations of the scales, the zero point and the weights, whose dims are given.
  std::string Declared(const std::string& dims) const {
    std::vector<std::string> scales;
    for (int64_t i = 0; i < channels; ++i) scales.push_back(absl::StrFormat("%.9g", ScaleOf(i)));
    return absl::StrFormat(
        "float s = {%.9g}, uint8 z = {%d}, int8[%s] w = {%s}, float[%d] v = {%s}", ScaleOfInput(),
        kZero, dims, absl::StrJoin(weights, ","), channels, absl::StrJoin(scales, ","));
  }
};

// `sums` are those of the integers, and `channel(i)` is the output channel of sum i.
template <class Channel>
void ExpectSums(const std::string& model, const std::vector<int64_t>& dims, const Operands& given,
                const std::vector<int>& sums, const Channel& channel) {
  auto session = Session::LoadBytes(BytesOfText(model));
  ASSERT_TRUE(session.ok()) << session.status();
  Tensor x = Tensor::Zeros(DataType::kFloat, dims);
  for (size_t i = 0; i < given.codes.size(); ++i) {
    x.mutable_data<float>()[i] = static_cast<float>(given.codes[i] - kZero) * ScaleOfInput();
  }
  auto y = session->Run({{"x", x}});
  ASSERT_TRUE(y.ok()) << y.status();
  const Tensor& got = y->at("y");
  ASSERT_EQ(got.elements(), static_cast<int64_t>(sums.size()));
  double largest = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    largest = std::max(largest, std::abs(sums[i] * ScaleOf(channel(i)) * 1.0 * ScaleOfInput()));
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const double want = static_cast<double>(sums[i]) * ScaleOf(channel(i)) * ScaleOfInput();
    const double rounding = std::abs(want) * 0x1.01p-11 + 0x1p-24;
    ASSERT_NEAR(got.at<float>(i), want, math::MultipliesBytes() ? rounding : largest * 0x1p-9)
        << "element " << i;
  }
}

TEST(QuantizedProducts, OfMatMulAreSumsOfIntegers) {
  constexpr int64_t kRows = 40, kDepth = 61, kColumns = 50;
  const Operands given = {Integers(kRows * kDepth, 0, 255, 1),
                          Integers(kDepth * kColumns, -128, 127, 2), kColumns};
  std::vector<int> sums(kRows * kColumns);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t k = 0; k < kDepth; ++k) {
      for (int64_t j = 0; j < kColumns; ++j) {
        sums[i * kColumns + j] +=
            (given.codes[i * kDepth + k] - kZero) * given.weights[k * kColumns + j];
      }
    }
  }
  ExpectSums(absl::StrCat("(float[1,40,61] x) => (float[1,40,50] y) <", given.Declared("61,50"),
                          "> { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
                          "m = DequantizeLinear<axis = 1>(w, v) y = MatMul(d, m) }"),
             {1, kRows, kDepth}, given, sums, [](size_t i) { return i % kColumns; });
}

TEST(QuantizedProducts, OfConvAreSumsOfIntegers) {
  constexpr int64_t kIn = 6, kOut = 32, kSize = 9;
  const Operands given = {Integers(kIn * kSize * kSize, 0, 255, 1),
                          Integers(kOut * kIn * 9, -128, 127, 2), kOut};
  constexpr int64_t kPositions = kSize * kSize;
  std::vector<int> sums(kOut * kPositions);
  for (int64_t at = 0; at < kOut * kPositions; ++at) {
    const int64_t o = at / kPositions, i = at % kPositions / kSize, j = at % kSize;
    for (int64_t k = 0; k < kIn * 9; ++k) {
      const int64_t y = i - 1 + k % 9 / 3, x = j - 1 + k % 3;
      if (y < 0 || y >= kSize || x < 0 || x >= kSize) continue;
      sums[at] +=
          (given.codes[(k / 9 * kSize + y) * kSize + x] - kZero) * given.weights[o * kIn * 9 + k];
    }
  }
  ExpectSums(absl::StrCat("(float[1,6,9,9] x) => (float[1,32,9,9] y) <", given.Declared("32,6,3,3"),
                          "> { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
                          "m = DequantizeLinear<axis = 0>(w, v) "
                          "y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(d, m) }"),
             {1, kIn, kSize, kSize}, given, sums, [](size_t i) { return i / kPositions; });
}

// Two layers with equal shapes, weights of their own and different grids: neither may use what the
// other one prepared.
TEST(QuantizedProducts, OfTwoActivationsHaveTheGridsOfTheirOperands) {
  const std::string model =
      "(float[2,20,12] x, float[2,12,18] b) => (float[2,20,18] y, float[2,20,18] t) "
      "<float s = {0.0078125}, float r = {0.03125}, uint8 z = {128}> { "
      "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
      "p = QuantizeLinear(x, r, z) e = DequantizeLinear(p, r, z) "
      "k = QuantizeLinear(b, s, z) g = DequantizeLinear(k, s, z) "
      "y = MatMul(d, g) t = MatMul(e, g) }";
  auto session = Session::LoadBytes(BytesOfText(model));
  ASSERT_TRUE(session.ok()) << session.status();
  Tensor x = Tensor::Zeros(DataType::kFloat, {2, 20, 12});
  Tensor b = Tensor::Zeros(DataType::kFloat, {2, 12, 18});
  // Multiples of both scales, so that both products are the same.
  const std::vector<int> of_x = Integers(x.elements(), -30, 30, 1);
  const std::vector<int> of_b = Integers(b.elements(), -127, 127, 2);
  for (size_t i = 0; i < of_x.size(); ++i) {
    x.mutable_data<float>()[i] = static_cast<float>(of_x[i]) * 0x1p-5f;
  }
  for (size_t i = 0; i < of_b.size(); ++i) {
    b.mutable_data<float>()[i] = static_cast<float>(of_b[i]) * 0x1p-7f;
  }
  auto results = session->Run({{"x", x}, {"b", b}});
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t at = 0; at < 2 * 20 * 18; ++at) {
    int sum = 0;
    for (int64_t k = 0; k < 12; ++k) {
      sum += of_x[at / 18 * 12 + k] * of_b[(at / 360 * 12 + k) * 18 + at % 18];
    }
    const float want = math::ToFloat(math::ToHalf(static_cast<float>(sum) * 0x1p-12f));
    EXPECT_EQ(results->at("y").at<float>(at), want) << "element " << at;
    EXPECT_EQ(results->at("t").at<float>(at), want) << "element " << at;
  }
}

}  // namespace
}  // namespace anemone
