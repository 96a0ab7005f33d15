// Elementwise functions: every ONNX operator that is one Neuron unit, and Clip and Log; and the
// first family that supports each.
#include "absl/strings/str_cat.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

// y = op(x) for a batch of two.
Case Unary(const std::string& name, const std::string& call, std::vector<std::string> units,
           float low = -4, float high = 4, const std::string& target = "h13") {
  return {.name = name,
          .model = absl::StrCat("(float[2,5,6,7] x) => (float[2,5,6,7] y) { y = ", call, " }"),
          .target = target,
          .units = std::move(units),
          .low = low,
          .high = high};
}

Case Refused(const std::string& name, const std::string& call, const std::string& target,
             const std::string& rule) {
  Case c = Unary(name, call, {}, 0.1f, 4, target);
  c.rewrites = false;
  c.refused_by = rule;
  return c;
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      Unary("relu", "Relu(x)", {"Neuron"}),
      Unary("relu_h16", "Relu(x)", {"Neuron"}, -4, 4, "h16"),
      Unary("relu_h11", "Relu(x)", {"Neuron"}, -4, 4, "h11"),
      Unary("sigmoid", "Sigmoid(x)", {"Neuron"}, -12, 12),
      Unary("tanh", "Tanh(x)", {"Neuron"}),
      Unary("gelu", "Gelu(x)", {"Neuron"}),
      Unary("gelu_tanh", "Gelu<approximate = \"tanh\">(x)", {"Neuron"}),
      Unary("erf", "Erf(x)", {"Neuron"}),
      Unary("sqrt", "Sqrt(x)", {"Neuron"}, 0, 100),
      Unary("reciprocal", "Reciprocal(x)", {"Neuron"}, 0.1f, 10),
      Unary("exp", "Exp(x)", {"Neuron"}, -8, 8),
      Unary("sin_from_a15", "Sin(x)", {"Neuron"}, -4, 4, "h15"),
      Unary("cos_from_a15", "Cos(x)", {"Neuron"}, -4, 4, "h16"),
      Unary("atan", "Atan(x)", {"Neuron"}),
      Unary("sign", "Sign(x)", {"Neuron"}),
      Unary("elu", "Elu(x)", {"Neuron"}),
      Unary("elu_alpha", "Elu<alpha = 0.3>(x)", {"Neuron"}),
      Unary("leaky_relu", "LeakyRelu(x)", {"Neuron"}),
      Unary("leaky_relu_alpha", "LeakyRelu<alpha = 0.25>(x)", {"Neuron"}),
      Unary("log", "Log(x)", {"Neuron", "GOC"}, 0.01f, 100),
      Refused("sin_below_a15", "Sin(x)", "h14", "neuron-type"),
      Refused("cos_below_a15", "Cos(x)", "h13", "neuron-type"),
      Refused("erf_below_a13", "Erf(x)", "h12", "neuron-type"),
      Refused("sqrt_below_a13", "Sqrt(x)", "h12", "neuron-type"),
  };
  Case mil = Refused("sin_below_a15_on_mil", "Sin(x)", "h13", "neuron-family");
  mil.route = "mil";
  cases.push_back(mil);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Neuron, KernelTest, testing::ValuesIn(Cases()), CaseName);

const std::vector<Case> kClips = {
    {.name = "relu6",
     .model = "(float[1,8,6,6] x) => (float[1,8,6,6] y) <float low = {0}, float high = {6}> "
              "{ y = Clip(x, low, high) }",
     .units = {"Neuron"},
     .low = -9,
     .high = 9},
    {.name = "two_bounds",
     .model = "(float[3,8] x) => (float[3,8] y) <float low = {-0.5}, float high = {0.25}> "
              "{ y = Clip(x, low, high) }",
     .target = "h16",
     .units = {"Neuron"}},
    {.name = "from_zero_is_relu",
     .model = "(float[3,8] x) => (float[3,8] y) <float low = {0}> { y = Clip(x, low) }",
     .units = {"Neuron"}},
    {.name = "lower_bound_only",
     .model = "(float[3,8] x) => (float[3,8] y) <float low = {-0.25}> { y = Clip(x, low) }",
     .units = {"ElementWise"}},
    {.name = "upper_bound_only",
     .model = "(float[3,8] x) => (float[3,8] y) <float high = {0.5}> { y = Clip(x, , high) }",
     .units = {"ElementWise"}},
    {.name = "upper_bound_of_float",
     .model = "(float[3,8] x) => (float[3,8] y) <float low = {-0.5}, float high = {3.4e38}> "
              "{ y = Clip(x, low, high) }",
     .units = {"ElementWise"}},
    {.name = "bounds_crossed",
     .model = "(float[3,8] x) => (float[3,8] y) <float low = {0.5}, float high = {-0.5}> "
              "{ y = Clip(x, low, high) }",
     .units = {"ElementWise", "ElementWise"}},
    {.name = "bounds_at_run_time",
     .model = "(float[3,8] x, float low, float high) => (float[3,8] y) "
              "{ y = Clip(x, low, high) }",
     .units = {"ElementWise", "ElementWise"}},
};

INSTANTIATE_TEST_SUITE_P(Clip, KernelTest, testing::ValuesIn(kClips), CaseName);

}  // namespace
}  // namespace anemone
