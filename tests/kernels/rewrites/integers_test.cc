// Which integers the engine holds, and that they are equal to those of ONNX Runtime for any graph.
// Also models of each float type (docs/quantized.md).
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/session.h"
#include "engine/formats/json.h"
#include "math/exact/exact_half.h"
#include "tests/kernels/harness.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

// The inputs are only 0 or 1, but the plan depends on all values that they may have.
Case Integers(const std::string& name, const std::string& ports, const std::string& constants,
              const std::string& body, std::vector<std::string> units) {
  return {.name = name,
          .model = absl::StrCat(ports, constants.empty() ? "" : absl::StrCat(" <", constants, ">"),
                                " { ", body, " }"),
          .units = std::move(units),
          .tolerance = 0};
}

Case RefusedBy(const std::string& rule, const std::string& name, const std::string& ports,
               const std::string& constants, const std::string& body) {
  Case c = Integers(name, ports, constants, body, {});
  c.refused_by = rule;
  return c;
}

// The nodes after the Cast do not distinguish different integers, so they are on the engine.
Case MaskInFloats() {
  Case c = Integers("mask_in_floats", "(int64[2,6] x) => (float[2,6] y)",
                    "float k = {1}, float l = {-10000}",
                    "a = Cast<to = 1>(x) b = Sub(k, a) y = Mul(b, l)", {"GOC", "GOC"});
  c.on_cpu = {"/#0"};
  return c;
}

std::vector<Case> Held() {
  return {
      Integers("sum_of_bytes", "(uint8[2,6] x) => (int64[2,6] y)", "",
               "a = Cast<to = 7>(x) y = Add(a, a)", {"ElementWise", "GOC"}),
      Integers("mask", "(bool[2,6] x) => (float[2,6] y)", "int64 k = {1}",
               "a = Cast<to = 7>(x) b = Sub(k, a) y = Cast<to = 1>(b)", {"GOC"}),
      Integers("comparison", "(uint8[2,6] x, int8[2,6] z) => (bool[2,6] y)", "",
               "a = Cast<to = 7>(x) b = Cast<to = 7>(z) y = Less(a, b)", {"ElementWise", "GOC"}),
      Integers("clip", "(uint8[2,6] x) => (int64[2,6] y)", "int64 l = {3}, int64 h = {200}",
               "a = Cast<to = 7>(x) y = Clip(a, l, h)", {"Neuron", "GOC"}),
      Integers("choice", "(bool[2,6] c, uint8[2,6] x) => (int64[2,6] y)",
               "int64[6] k = {1,2,3,4,5,2048}", "a = Cast<to = 7>(x) y = Where(c, a, k)",
               {"ElementWise", "ElementWise", "ElementWise", "GOC", "GOC"}),
      Integers("count", "(bool[2,6] x) => (int64[2,1] y)", "int64[1] k = {1}",
               "a = Cast<to = 7>(x) y = ReduceSum(a, k)", {"Reduction"}),
      Integers("moved", "(uint8[2,6] x) => (uint8[6,2] y)", "", "y = Transpose<perm = [1, 0]>(x)",
               {"Transpose", "GOC"}),
      RefusedBy("integer-range", "unknown_input", "(int64[2,6] x) => (int64[2,6] y)", "",
                "y = Add(x, x)"),
      RefusedBy("integer-range", "product_past_2048", "(uint8[2,6] x) => (int64[2,6] y)", "",
                "a = Cast<to = 7>(x) y = Mul(a, a)"),
      RefusedBy("integer-range", "constant_past_2048", "(uint8[2,6] x) => (bool[2,6] y)",
                "int64 k = {2049}", "a = Cast<to = 7>(x) y = Equal(a, k)"),
      RefusedBy("integer-range", "intermediate_past_2048", "(uint8[2,6] x) => (int64[2,6] y)",
                "int64 k = {10}, int64 l = {2000}",
                "a = Cast<to = 7>(x) b = Mul(a, k) y = Sub(b, l)"),
      RefusedBy("integer-wraps", "cast_that_wraps", "(uint8[2,6] x) => (int8[2,6] y)", "",
                "y = Cast<to = 3>(x)"),
      RefusedBy("integer-form", "quotient", "(uint8[2,6] x) => (int64[2,6] y)", "int64 k = {3}",
                "a = Cast<to = 7>(x) y = Div(a, k)"),
      RefusedBy("integer-form", "remainder", "(uint8[2,6] x) => (int64[2,6] y)", "int64 k = {3}",
                "a = Cast<to = 7>(x) y = Mod(a, k)"),
      RefusedBy("integer-range", "cast_of_float", "(float[2,6] x) => (int64[2,6] y)", "",
                "y = Cast<to = 7>(x)"),
      RefusedBy("integer-range", "angle_of_a_position", "(int64[6] x) => (float[6] y)",
                "float k = {0.5}", "a = Cast<to = 1>(x) b = Mul(a, k) y = Cos(b)"),
      RefusedBy("integer-range", "index_in_floats", "(int32[6] x) => (int64[6] y)",
                "float k = {0.5}",
                "a = Cast<to = 1>(x) b = Mul(a, k) c = Floor(b) y = Cast<to = 7>(c)"),
      RefusedBy("integer-range", "length_compared_in_floats", "(int64[2,1] x) => (bool[2,3] y)",
                "float[3] k = {0, 1, 2}", "a = Cast<to = 1>(x) y = Less(k, a)"),
      MaskInFloats(),
      RefusedBy("stays-double", "double", "(double[2,6] x) => (double[2,6] y)", "",
                "y = Add(x, x)"),
  };
}
INSTANTIATE_TEST_SUITE_P(Integers, KernelTest, testing::ValuesIn(Held()), CaseName);

struct Ran {
  nlohmann::json plan;
  Tensors got, want;
};

// Runs the model on the software engine and on ONNX Runtime.
void RunBoth(const std::string& model, const Tensors& inputs, Ran& ran) {
  auto session = Session::LoadBytes(model, {.threads = 1});
  ASSERT_TRUE(session.ok()) << session.status();
  auto got = session->Run(inputs);
  auto want = RunOnOnnxRuntime(model, inputs);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(want.ok()) << want.status();
  ran = {nlohmann::json::parse(session->PlanJson()), *std::move(got), *std::move(want)};
}

// A random graph of int64 values, which are all outputs.
class RandomGraph {
 public:
  explicit RandomGraph(int seed) : random_(seed) {
    for (const char* name : {"a", "b", "c"}) {
      Append(absl::StrCat("Cast<to = 7>(", name, ")"));
    }
    values_.emplace_back("d");
    while (made_.size() < 14) AddNode();
  }

  std::string Bytes() const {
    std::vector<std::string> outputs;
    for (const std::string& name : made_) {
      outputs.push_back(absl::StrCat(types_.at(name), " ", name));
    }
    return BytesOfText(absl::StrCat(
        "(uint8[2,6] a, int8[2,6] b, bool[2,6] c, int64[2,6] d) => (", absl::StrJoin(outputs, ", "),
        ") <int64 one = {1}, int64 seven = {7}, int64 low = {-100}, int64 high = "
        "{300}, int64 large = {2049}, int64[1] axis = {1}> { ",
        body_, "}"));
  }

 private:
  const std::string& Any() { return values_[random_() % values_.size()]; }
  std::string AnyOrNumber() {
    static constexpr const char* kNumbers[] = {"one", "seven", "low", "high", "large"};
    return random_() % 3 == 0 ? kNumbers[random_() % 5] : Any();
  }

  void Append(const std::string& call, const char* type = "int64[2,6]") {
    const std::string name = absl::StrCat("v", made_.size());
    absl::StrAppend(&body_, name, " = ", call, " ");
    made_.push_back(name);
    types_[name] = type;
    if (std::string(type) == "int64[2,6]") values_.push_back(name);
  }

  void AddNode() {
    static constexpr const char* kTwo[] = {"Add", "Sub", "Mul", "Min", "Max"};
    switch (random_() % 9) {
      case 0:
        return Append(absl::StrCat("Clip(", Any(), ", low, high)"));
      case 1:
        return Append(absl::StrCat("Abs(", Any(), ")"));
      case 2:
        return Append(absl::StrCat("Neg(", Any(), ")"));
      case 3:
        return Append(absl::StrCat("Where(c, ", Any(), ", ", AnyOrNumber(), ")"));
      case 4:
        return Append(absl::StrCat(random_() % 2 == 0 ? "Div(" : "Mod(", Any(), ", seven)"));
      case 5:
        return Append(absl::StrCat("Equal(", Any(), ", ", AnyOrNumber(), ")"), "bool[2,6]");
      case 6:
        return Append(absl::StrCat("ReduceSum(", Any(), ", axis)"), "int64[2,1]");
      default:
        return Append(absl::StrCat(kTwo[random_() % 5], "(", Any(), ", ", AnyOrNumber(), ")"));
    }
  }

  std::mt19937 random_;
  std::string body_;
  std::vector<std::string> values_, made_;
  std::map<std::string, std::string> types_;
};

Tensor RandomBytes(DataType type, std::mt19937& random) {
  Tensor tensor = Tensor::Zeros(type, {2, 6});
  for (int i = 0; i < 12; ++i) {
    const uint32_t bits = random();
    switch (type) {
      case DataType::kInt64:
        tensor.mutable_data<int64_t>()[i] = static_cast<int32_t>(bits);
        break;
      case DataType::kBool:
        tensor.mutable_data<uint8_t>()[i] = bits % 2;
        break;
      default:
        tensor.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(bits);
    }
  }
  return tensor;
}

TEST(RandomIntegers, AreOnTheEngineWhatTheyAreOnOnnxRuntime) {
  int on_engine = 0, on_cpu = 0;
  for (int seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Ran ran;
    RunBoth(RandomGraph(seed).Bytes(),
            {{"a", RandomBytes(DataType::kUInt8, random)},
             {"b", RandomBytes(DataType::kInt8, random)},
             {"c", RandomBytes(DataType::kBool, random)},
             {"d", RandomBytes(DataType::kInt64, random)}},
            ran);
    if (HasFatalFailure()) return;
    for (const auto& [name, want] : ran.want) {
      EXPECT_TRUE(ran.got.at(name).bytes() == want.bytes()) << name;
    }
    for (const nlohmann::json& node : ran.plan["nodes"]) {
      ++(node["placement"] == "engine" ? on_engine : on_cpu);
    }
  }
  EXPECT_GT(on_engine, 40) << "of " << on_engine + on_cpu << " nodes: the test says nothing";
  EXPECT_GT(on_cpu, 40);
}

// A tensor of a 16-bit float type.
Tensor Sixteen(DataType type, const std::vector<float>& values) {
  Tensor tensor = Tensor::Zeros(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    tensor.mutable_data<uint16_t>()[i] = type == DataType::kBFloat16
                                             ? static_cast<uint16_t>(bits >> 16)
                                             : math::ToHalf(values[i]).bits;
  }
  return tensor;
}

// The engine computes in fp16, so a float16 model gives the same bits.
TEST(Types, Fp16IsTakenAsItIs) {
  Ran ran;
  RunBoth(BytesOfText("(float16[4] x) => (float16[4] y) { r = Relu(x) y = Add(r, r) }"),
          {{"x", Sixteen(DataType::kFloat16, {-1, 0.333F, 1000, 2047})}}, ran);
  if (HasFatalFailure()) return;
  EXPECT_TRUE(ran.got["y"].bytes() == ran.want["y"].bytes());
  EXPECT_EQ(ran.plan["summary"]["engine_nodes"], 2);
}

// fp16 has more bits than bf16, but not its range.
TEST(Types, BFloat16IsHeldAsFp16) {
  auto session = Session::LoadBytes(
      BytesOfText("(bfloat16[4] x) => (bfloat16[4] y) { r = Relu(x) y = Add(r, r) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(nlohmann::json::parse(session->PlanJson())["summary"]["engine_nodes"], 2);
  auto y = session->Run({{"x", Sixteen(DataType::kBFloat16, {-1, 0.3125F, 1000, 65536})}});
  ASSERT_TRUE(y.ok()) << y.status();
  const Tensor want = Sixteen(DataType::kBFloat16, {0, 0.625F, 2000, INFINITY});
  EXPECT_TRUE(y->at("y").bytes() == want.bytes());
}

// Values that are cast to float are on the engine; values of type double are not.
TEST(Types, DoubleStaysExact) {
  Ran ran;
  Tensor x = Tensor::Of<double>(DataType::kDouble, {2}, {{1 + 0x1p-40, -3}});
  RunBoth(BytesOfText("(double[2] x) => (double[2] d, float[2] y) { d = Mul(x, x) "
                      "f = Cast<to = 1>(x) y = Relu(f) }"),
          {{"x", x}}, ran);
  if (HasFatalFailure()) return;
  EXPECT_TRUE(ran.got["d"].bytes() == ran.want["d"].bytes());
  EXPECT_TRUE(ran.got["y"].bytes() == ran.want["y"].bytes());
  EXPECT_EQ(ran.plan["summary"]["engine_nodes"], 1);
}

}  // namespace
}  // namespace anemone
