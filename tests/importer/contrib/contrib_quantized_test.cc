// Compares the plain nodes for MatMulNBits, QAttention and DynamicQuantizeLSTM with ONNX Runtime's
// kernels.
#include <random>

#include "tests/importer/against_ort.h"
#include "tests/importer/contrib/contrib_models.h"

namespace anemone {
namespace {

template <class T>
std::vector<T> Numbers(size_t count, int modulus, int from) {
  std::mt19937 random(11);
  std::vector<T> numbers(count);
  for (T& number : numbers) number = static_cast<T>(from + static_cast<int>(random() % modulus));
  return numbers;
}

struct Quantized {
  const char* name;
  int columns, block, bits;
  enum { kNoZeros, kPacked, kFloats } zeros = kNoZeros;
  bool bias = false, flat = false;
};

std::ostream& operator<<(std::ostream& out, const Quantized& q) { return out << q.name; }

class MatMulNBitsTest : public testing::TestWithParam<Quantized> {};

// y = MatMulNBits(a, w) with 5 rows of weights.
onnx::ModelProto NBitsModel(const Quantized& q) {
  constexpr int kRows = 5;
  const int64_t blocks = (q.columns + q.block - 1) / q.block;
  const int64_t zero_bytes = (blocks * q.bits + 7) / 8;
  const std::string arguments = absl::StrCat("a, w, s",
                                             q.zeros != Quantized::kNoZeros ? ", z"
                                             : q.bias                       ? ", "
                                                                            : "",
                                             q.bias ? ", , b" : "");
  onnx::ModelProto model = ContribModel(absl::StrCat(
      "(float[2,3,", q.columns, "] a) => (float[2,3,5] y) { y = ms.MatMulNBits<K = ", q.columns,
      ", N = 5, bits = ", q.bits, ", block_size = ", q.block, ">(", arguments, ") }"));
  const int64_t blob = int64_t{q.block} * q.bits / 8;
  AddInitializer(model, "w", onnx::TensorProto::UINT8, {kRows, blocks, blob},
                 Numbers<uint8_t>(kRows * blocks * blob, 256, 0));
  std::vector<float> scales = Numbers<float>(kRows * blocks, 7, 1);
  for (float& scale : scales) scale /= 64;
  AddInitializer(
      model, "s", onnx::TensorProto::FLOAT,
      q.flat ? std::vector<int64_t>{kRows * blocks} : std::vector<int64_t>{kRows, blocks}, scales);
  if (q.zeros == Quantized::kPacked) {
    AddInitializer(
        model, "z", onnx::TensorProto::UINT8,
        q.flat ? std::vector<int64_t>{kRows * zero_bytes} : std::vector<int64_t>{kRows, zero_bytes},
        Numbers<uint8_t>(kRows * zero_bytes, 256, 0));
  }
  if (q.zeros == Quantized::kFloats) {
    AddInitializer(model, "z", onnx::TensorProto::FLOAT, {kRows, blocks},
                   Numbers<float>(kRows * blocks, 9, 3));
  }
  if (q.bias) {
    AddInitializer(model, "b", onnx::TensorProto::FLOAT, {kRows}, Numbers<float>(kRows, 5, -2));
  }
  return model;
}

TEST_P(MatMulNBitsTest, IsOneProductOfAConstant) {
  const Model ours = ExpectSameOnOrt(NBitsModel(GetParam()));
  EXPECT_THAT(NodesText(ours.graph), testing::StartsWith("MatMul a, "));
  EXPECT_EQ(ours.graph.nodes.size(), GetParam().bias ? 2 : 1) << NodesText(ours.graph);
}

const Quantized kQuantized[] = {
    {"Bits4", 32, 16, 4},
    {"Bits4PackedZeros", 32, 16, 4, Quantized::kPacked},
    {"Bits4OddBlocks", 40, 16, 4, Quantized::kPacked},
    {"Bits4LongBlocks", 48, 32, 4, Quantized::kPacked},
    {"Bits4OneBlock", 20, 128, 4, Quantized::kPacked},
    {"Bits4FloatZeros", 40, 16, 4, Quantized::kFloats},
    {"Bits4Bias", 32, 16, 4, Quantized::kNoZeros, true},
    {"Bits4BiasAndZeros", 40, 16, 4, Quantized::kPacked, true},
    {"Bits4Flat", 40, 16, 4, Quantized::kPacked, false, true},
    {"Bits8", 32, 16, 8},
    {"Bits8PackedZeros", 40, 16, 8, Quantized::kPacked},
    {"Bits8FlatBias", 48, 32, 8, Quantized::kPacked, true, true},
};
INSTANTIATE_TEST_SUITE_P(Contrib, MatMulNBitsTest, testing::ValuesIn(kQuantized),
                         testing::PrintToStringParamName());

struct QuantizedAttention {
  const char* name;
  bool is_signed, per_column, has_zeros, has_past;
};

std::ostream& operator<<(std::ostream& out, const QuantizedAttention& q) { return out << q.name; }

class QAttentionTest : public testing::TestWithParam<QuantizedAttention> {};

TEST_P(QAttentionTest, MeansWhatOnnxRuntimeMeans) {
  const QuantizedAttention& q = GetParam();
  onnx::ModelProto model = ContribModel(
      absl::StrCat("(uint8[2,5,8] x, float[24] b, int32[2,", q.has_past ? 8 : 5, "] r",
                   q.has_past ? ", float[2,2,2,3,4] p" : "", ") => (float[2,5,8] y",
                   q.has_past ? ", float[2,2,2,8,4] n" : "",
                   ") { f = Constant<value = int32[1,1] {1}>()"
                   " m = Max(r, f) y",
                   q.has_past ? ", n" : "",
                   " = ms.QAttention<num_heads = 2, unidirectional = 1>(x, w, b, xs, ws, m",
                   q.has_zeros  ? ", xz, wz"
                   : q.has_past ? ", , "
                                : "",
                   q.has_past ? ", p" : "", ") }"));
  const int type = q.is_signed ? onnx::TensorProto::INT8 : onnx::TensorProto::UINT8;
  const int64_t count = q.per_column ? 24 : 1;
  // int8 of 7 bits: on x86 processors without VNNI, ONNX Runtime's sums overflow otherwise.
  AddInitializer(
      model, "w", type, {8, 24},
      q.is_signed ? Numbers<uint8_t>(8 * 24, 127, -63) : Numbers<uint8_t>(8 * 24, 256, 0));
  AddInitializer<float>(model, "xs", onnx::TensorProto::FLOAT, {}, {0.01f});
  std::vector<float> scales = Numbers<float>(count, 7, 1);
  for (float& scale : scales) scale /= 256;
  AddInitializer(model, "ws", onnx::TensorProto::FLOAT, {count}, scales);
  if (q.has_zeros) {
    AddInitializer<uint8_t>(model, "xz", onnx::TensorProto::UINT8, {}, {120});
    AddInitializer(model, "wz", type, {count}, Numbers<uint8_t>(count, 5, 1));
  }
  const Model ours = ExpectSameOnOrt(model);
  EXPECT_EQ(ContribNodes(ours.graph), 0) << NodesText(ours.graph);
}

const QuantizedAttention kQuantizedAttentions[] = {
    {"Signed", true, false, true, false},
    {"SignedPerColumn", true, true, true, false},
    {"UnsignedPerColumnPast", false, true, true, true},
    {"SignedWithoutZeros", true, false, false, false},
    {"SignedPerColumnPastWithoutZeros", true, true, false, true},
};
INSTANTIATE_TEST_SUITE_P(Contrib, QAttentionTest, testing::ValuesIn(kQuantizedAttentions),
                         testing::PrintToStringParamName());

struct QuantizedLstm {
  const char* name;
  bool is_signed, by_row, both_directions, has_states;
};

std::ostream& operator<<(std::ostream& out, const QuantizedLstm& q) { return out << q.name; }

class DynamicQuantizeLstmTest : public testing::TestWithParam<QuantizedLstm> {};

TEST_P(DynamicQuantizeLstmTest, IsAnLstmOfFloats) {
  const QuantizedLstm& q = GetParam();
  constexpr int64_t kIn = 8, kHidden = 4, kRows = 4 * kHidden;
  const int64_t directions = q.both_directions ? 2 : 1;
  const std::string states = absl::StrCat("float[", directions, ",2,4]");
  onnx::ModelProto model = ContribModel(absl::StrCat(
      "(float[5,2,8] x", q.has_states ? absl::StrCat(", ", states, " h, ", states, " c") : "",
      ") => (float[5,", directions, ",2,4] y, ", states, " yh, ", states,
      " yc) { y, yh, yc = ms.DynamicQuantizeLSTM<hidden_size = 4, direction = \"",
      q.both_directions ? "bidirectional" : "reverse", "\">(x, w, r, b, , ",
      q.has_states ? "h, c" : ", ", ", , ws, wz, rs, rz) }"));
  const int type = q.is_signed ? onnx::TensorProto::INT8 : onnx::TensorProto::UINT8;
  const int64_t scales = q.by_row ? directions * kRows : directions;
  const std::vector<int64_t> shape =
      q.by_row ? std::vector<int64_t>{directions, kRows} : std::vector<int64_t>{directions};
  // int8 of 7 bits: on x86 processors without VNNI, ONNX Runtime's sums overflow otherwise.
  const int from = q.is_signed ? -63 : 0;
  AddInitializer(model, "w", type, {directions, kIn, kRows},
                 Numbers<uint8_t>(directions * kIn * kRows, 127, from));
  AddInitializer(model, "r", type, {directions, kHidden, kRows},
                 Numbers<uint8_t>(directions * kHidden * kRows, 127, from));
  for (const char* name : {"ws", "rs"}) {
    std::vector<float> numbers = Numbers<float>(scales, 7, 1);
    for (float& number : numbers) number /= 512;
    AddInitializer(model, name, onnx::TensorProto::FLOAT, shape, numbers);
  }
  for (const char* name : {"wz", "rz"}) {
    AddInitializer(model, name, type, shape,
                   Numbers<uint8_t>(scales, q.is_signed ? 1 : 5, q.is_signed ? 0 : 60));
  }
  std::vector<float> bias = Numbers<float>(directions * 2 * kRows, 9, -4);
  for (float& number : bias) number /= 32;
  AddInitializer(model, "b", onnx::TensorProto::FLOAT, {directions, 2 * kRows}, bias);
  // ONNX Runtime rounds x and the hidden state to grids that it finds at run time.
  const Model ours = ExpectSameOnOrt(model, model, WithEvaluator(), 0.02f);
  EXPECT_EQ(OpsText(ours.graph), "LSTM");
  for (const ImportWarning& warning : ours.warnings) ADD_FAILURE() << warning.message;
}

const QuantizedLstm kQuantizedLstms[] = {
    {"Signed", true, false, false, false},
    {"SignedByRow", true, true, false, true},
    {"SignedByRowInBothDirections", true, true, true, true},
    {"Unsigned", false, false, false, true},
    {"UnsignedInBothDirections", false, false, true, false},
};
INSTANTIATE_TEST_SUITE_P(Contrib, DynamicQuantizeLstmTest, testing::ValuesIn(kQuantizedLstms),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace anemone
