// CPU segments run the file's own nodes: a model that is wholly on the CPU gives ONNX Runtime's
// bits, and a segment between engine segments has the nodes that the exporter wrote.
#include "provider/cpu_parts.h"

#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "anemone/session.h"
#include "provider/importing.h"
#include "provider/settings.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/own_cache.h"
#include "tests/provider/ramp.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;
using testing::Not;

// "{1, -5, ...}"
std::string Codes(int count) {
  std::mt19937 random(3);
  std::vector<int> codes(count);
  for (int& code : codes) code = static_cast<int>(random() % 100) - 50;
  return absl::StrCat("{", absl::StrJoin(codes, ", "), "}");
}

const std::string& Weights() {
  static const auto& text = *new std::string(absl::StrCat(
      "int8[6,5] w = ", Codes(30), ", float v = {0.0037}, int8 wz = {0}, float s = {0.0113}, ",
      "uint8 z = {117}, float t = {0.0271}, uint8 u = {131}"));
  return text;
}

onnx::ModelProto WithFunction() {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser(
                          "<ir_version: 10, opset_import: [\"\" : 21, \"local\" : 1]> "
                          "test (float[4] x) => (float[4] y) { a = local.Twice(x) b = Sigmoid(a) y "
                          "= local.Twice(b) } "
                          "<opset_import: [\"\" : 21], domain: \"local\"> "
                          "Twice (a) => (b) { c = Exp(a) b = Add(a, c) }")
                          .Parse(model);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

struct Case {
  const char* name;
  std::string model;  // bytes
  Tensors inputs;
  std::map<std::string, int64_t> dims;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::vector<Case> Cases() {
  const auto of = [](const std::string& text, int opset = 21) {
    return BytesOfText(absl::StrReplaceAll(text, {{"WEIGHTS", Weights()}}), opset);
  };
  const Tensor yes = Tensor::Of<bool>(DataType::kBool, {}, std::array<bool, 1>{true});
  return {
      {"Dynamic",
       of("(float[3,6] x) => (float[3,5] y) <WEIGHTS> { q, h, k = DynamicQuantizeLinear(x) "
          "p = MatMulInteger(q, w, k, wz) c = Cast<to = 1>(p) f = Mul(h, v) y = Mul(c, f) }"),
       {{"x", Ramp({3, 6})}}},
      {"Qdq",
       of("(float[3,6] x) => (float[3,5] y) <WEIGHTS> { q = QuantizeLinear(x, s, z) "
          "d = DequantizeLinear(q, s, z) e = DequantizeLinear(w, v, wz) m = MatMul(d, e) "
          "r = QuantizeLinear(m, t, u) y = DequantizeLinear(r, t, u) }"),
       {{"x", Ramp({3, 6})}}},
      {"QOperator",
       of("(float[3,6] x) => (float[3,5] y) <WEIGHTS> { q = QuantizeLinear(x, s, z) "
          "m = QLinearMatMul(q, s, z, w, v, wz, t, u) y = DequantizeLinear(m, t, u) }"),
       {{"x", Ramp({3, 6})}}},
      {"If",
       of("(bool c, float[2,4] x) => (float[2,4] y) {"
          "  y = If(c) <then_branch = t () => (float[2,4] a) { a = Sigmoid(x) },"
          "             else_branch = e () => (float[2,4] b) { b = Relu(x) }> }"),
       {{"c", yes}, {"x", Ramp({2, 4})}}},
      {"Loop",
       of("(int64 n, bool c, float[4] x) => (float[4] y, float[k,4] s) {"
          "  y, s = Loop(n, c, x) <body = b (int64 i, bool d, float[4] v) =>"
          "    (bool e, float[4] w, float[4] r) { e = Identity(d) w = Exp(v) r = Sin(w) }> }"),
       {{"n", Tensor::Int64s({}, {2})}, {"c", yes}, {"x", Ramp({4})}}},
      {"Function", WithFunction().SerializeAsString(), {{"x", Ramp({4})}}},
      {"SeveralOutputs",
       of("(float[4] x, float[4] unused) => (float[4] z, float[4] a, float[2] l, float[4] x) {"
          "  a = Tanh(x) l, r = Split<num_outputs = 2>(a) z = Exp(a) }"),
       {{"x", Ramp({4})}, {"unused", Ramp({4})}}},
      {"OutputsThatAreInputs",
       of("(float[4] x, float[4] y) => (float[4] x, float[4] y) { z = Exp(x) }"),
       {{"x", Ramp({4})}, {"y", Ramp({4})}}},
      {"SharedInitializers",
       of("(float[3,6] x) => (float[3,5] y) <WEIGHTS> { e = DequantizeLinear(w, v, wz) "
          "a = MatMul(x, e) b = MatMul(x, e) c = Mul(b, v) y = Sub(a, c) }"),
       {{"x", Ramp({3, 6})}}},
      {"FreeDimensions",
       of("(float[n,6] x) => (float[m] y) <WEIGHTS> { e = DequantizeLinear(w, v, wz) "
          "a = MatMul(x, e) l = Shape(a) p = ReduceProd<keepdims = 1>(l) y = Reshape(a, p) }"),
       {{"x", Ramp({7, 6})}},
       {{"n", 7}}},
      {"Contrib",
       of("(float[3,6] x) => (float[3,3] y) { y = com.microsoft.FusedMatMul<alpha = 0.3, "
          "transB = 1>(x, x) }"),
       {{"x", Ramp({3, 6})}}},
      {"OldOpset",
       of("(float[2,3] x) => (float[1,2,3] y) { e = Softmax(x) y = Unsqueeze<axes = [0]>(e) }", 9),
       {{"x", Ramp({2, 3})}}},
  };
}

void ExpectSameBits(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    ASSERT_EQ(got.at(name).dims(), tensor.dims()) << name;
    const auto ours = got.at(name).bytes(), theirs = tensor.bytes();
    EXPECT_TRUE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end())) << name;
  }
}

class WholeOnCpuTest : public testing::TestWithParam<Case> {};

TEST_P(WholeOnCpuTest, HasTheBitsOfOnnxRuntime) {
  const Case& c = GetParam();
  const auto want = RunOnOnnxRuntime(c.model, c.inputs);
  ASSERT_THAT(want, IsOk());
  const OwnCache cache;
  for (const char* how : {"planned", "from the cache"}) {
    SCOPED_TRACE(how);
    const auto session = Session::LoadBytes(c.model, {.policy = "cpu", .dims = c.dims});
    ASSERT_THAT(session, IsOk());
    const auto got = session->Run(c.inputs);
    ASSERT_THAT(got, IsOk());
    ExpectSameBits(*got, *want);
  }
}

TEST(OnCpu, AModelIsPlannedWhenItsPlanIsAskedFor) {
  const std::string bytes =
      BytesOfText("(float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Relu(x) y = Sigmoid(a) }");
  const auto session = Session::LoadBytes(bytes, {.policy = "cpu"});
  ASSERT_THAT(session, IsOk());
  EXPECT_EQ(session->times().load, 0);  // not imported
  const auto whole = Session::LoadBytes(bytes, {.policy = "cpu", .hazards = true});
  ASSERT_THAT(whole, IsOk());
  EXPECT_GT(whole->times().load, 0);
  EXPECT_EQ(session->PlanLine(), whole->PlanLine());
  EXPECT_EQ(session->PlanText(true), whole->PlanText(true));
  EXPECT_EQ(session->PlanJson(), whole->PlanJson());
  EXPECT_EQ(session->Summary().cpu_segments, whole->Summary().cpu_segments);
  EXPECT_EQ(session->Summary().macs, whole->Summary().macs);
  EXPECT_EQ(session->outputs()[0].dims, whole->outputs()[0].dims);
  EXPECT_EQ(session->inputs()[0].type_text, whole->inputs()[0].type_text);
}

INSTANTIATE_TEST_SUITE_P(Models, WholeOnCpuTest, testing::ValuesIn(Cases()),
                         [](const auto& each) { return each.param.name; });

TEST(WholeOnCpu, ReadsExternalData) {
  onnx::ModelProto model = ModelOfText("(float[2,8] x) => (float[2,8] y) { y = MatMul(x, w) }");
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(8);
  tensor.add_dims(8);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& location = *tensor.add_external_data();
  location.set_key("location");
  location.set_value("w.bin");
  const Tensor weights = Ramp({8, 8});
  const TemporaryFolder folder(testing::TempDir());
  std::ofstream(folder.path() + "/w.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(weights.bytes().data()), 256);
  const std::string path = folder.path() + "/net.onnx";
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  const auto session = Session::Load(path, {.policy = "cpu"});
  ASSERT_THAT(session, IsOk());
  const auto got = session->Run({{"x", Ramp({2, 8})}});
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->at("y").at<float>(0), [&] {
    float sum = 0;
    for (int64_t k = 0; k < 8; ++k) sum += Ramp({2, 8}).at<float>(k) * weights.at<float>(8 * k);
    return sum;
  }());
}

// The operators of each CPU segment.
std::vector<std::string> CpuOperators(const std::string& text, const std::string& policy,
                                      bool own = true) {
  const Settings settings = {.policy = policy};
  const auto runtime = std::make_shared<LazyRuntime>(1);
  std::shared_ptr<const Graph> as_read;
  ImportOptions importing = ImportingOptions(settings, runtime);
  importing.as_read = &as_read;
  const auto model = ImportBytes(BytesOfText(text), "", importing);
  EXPECT_THAT(model, IsOk());
  const auto plan = MakePlan(*model, *PlanOptionsOf(settings));
  EXPECT_THAT(plan, IsOk());
  auto parts = MakeCpuParts([&] { return runtime->Get(); }, model->graph, *plan,
                            own ? as_read.get() : nullptr);
  EXPECT_THAT(parts, IsOk());
  std::vector<std::string> operators;
  for (size_t i = 0; i < parts->size(); ++i) {
    if (plan->segments[i].placement == Placement::kEngine) continue;
    std::vector<std::string> names;
    for (const auto& node : (*parts)[i].model.model.proto.graph().node()) {
      names.push_back(node.op_type());
    }
    operators.push_back(absl::StrJoin(names, " "));
  }
  return operators;
}

constexpr char kNoProducts[] = "refuse:MatrixMultiplication,Linear,Conv";

TEST(CpuParts, HaveTheNodesOfTheFile) {
  const std::string text = absl::StrCat(
      "(float[3,6] x, float[3,6] z) => (float[3,5] y) <float[6,5] w = ", Codes(30),
      "> { a = Add(x, z) m = com.microsoft.FusedMatMul<alpha = 0.01>(a, w) g = Identity(m) "
      "s = Sigmoid(g) t = Tanh(g) y = Add(s, t) }");
  const std::string policy = absl::StrCat(kNoProducts, ",Neuron");
  EXPECT_THAT(CpuOperators(text, policy),
              testing::ElementsAre("FusedMatMul Identity Sigmoid Tanh"));
  EXPECT_THAT(CpuOperators(text, policy, /*own=*/false),
              testing::ElementsAre(Not(HasSubstr("FusedMatMul"))));
  const Tensors inputs = {{"x", Ramp({3, 6})}, {"z", Ramp({3, 6}, 0)}};
  const auto session = Session::LoadBytes(BytesOfText(text), {.policy = policy});
  ASSERT_THAT(session, IsOk());
  EXPECT_EQ(session->Summary().engine_segments, 2);
  const auto got = session->Run(inputs), want = RunOnOnnxRuntime(BytesOfText(text), inputs);
  ASSERT_THAT(got, IsOk());
  ASSERT_THAT(want, IsOk());
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_NEAR(got->at("y").at<float>(i), want->at("y").at<float>(i), 5e-3);
  }
}

// The quantizer is on the engine, so the product of integers cannot run.
TEST(CpuParts, HaveTheNodesOfTheGraphIfOneOfTheFileIsElsewhere) {
  const std::string text = absl::StrCat(
      "(float[3,6] x) => (float[3,5] y) <", Weights(),
      "> { a = Sigmoid(x) q, h, k = DynamicQuantizeLinear(a) p = MatMulInteger(q, w, k, wz) "
      "c = Cast<to = 1>(p) f = Mul(h, v) m = Mul(c, f) y = Sigmoid(m) }");
  EXPECT_THAT(CpuOperators(text, kNoProducts), testing::ElementsAre("DequantizeLinear MatMul"));
}

}  // namespace
}  // namespace anemone
