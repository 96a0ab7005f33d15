// Compressed constants: which ones stay compressed on import, that their values are those of ONNX
// Runtime, how they are written back in ONNX's forms, and which ones are refused.
#include "anemone/compressed.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/importer/against_ort.h"

namespace anemone {
namespace {

using onnx::TensorProto;
using testing::HasSubstr;

// `count` random bytes, each below `bound`.
std::vector<uint8_t> Bytes(int64_t count, int bound = 256) {
  std::mt19937 random(3);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % bound);
  return bytes;
}

std::vector<float> Scales(int64_t count) {
  std::mt19937 random(5);
  std::vector<float> scales(count);
  for (float& scale : scales) scale = static_cast<float>(random() % 900 + 1) / 8192;
  return scales;
}

struct CompressedCase {
  const char* name;
  std::vector<int64_t> dims, scales;
  int type;
  int axis = 1, block = 0;
  bool has_zeros = false;
};
std::ostream& operator<<(std::ostream& out, const CompressedCase& q) { return out << q.name; }

bool IsPacked(int type) { return type == TensorProto::INT4 || type == TensorProto::UINT4; }

int64_t Count(const std::vector<int64_t>& dims) { return *ElementCount(dims); }

// w = DequantizeLinear(q, s, z), followed by the nodes of `rest`, which use w.
onnx::ModelProto QuantizedModel(const CompressedCase& q, const std::string& rest) {
  const std::string zeros = q.has_zeros ? ", z" : "";
  const std::string block = q.block > 0 ? absl::StrCat(", block_size = ", q.block) : "";
  onnx::ModelProto model = ParseModel(absl::StrCat(
      "agraph ", rest.substr(0, rest.find('{')), "{ w = DequantizeLinear<axis = ", q.axis, block,
      ">(q, s", zeros, ") ", rest.substr(rest.find('{') + 1)));
  const int64_t bytes = IsPacked(q.type) ? (Count(q.dims) + 1) / 2 : Count(q.dims);
  AddInitializer(model, "q", q.type, q.dims, Bytes(bytes));
  AddInitializer(model, "s", TensorProto::FLOAT, q.scales, Scales(Count(q.scales)));
  if (q.has_zeros) {
    const int64_t count = Count(q.scales);
    AddInitializer(model, "z", q.type, q.scales, Bytes(IsPacked(q.type) ? (count + 1) / 2 : count));
  }
  return model;
}

const Tensor* OnlyCompressed(const Graph& graph) {
  const Tensor* found = nullptr;
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) {
      if (id == kNone || !graph.values[id].constant) continue;
      const Tensor& tensor = *graph.values[id].constant;
      if (tensor.compressed() == nullptr) continue;
      EXPECT_EQ(nullptr, found);
      found = &tensor;
    }
  }
  return found;
}

class QuantizedTest : public testing::TestWithParam<CompressedCase> {};

TEST_P(QuantizedTest, StaysCompressed) {
  const CompressedCase& q = GetParam();
  const Model ours = ExpectSameOnOrt(QuantizedModel(q, "(float x) => (float y) { y = Add(x, w) }"));
  const Tensor* weight = OnlyCompressed(ours.graph);
  ASSERT_NE(nullptr, weight);
  EXPECT_EQ(q.dims, weight->dims());
  EXPECT_EQ(CompressedForm::kAffine, weight->compressed()->form());
  EXPECT_LT(weight->compressed()->stored_bytes(), Count(q.dims) * 2);
  EXPECT_EQ(1, ours.graph.nodes.size());
}

// Reading a part, starting at any element, gives the same values as expanding the whole tensor.
TEST_P(QuantizedTest, PartsAreThoseOfTheWhole) {
  const auto ours = ImportBytes(
      QuantizedModel(GetParam(), "(float x) => (float y) { y = Add(x, w) }").SerializeAsString(),
      "", {});
  ASSERT_THAT(ours, IsOk());
  const Tensor* weight = OnlyCompressed(ours->graph);
  ASSERT_NE(nullptr, weight);
  for (int64_t first : {0, 1, 17, 500}) {
    std::vector<float> part(431);
    weight->compressed()->Read(first, absl::MakeSpan(part));
    for (size_t i = 0; i < part.size(); ++i) {
      ASSERT_EQ(weight->at<float>(first + static_cast<int64_t>(i)), part[i]) << first << " " << i;
    }
  }
}

const CompressedCase kCompressedCases[] = {
    {"OneScale", {40, 30}, {}, TensorProto::INT8, 1},
    {"OneZeroPoint", {40, 30}, {}, TensorProto::UINT8, 1, 0, true},
    {"Rows", {40, 30}, {40}, TensorProto::INT8, 0},
    {"RowsZeroPoints", {40, 31}, {40}, TensorProto::UINT8, 0, 0, true},
    {"Columns", {40, 30}, {30}, TensorProto::INT8, 1, 0, true},
    {"LastAxis", {5, 8, 30}, {30}, TensorProto::INT8, -1},
    {"Kernel", {16, 8, 3, 3}, {16}, TensorProto::INT8, 0},
    {"MiddleAxis", {16, 8, 3, 3}, {8}, TensorProto::UINT8, 1, 0, true},
    {"Int4", {40, 30}, {40}, TensorProto::INT4, 0},
    {"Int4Odd", {35, 31}, {31}, TensorProto::INT4, 1, 0, true},
    {"UInt4Blocks", {40, 64}, {40, 4}, TensorProto::UINT4, 1, 16, true},
    {"Int4BlocksDown", {64, 21}, {4, 21}, TensorProto::INT4, 0, 16},
    {"Int8PartialBlocks", {40, 50}, {40, 4}, TensorProto::INT8, 1, 16},
    {"BlocksOfAMiddleAxis", {4, 32, 3, 3}, {4, 2, 3, 3}, TensorProto::INT8, 1, 16, true},
};
INSTANTIATE_TEST_SUITE_P(Compressed, QuantizedTest, testing::ValuesIn(kCompressedCases),
                         testing::PrintToStringParamName());

TEST(CompressedTest, MatricesTurnWithTheirScales) {
  for (const CompressedCase& q : kCompressedCases) {
    if (q.dims.size() != 2) continue;
    SCOPED_TRACE(q.name);
    const Model ours = ExpectSameOnOrt(QuantizedModel(
        q, "(float x) => (float y) { t = Transpose<perm = [1, 0]>(w) y = Add(x, t) }"));
    const Tensor* weight = OnlyCompressed(ours.graph);
    ASSERT_NE(nullptr, weight);
    EXPECT_EQ((std::vector<int64_t>{q.dims[1], q.dims[0]}), weight->dims());
    const auto straight = ImportBytes(
        QuantizedModel(q, "(float x) => (float y) { y = Add(x, w) }").SerializeAsString(), "", {});
    ASSERT_THAT(straight, IsOk());
    const Tensor* other = OnlyCompressed(straight->graph);
    ASSERT_NE(nullptr, other);
    for (int64_t i = 0; i < weight->elements(); ++i) {
      const int64_t row = i % q.dims[0], column = i / q.dims[0];
      ASSERT_EQ(other->at<float>(row * q.dims[1] + column), weight->at<float>(i)) << i;
    }
  }
}

TEST(CompressedTest, ViewsStayCompressed) {
  const CompressedCase q{"", {16, 144}, {16, 9}, TensorProto::INT4, 1, 16};
  onnx::ModelProto model =
      QuantizedModel(q, "(float x) => (float y) { r = Reshape(w, shape) y = Add(x, r) }");
  AddInitializer<int64_t>(model, "shape", TensorProto::INT64, {4}, {16, 16, 3, 3});
  const Model ours = ExpectSameOnOrt(model);
  const Tensor* weight = OnlyCompressed(ours.graph);
  ASSERT_NE(nullptr, weight);
  EXPECT_EQ((std::vector<int64_t>{16, 16, 3, 3}), weight->dims());
}

TEST(CompressedTest, AConstantOutputIsWritten) {
  const CompressedCase q{"", {40, 64}, {40, 4}, TensorProto::UINT4, 1, 16, true};
  ExpectSameOnOrt(QuantizedModel(q, "() => (float w) { }"));
}

// q * s, where an importer of weights in integers wrote a Cast and a Mul.
TEST(CompressedTest, IntegersTimesScalesStayCompressed) {
  struct Case {
    std::vector<int64_t> dims, scales;
    size_t count;  // of scales; 0: the weight is expanded
  };
  for (const Case& c : {Case{{40, 30}, {}, 1}, Case{{40, 30}, {1, 1}, 1}, Case{{40, 30}, {30}, 30},
                        Case{{40, 30}, {40, 1}, 40}, Case{{20, 4, 16}, {20, 4, 1}, 80},
                        Case{{20, 4, 16}, {4, 1}, 4}, Case{{20, 1, 64}, {20, 1, 1}, 20},
                        Case{{20, 4, 16}, {20, 1, 16}, 0}, Case{{40, 30}, {40, 30}, 0},
                        Case{{40, 30}, {1, 40, 30}, 0}}) {
    SCOPED_TRACE(testing::PrintToString(c.scales) + " " + testing::PrintToString(c.dims));
    for (const char* product : {"Mul(f, s)", "Mul(s, f)"}) {
      onnx::ModelProto model = ParseModel(absl::StrCat(
          "agraph (float x) => (float y) { f = Cast<to = 1>(q) w = ", product, " y = Add(x, w) }"));
      AddInitializer(model, "q", TensorProto::INT8, c.dims, Bytes(Count(c.dims)));
      AddInitializer(model, "s", TensorProto::FLOAT, c.scales, Scales(Count(c.scales)));
      const Model ours = ExpectSameOnOrt(model);
      const Tensor* weight = OnlyCompressed(ours.graph);
      ASSERT_EQ(weight == nullptr, c.count == 0) << product;
      EXPECT_EQ(1, ours.graph.nodes.size());
      if (weight == nullptr) continue;
      EXPECT_EQ(c.dims, weight->dims());
      EXPECT_EQ(weight->compressed()->scales().size(), c.count);
    }
  }
}

// Elements that fp16 does not hold are known, so that their readers run on the CPU.
TEST(CompressedTest, FactorsOutsideFp16Expand) {
  for (const float factor : {INFINITY, -1000.0f, 1e-9f}) {
    onnx::ModelProto model = ParseModel(
        "agraph (float x) => (float y) { f = Cast<to = 1>(q) w = Mul(f, s) y = Add(x, w) }");
    AddInitializer(model, "q", TensorProto::INT8, {40, 30}, Bytes(1200));
    AddInitializer<float>(model, "s", TensorProto::FLOAT, {}, {factor});
    EXPECT_EQ(nullptr, OnlyCompressed(ExpectSameOnOrt(model).graph)) << factor;
  }
}

// A weight that other constant nodes read is expanded for them.
TEST(CompressedTest, FoldsFurther) {
  const CompressedCase q{"", {40, 64}, {40}, TensorProto::INT8, 0};
  const Model ours =
      ExpectSameOnOrt(QuantizedModel(q, "(float x) => (float y) { e = Exp(w) y = Add(x, e) }"));
  EXPECT_EQ(1, ours.graph.nodes.size());
  EXPECT_EQ(nullptr, OnlyCompressed(ours.graph));
}

onnx::ModelProto PaletteModel(int type, int64_t entries, int bound) {
  onnx::ModelProto model = ParseModel(
      "agraph (float x) => (float y) { i = Cast<to = 6>(q) w = Gather(t, i) y = Add(x, w) }");
  model.mutable_graph()->mutable_node(1)->set_name("look-up");
  AddInitializer(model, "q", type, {40, 31}, Bytes(type == TensorProto::UINT8 ? 1240 : 620, bound));
  AddInitializer(model, "t", TensorProto::FLOAT, {entries}, Scales(entries));
  return model;
}

TEST(CompressedTest, PalettesStayCompressed) {
  for (const int type : {TensorProto::UINT8, TensorProto::UINT4}) {
    const int64_t entries = type == TensorProto::UINT8 ? 256 : 16;
    const Model ours = ExpectSameOnOrt(PaletteModel(type, entries, 256));
    const Tensor* weight = OnlyCompressed(ours.graph);
    ASSERT_NE(nullptr, weight);
    EXPECT_EQ(CompressedForm::kPalette, weight->compressed()->form());
    EXPECT_EQ(entries, weight->compressed()->values().size());
  }
  const Model few = ExpectSameOnOrt(PaletteModel(TensorProto::UINT8, 5, 5));
  EXPECT_NE(nullptr, OnlyCompressed(few.graph));
}

onnx::ModelProto SparseModel(std::vector<int64_t> indices) {
  onnx::ModelProto model = ParseModel("agraph (float x) => (float y) { y = Add(x, w) }");
  onnx::SparseTensorProto* sparse = model.mutable_graph()->add_sparse_initializer();
  for (int64_t dim : {32, 64}) sparse->add_dims(dim);
  sparse->mutable_values()->set_name("w");
  sparse->mutable_values()->set_data_type(TensorProto::FLOAT);
  sparse->mutable_indices()->set_data_type(TensorProto::INT64);
  for (auto* part : {sparse->mutable_values(), sparse->mutable_indices()}) {
    part->add_dims(static_cast<int64_t>(indices.size()));
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    sparse->mutable_values()->add_float_data(static_cast<float>(i) - 3);
    sparse->mutable_indices()->add_int64_data(indices[i]);
  }
  return model;
}

TEST(CompressedTest, SparseStaysCompressed) {
  std::vector<int64_t> indices = {0, 1, 63, 64, 65, 1000, 1023, 2047};
  for (int64_t i = 1100; i < 1500; i += 3) indices.insert(indices.end() - 1, i);
  const Model ours = ExpectSameOnOrt(SparseModel(indices));
  const Tensor* weight = OnlyCompressed(ours.graph);
  ASSERT_NE(nullptr, weight);
  EXPECT_EQ(CompressedForm::kSparse, weight->compressed()->form());
  EXPECT_EQ(indices, weight->compressed()->Positions());
  const Compressed::Ptr turned = weight->compressed()->Transposed(32, 64);
  std::vector<float> from(2048), to(2048);
  weight->compressed()->Read(0, absl::MakeSpan(from));
  turned->Read(0, absl::MakeSpan(to));
  for (int64_t i = 0; i < 2048; ++i) EXPECT_EQ(from[i], to[i % 64 * 32 + i / 64]);
}

TEST(CompressedTest, SparseInAnyOrderIsWrittenOut) {
  const auto ours = ImportBytes(SparseModel({5, 3, 700}).SerializeAsString(), "", {});
  ASSERT_THAT(ours, IsOk());
  EXPECT_EQ(nullptr, OnlyCompressed(ours->graph));
}

// Other nodes are not folded above 16 MiB of floats; compressed weights are.
TEST(CompressedTest, LargeWeightsAreConstants) {
  const CompressedCase q{"", {2048, 4096}, {2048, 128}, TensorProto::UINT4, 1, 32, true};
  const auto ours = ImportBytes(
      QuantizedModel(q, "(float[1,2048] x) => (float y) { y = MatMul(x, w) }").SerializeAsString(),
      "", WithEvaluator());
  ASSERT_THAT(ours, IsOk());
  ASSERT_EQ(1, ours->graph.nodes.size());
  EXPECT_EQ("MatMul", ours->graph.nodes[0].op_type);
  EXPECT_NE(nullptr, OnlyCompressed(ours->graph));
}

struct BadModel {
  const char* name;
  std::function<onnx::ModelProto()> build;
  absl::StatusCode code;
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const BadModel& bad) { return out << bad.name; }

constexpr const char* kAdd = "(float x) => (float y) { y = Add(x, w) }";

onnx::ModelProto WithScale(float scale) {
  onnx::ModelProto model = QuantizedModel({"", {40, 30}, {40}, TensorProto::INT8, 0}, kAdd);
  model.mutable_graph()->mutable_node(0)->set_name("dequant");
  std::string& raw = *model.mutable_graph()->mutable_initializer(1)->mutable_raw_data();
  std::memcpy(raw.data() + 7 * sizeof(float), &scale, sizeof(scale));
  return model;
}

const BadModel kBad[] = {
    {"ScaleNan", [] { return WithScale(NAN); }, absl::StatusCode::kInvalidArgument,
     "node 'dequant' (DequantizeLinear, /#0): scale 7 is nan"},
    {"ScaleInfinite", [] { return WithScale(-INFINITY); }, absl::StatusCode::kInvalidArgument,
     "scale 7 is -inf"},
    {"IndexOutsideTheTable", [] { return PaletteModel(TensorProto::UINT8, 7, 8); },
     absl::StatusCode::kOutOfRange, "node 'look-up' (Gather, /#1): index "},
    {"TooFewScales",
     [] {
       return QuantizedModel({"", {40, 30}, {39}, TensorProto::INT8, 0}, kAdd);
     },
     absl::StatusCode::kInvalidArgument, "want one, or 40 for axis 0"},
    {"BlocksThatDoNotFit",
     [] {
       return QuantizedModel({"", {40, 50}, {40, 3}, TensorProto::INT8, 1, 16}, kAdd);
     },
     absl::StatusCode::kInvalidArgument, "want 40x4 for blocks of 16"},
    {"NegativeBlock",
     [] {
       return QuantizedModel({"", {40, 50}, {40, 4}, TensorProto::INT8, 1, -16}, kAdd);
     },
     absl::StatusCode::kInvalidArgument, "(DequantizeLinear"},
    {"NoSuchAxis",
     [] {
       return QuantizedModel({"", {40, 30}, {40}, TensorProto::INT8, 7}, kAdd);
     },
     absl::StatusCode::kInvalidArgument, "axis 7 is out of range for shape 40x30"},
    {"Truncated",
     [] {
       onnx::ModelProto model = QuantizedModel({"", {40, 30}, {40}, TensorProto::INT4, 0}, kAdd);
       model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->resize(599);
       return model;
     },
     absl::StatusCode::kInvalidArgument, "takes 600 bytes of raw_data, found 599"},
    {"ZeroPointsOfAnotherType",
     [] {
       onnx::ModelProto model =
           QuantizedModel({"", {40, 30}, {40}, TensorProto::UINT8, 0, 0, true}, kAdd);
       model.mutable_graph()->mutable_initializer(2)->set_data_type(TensorProto::INT8);
       return model;
     },
     absl::StatusCode::kInvalidArgument, "(DequantizeLinear"},
};

class BadCompressedTest : public testing::TestWithParam<BadModel> {};

TEST_P(BadCompressedTest, IsRefusedByName) {
  const auto ours = ImportBytes(GetParam().build().SerializeAsString(), "", WithEvaluator());
  EXPECT_THAT(ours, StatusIs(GetParam().code, HasSubstr(GetParam().message)));
}
INSTANTIATE_TEST_SUITE_P(Compressed, BadCompressedTest, testing::ValuesIn(kBad),
                         testing::PrintToStringParamName());

// A scale of 0 is allowed: the weights are 0, as in ONNX Runtime.
TEST(CompressedTest, AScaleOfZeroMakesZeros) {
  const Model ours = ExpectSameOnOrt(WithScale(0));
  const Tensor* weight = OnlyCompressed(ours.graph);
  ASSERT_NE(nullptr, weight);
  EXPECT_EQ(0, weight->at<float>(7 * 30 + 4));
}

}  // namespace
}  // namespace anemone
