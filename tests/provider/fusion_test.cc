// Fused chains of units and joined parts (engine/software) must give the same bits as units that
// run one by one with separate memory. A session with Settings::hazards runs them so.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "anemone/session.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

struct FusionCase {
  std::string name;
  std::string text;
};

void PrintTo(const FusionCase& c, std::ostream* out) { *out << c.name; }

const FusionCase kFusionCases[] = {
    {"ConvReluResidual",
     "(float[1,8,9,7] x) => (float[1,8,9,7] y) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) b = Relu(a) c = Conv(b, w) d = Add(c, x) y = Relu(d) }"},
    {"ResidualOfTwoConvolutions",
     "(float[2,8,9,7] x) => (float[2,8,9,7] y) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) b = Conv(x, w) c = Add(a, b) d = Sigmoid(c) y = Mul(d, x) }"},
    {"Winograd",
     "(float[1,32,30,20] x) => (float[1,32,30,20] y)"
     " <float[32,32,3,3] v, float[1,32,1,1] c> {"
     "  a = Conv<pads = [1,1,1,1]>(x, v) b = Tanh(a) d = Mul(b, c) y = Add(d, x) }"},
    {"DepthwiseAndStrides",
     "(float[2,8,20,70] x) => (float[2,8,10,35] y) <float[8,1,3,3] u, float[8,8,1,1] w> {"
     "  a = Conv<pads = [1,1,1,1], group = 8, strides = [2,2]>(x, u) b = Elu(a)"
     "  c = Conv(b, w) y = LeakyRelu(c) }"},
    {"Pools",
     "(float[2,8,21,70] x) => (float[2,8,11,35] y, float[2,8,21,70] z)"
     " <float[8,1,1] c, float[2,8,11,35] r> {"
     "  a = MaxPool<kernel_shape = [3,3], pads = [1,1,1,1], strides = [2,2]>(x) b = Relu(a)"
     "  d = Mul(b, c) y = Add(d, r)"
     "  e = AveragePool<kernel_shape = [3,3], pads = [1,1,1,1]>(x) f = Tanh(e) z = Mul(f, x) }"},
    {"PoolsOfWholePlanesAndOfSquares",
     "(float[2,8,7,9] x) => (float[2,8,1,1] y, float[2,8,1,1] z, float[2,8,6,8] v)"
     " <float[8,1,1] c> {"
     "  a = MaxPool<kernel_shape = [7,9]>(x) b = Add(a, c) y = Relu(b)"
     "  d = AveragePool<kernel_shape = [7,9]>(x) z = Mul(d, c)"
     "  e = LpPool<kernel_shape = [2,2]>(x) f = Mul(e, c) v = Sigmoid(f) }"},
    {"Transposed",
     "(float[1,8,5,6] x) => (float[1,8,10,12] y) <float[8,8,2,2] w> {"
     "  a = ConvTranspose<strides = [2,2]>(x, w) b = Sigmoid(a) y = Mul(a, b) }"},
    {"ElementsByPlaneRowAndAll",
     "(float[2,12,5,6] x) => (float[2,12,5,6] y)"
     " <float[12,1,1] c, float[5,1] h, float[6] w, float[5,6] p, float[1,12,5,1] q> {"
     "  a = Mul(x, c) b = Add(a, h) d = Sub(b, w) e = Mul(d, p) f = Add(e, q) y = Sigmoid(f) }"},
    {"ElementsOfManySmallPlanes",
     "(float[2,700,3,3] x) => (float[2,700,3,3] y) <float[700,1,1] c, float[3,3] p> {"
     "  a = Mul(x, c) b = Add(a, c) d = Mul(b, p) y = Relu(d) }"},
    {"MatMulBias",
     "(float[1,20,24] x) => (float[1,20,40] y) <float[24,40] m, float[40] b> {"
     "  a = MatMul(x, m) c = Add(a, b) y = Gelu(c) }"},
    {"BothOperandsAreTheSame",
     "(float[1,8,9,7] x) => (float[1,8,9,7] y) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) b = Mul(a, a) y = Relu(b) }"},
    {"ValueTimesItsFunction",
     "(float[1,8,9,7] x) => (float[1,8,9,7] y) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) s = Sigmoid(a) b = Mul(a, s) c = Conv(b, w) t = HardSwish(c)"
     "  d = Add(t, b) y = Relu(d) }"},
    {"ValueTimesItsFunctionOfSmallPlanes",
     "(float[1,160,7,7] x) => (float[1,160,7,7] y) <float[160,1,5,5] u, float[160,160,1,1] w> {"
     "  a = Conv<group = 160, pads = [2,2,2,2]>(x, u) b = HardSwish(a) c = Conv(b, w)"
     "  s = Sigmoid(c) y = Mul(s, c) }"},
    {"ValueReadByOthersBetween",
     "(float[1,8,9,7] x) => (float[1,8,9,7] y) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) s = Sigmoid(a) q = Conv(a, w) p = Mul(a, s) r = Add(p, q) y = Mul(r, a) }"},
    {"ValueReadByOthersAfter",
     "(float[1,8,9,7] x) => (float[1,8,9,7] y, float[1,8,9,7] a) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) s = Sigmoid(a) p = Mul(a, s) q = Conv(a, w) y = Add(p, q) }"},
    {"ChainsBehindChains",
     "(float[1,8,9,7] x) => (float[1,8,9,7] y, float[1,8,9,7] c) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) s = Sigmoid(a) b = Mul(a, s) t = Tanh(b) c = Mul(b, t) d = Add(c, a)"
     "  e = Mul(d, b) y = Sub(e, c) }"},
    {"JoinedChannels",
     "(float[1,8,9,7] x) => (float[1,32,9,7] y) <float[8,8,1,1] w, float[8,24,1,1] v> {"
     "  a = Conv(x, w) b = Relu(a) c = Concat<axis = 1>(x, b, a) d = Conv(c, v)"
     "  e = Relu(d) y = Concat<axis = 1>(c, e) }"},
    {"JoinedTwiceAndRows",
     "(float[1,8,9,7] x) => (float[1,16,9,7] y, float[1,8,18,7] z, float[1,8,9,7] a)"
     " <float[8,8,1,1] w> { a = Conv(x, w) y = Concat<axis = 1>(a, a) z = Concat<axis = 2>(a, x) "
     "}"},
    {"JoinedBatches",
     "(float[2,8,9,7] x) => (float[2,16,9,7] y) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) b = Relu(a) y = Concat<axis = 1>(a, b) }"},
    {"SlicesOfAnInputAndOfAConvolution",
     "(float[1,12,9,7] x) => (float[1,4,9,7] y, float[1,4,9,7] z) <float[12,4,1,1] w> {"
     "  s = Constant<value = int64[3] {4, 2, 6}>() p, q, r = Split<axis = 1>(x, s)"
     "  a = Conv(p, w) b, d, e = Split<axis = 1, num_outputs = 3>(a)"
     "  f = Sigmoid(b) g = Mul(f, d) h = Tanh(e) i = Add(g, h) y = Mul(i, p) z = Relu(b) }"},
    {"SlicesThatAreOutputsOrJoined",
     "(float[1,12,9,7] x) => (float[1,4,9,7] y, float[1,12,9,7] z, float[63,4] v)"
     " <float[12,12,1,1] w> {"
     "  a = Conv(x, w) y, b, d = Split<axis = 1, num_outputs = 3>(a)"
     "  e = Relu(d) z = Concat<axis = 1>(b, e, y)"
     "  k = Constant<value = int64[2] {63, 4}>() v = Reshape(b, k) }"},
    {"SlicesOfSlicesAndOfRows",
     "(float[1,1,12,8] x) => (float[1,1,3,8] y, float[1,1,6,4] z) {"
     "  a = Relu(x) b, c = Split<axis = 2, num_outputs = 2>(a)"
     "  d, e = Split<axis = 2, num_outputs = 2>(c) f, g = Split<axis = 3, num_outputs = 2>(c)"
     "  h = Add(d, e) i = Sigmoid(d) y = Mul(h, i) j = Mul(f, g) z = Tanh(j) }"},
    {"SlicesOfABatch",
     "(float[3,8,5,5] x) => (float[3,4,5,5] y, float[1,8,5,5] z) <float[8,8,1,1] w> {"
     "  a = Conv(x, w) b, c = Split<axis = 1, num_outputs = 2>(a) y = Mul(b, c)"
     "  d, e, f = Split<axis = 0, num_outputs = 3>(a) g = Add(d, f) z = Mul(g, e) }"},
    {"Lstm",
     "(float[6,1,8] x) => (float[6,1,1,16] y, float[1,1,16] h, float[1,1,16] c)"
     " <float[1,64,8] w, float[1,64,16] r, float[1,128] b> {"
     "  y, h, c = LSTM<hidden_size = 16>(x, w, r, b) }"},
    {"LstmOfABatchBothWays",
     "(float[5,2,8] x) => (float[5,2,2,16] y)"
     " <float[2,64,8] w, float[2,64,16] r, float[2,128] b> {"
     "  y, h, c = LSTM<hidden_size = 16, direction = \"bidirectional\">(x, w, r, b) }"},
    {"Gru",
     "(float[6,1,8] x) => (float[6,1,1,16] y, float[1,1,16] h)"
     " <float[1,48,8] w, float[1,48,16] r, float[1,96] b> {"
     "  y, h = GRU<hidden_size = 16, linear_before_reset = 1>(x, w, r, b) }"},
};

Tensor Numbers(const std::vector<int64_t>& dims, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-2, 2);
  Tensor t = Tensor::Zeros(DataType::kFloat, dims);
  for (int64_t i = 0; i < t.elements(); ++i) t.mutable_data<float>()[i] = uniform(random);
  return t;
}

class FusionTest : public testing::TestWithParam<FusionCase> {};

TEST_P(FusionTest, GivesTheBitsOfUnitsAlone) {
  std::mt19937 random(5);
  onnx::ModelProto model = ModelOfText(GetParam().text);
  FillDeclared(*model.mutable_graph(), -0.5f, 0.5f, random);
  const std::string bytes = model.SerializeAsString();
  for (int threads : {1, 3}) {
    auto fused = Session::LoadBytes(bytes, {.target = "h16", .threads = threads});
    auto alone = Session::LoadBytes(bytes, {.target = "h16", .hazards = true, .threads = threads});
    ASSERT_TRUE(fused.ok()) << fused.status();
    ASSERT_TRUE(alone.ok()) << alone.status();
    ASSERT_EQ(fused->Summary().cpu_segments, 0);
    const Tensor x = Numbers(fused->inputs()[0].dims, random);
    auto want = alone->Run({{"x", x}});
    ASSERT_TRUE(want.ok()) << want.status();
    for (int run = 0; run < 2; ++run) {
      auto got = fused->Run({{"x", x}});
      ASSERT_TRUE(got.ok()) << got.status();
      for (const auto& [name, tensor] : *want) {
        const Tensor& other = got->at(name);
        ASSERT_EQ(other.dims(), tensor.dims());
        for (int64_t i = 0; i < tensor.elements(); ++i) {
          ASSERT_EQ(other.at<float>(i), tensor.at<float>(i)) << name << " element " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FusionTest, testing::ValuesIn(kFusionCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace anemone
