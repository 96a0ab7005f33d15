// QuantizeLinear -> DequantizeLinear: the forms, and the error bound of docs/quantized.md.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/session.h"
#include "math/exact/exact_half.h"
#include "tests/kernels/harness.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

using UnitNames = std::vector<std::string>;

const UnitNames kSteps = {"GOC", "Neuron", "Neuron", "GOC"};
const UnitNames kFactoredSteps = {"GOC", "GOC", "Neuron", "Neuron", "GOC", "GOC"};
const UnitNames kAxisSteps = {"ElementWise", "ElementWise", "ElementWise", "Neuron", "ElementWise"};

// A pair applied to x of `dims`; `scale` and `zero` declare the scale and the zero point.
Case Pair(const std::string& name, const std::string& dims, const std::string& scale,
          const std::string& zero, UnitNames units, double tolerance,
          const std::string& attributes = "") {
  const std::string grid = zero.empty() ? "s" : "s, z";
  return {.name = name,
          .model =
              absl::StrCat("(float[", dims, "] x) => (float[", dims, "] y) <", scale,
                           zero.empty() ? "" : ", ", zero, "> { q = QuantizeLinear", attributes,
                           "(x, ", grid, ") y = DequantizeLinear", attributes, "(q, ", grid, ") }"),
          .units = std::move(units),
          .tolerance = tolerance};
}

Case Refused(Case c, const std::string& rule = "form-not-lowered") {
  c.units.clear();
  c.refused_by = rule;
  return c;
}

// Tolerances are one quantization step as a fraction of the largest quantized value.
std::vector<Case> Pairs() {
  std::vector<Case> cases = {
      Pair("uint8", "2,8,5,6", "float s = {0.01}", "uint8 z = {120}", kSteps, 0.011),
      Pair("uint8_from_0", "2,8,5,6", "float s = {0.005}", "uint8 z = {0}", kSteps, 0.006),
      Pair("uint8_without_zero_point", "4,5", "float s = {0.005}", "", kSteps, 0.006),
      Pair("int8", "3,7", "float s = {0.008}", "int8 z = {0}", kSteps, 0.009),
      Pair("int8_asymmetric", "3,7", "float s = {0.008}", "int8 z = {-50}", kSteps, 0.009),
      Pair("scale_of_rank_1", "3,7", "float[1] s = {0.008}", "int8[1] z = {3}", kSteps, 0.009),
      Pair("power_of_2", "64", "float s = {0.0078125}", "int8 z = {0}", kSteps, 0.009),
      Pair("uint16", "2,8,5,6", "float s = {0.00002}", "uint16 z = {30000}", {"Neuron"}, 1e-3),
      Pair("int16", "2,8,5,6", "float s = {0.00002}", "int16 z = {0}", {"Neuron"}, 1e-3),
      Pair("int16_that_clips", "2,8,5,6", "float s = {0.00001}", "int16 z = {0}", {"Neuron"}, 1e-3),
      Pair("by_channel", "2,3,5", "float[3] s = {0.01, 0.02, 0.03}", "uint8[3] z = {120, 130, 0}",
           kAxisSteps, 0.031),
      Pair("by_last_axis", "2,5,3", "float[3] s = {0.01, 0.02, 0.03}", "int8[3] z = {0, 0, 0}",
           kAxisSteps, 0.031, "<axis = -1>"),
      Pair("by_channel_of_rank_5", "2,3,2,2,5", "float[3] s = {0.01, 0.02, 0.03}",
           "int8[3] z = {0, 0, 0}", kAxisSteps, 0.031),
      Pair("int16_by_channel", "2,3,5", "float[3] s = {0.00003, 0.00004, 0.00005}",
           "int16[3] z = {0, 0, 0}", {"ElementWise", "ElementWise"}, 1e-3),
      {.name = "fp16",
       .model = "(float[3,7] x) => (float[3,7] y) <float s = {0.01}, uint8 z = {120}> "
                "{ h = Cast<to = 10>(x) t = Cast<to = 10>(s) q = QuantizeLinear(h, t, z) "
                "d = DequantizeLinear(q, t, z) y = Cast<to = 1>(d) }",
       .units = kSteps,
       .tolerance = 0.011},
      Pair("scale_below_fp16", "4,5", "float s = {0.00001}", "uint8 z = {0}", kFactoredSteps,
           0.006),
      Refused(Pair("smaller_scale", "4,5", "float s = {0.0000009}", "uint8 z = {0}", {}, 1e-3)),
      Refused(Pair("small_scales_by_channel", "2,3,5", "float[3] s = {0.01, 0.02, 0.00001}",
                   "uint8[3] z = {120, 130, 0}", {}, 1e-3)),
  };
  for (const char* bytes : {"uint8", "int8"}) {
    cases.push_back(
        {.name = absl::StrCat("input_of_", bytes),
         .model = absl::StrCat("(", bytes, "[2,6] q) => (float[2,6] y) <float s = {0.03}, ", bytes,
                               " z = {100}> { y = DequantizeLinear(q, s, z) }"),
         .units = {"GOC", "GOC"},
         .tolerance = 1e-3});
    cases.push_back({.name = absl::StrCat("small_input_of_", bytes),
                     .model = absl::StrCat("(", bytes,
                                           "[2,6] q) => (float[2,6] y) <float s = {0.00003}> "
                                           "{ y = DequantizeLinear(q, s) }"),
                     .units = {"GOC", "GOC", "GOC"},
                     .tolerance = 1e-3});
  }
  cases.push_back(Refused({.name = "input_of_uint16",
                           .model = "(uint16[2,6] q) => (float[2,6] y) <float s = {0.03}> "
                                    "{ y = DequantizeLinear(q, s) }",
                           .units = {}},
                          "integer-range"));
  // The model returns the integers; --no-rewrites; DequantizeLinear has a different scale.
  Case c = Pair("integers_are_returned", "4,5", "float s = {0.01}", "uint8 z = {120}", {}, 1e-3);
  c.model =
      "(float[4,5] x) => (float[4,5] y, uint8[4,5] q) <float s = {0.01}, uint8 z = {120}> "
      "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }";
  cases.push_back(Refused(c));
  c = Pair("without_rewrites", "4,5", "float s = {0.01}", "uint8 z = {120}", {}, 0);
  c.rewrites = false;
  cases.push_back(Refused(c));
  c = Pair("two_grids", "4,5", "float s = {0.01}", "uint8 z = {120}", {}, 1e-3);
  c.model =
      "(float[4,5] x) => (float[4,5] y) <float s = {0.01}, float t = {0.02}, uint8 z = {120}> "
      "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, t, z) }";
  cases.push_back(Refused(c));
  return cases;
}

// Pairs next to other nodes, after the importer's passes.
std::vector<Case> Around() {
  const std::string grid = " <float s = {0.01}, uint8 z = {120}";
  const auto with = [&](const std::string& name, const std::string& ports, const std::string& more,
                        const std::string& body, UnitNames units) {
    return Case{
        .name = name,
        .model = absl::StrCat(ports, grid, more, "> { q = QuantizeLinear(x, s, z) ", body, " }"),
        .units = std::move(units),
        .tolerance = 0.021};
  };
  const auto plus = [](UnitNames units, const UnitNames& more) {
    units.insert(units.end(), more.begin(), more.end());
    return units;
  };
  return {
      with("read_by_two", "(float[4,5] x) => (float[4,5] y)", "",
           "a = DequantizeLinear(q, s, z) b = DequantizeLinear(q, s, z) y = Add(a, b)",
           plus(kSteps, {"ElementWise"})),
      with("moved_between", "(float[1,4,6,6] x) => (float[1,9,4] y)", ", int64[3] d = {1, 4, 9}",
           "m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(q) r = Reshape(m, d) "
           "t = Transpose<perm = [0, 2, 1]>(r) y = DequantizeLinear(t, s, z)",
           plus(kSteps, {"Pooling", "Transpose"})),
      with("on_the_grid_already", "(float[1,4,6,6] x) => (float[1,4,3,3] y)", "",
           "a = DequantizeLinear(q, s, z) m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(a) "
           "r = Relu(m) p = QuantizeLinear(r, s, z) y = DequantizeLinear(p, s, z)",
           plus(kSteps, {"Pooling", "Neuron"})),
      {.name = "dynamic",
       .model = "(float[4,8] x) => (float[4,8] y) { q, s, z = DynamicQuantizeLinear(x) "
                "y = DequantizeLinear(q, s, z) }",
       .units = {},
       .tolerance = 0.005},
  };
}

INSTANTIATE_TEST_SUITE_P(QuantizePair, KernelTest, testing::ValuesIn(Pairs()), CaseName);
INSTANTIATE_TEST_SUITE_P(QuantizePairAround, KernelTest, testing::ValuesIn(Around()), CaseName);

struct Bits {
  const char* type;
  int low, high;
};

// Compares each element with the definition computed in double, for fp16 numbers.
class QuantizePairBound : public testing::TestWithParam<Bits> {};

TEST_P(QuantizePairBound, Holds) {
  const auto [type, low, high] = GetParam();
  const bool is_fine = high - low > 2048;
  std::mt19937 random(5);
  for (int round = 0; round < 12; ++round) {
    const double span =
        std::ldexp(1 + random() % 1000 / 1000.0, static_cast<int>(random() % 16) - 12);
    const auto scale = static_cast<float>(span / (high - low));
    const int zero = round % 3 == 0 ? low : low + static_cast<int>(random() % (high - low));
    SCOPED_TRACE(absl::StrCat("scale ", scale, ", zero point ", zero));
    auto session = Session::LoadBytes(BytesOfText(
        absl::StrFormat("(float[512] x) => (float[512] y) <float s = {%.9g}, %s z = {%d}> "
                        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
                        scale, type, zero)));
    ASSERT_TRUE(session.ok()) << session.status();
    Tensor x = Tensor::Zeros(DataType::kFloat, {512});
    for (int i = 0; i < 512; ++i) {
      const double t = low - zero - 20 + (high - low + 40) * (random() % 65536 / 65536.0);
      x.mutable_data<float>()[i] = math::ToFloat(math::ToHalf(t * scale));
    }
    auto y = session->Run({{"x", x}});
    ASSERT_TRUE(y.ok()) << y.status();
    for (int i = 0; i < 512; ++i) {
      const double t = x.at<float>(i) / static_cast<double>(scale);
      const double q = std::clamp(std::nearbyint(t), low - 1.0 * zero, high - 1.0 * zero);
      const double want = q * scale;
      const double got = y->at("y").at<float>(i);
      const double rounding = std::abs(want) * 0x1p-10 + 0x1p-24;
      const bool near_half = std::abs(t - std::floor(t) - 0.5) <= std::abs(t) * 0x1p-10;
      const double bound = is_fine ? scale / 2 : near_half ? scale : 0;
      ASSERT_LE(std::abs(got - want), bound * (1 + 0x1p-10) + rounding)
          << "x " << x.at<float>(i) << ", x / scale " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(QuantizePair, QuantizePairBound,
                         testing::Values(Bits{"uint8", 0, 255}, Bits{"int8", -128, 127},
                                         Bits{"uint16", 0, 65535}, Bits{"int16", -32768, 32767}),
                         [](const auto& info) { return std::string(info.param.type); });

}  // namespace
}  // namespace anemone
