// Pow, Mod and Round: operators that are computed by several arithmetic units.
#include "absl/strings/str_cat.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

// A model over x, whose elements are exact in fp16: w, or w + s where the input is true. So
// functions that are not continuous get the same arguments here and on ONNX Runtime.
std::string Exact(const std::string& body, const std::string& constant = "float unused = {0}") {
  return absl::StrCat(
      "(bool[20] c) => (float[20] y) <float[20] w = {-3.75, -2.5, -1.5, -1, -0.5, -0.25, 0, 0.25, "
      "0.5, 0.75, 1, 1.5, 2.5, 3.5, 5.5, 100.5, 511.5, 1023.5, 1025, 2040}, float[20] s = {1, 1, "
      "1, 1, 0.25, 0.25, 0.25, 0.25, 0.25, 0.5, 1, 1, 1, 1, 2, 0.5, 1, 0.5, 2, 4}, ",
      constant, "> { f = Cast<to = 1>(c) g = Mul(f, s) x = Add(g, w) ", body, " }");
}

const std::vector<Case> kArithmeticCases = {
    {.name = "square",
     .model = "(float[2,3,4,5] x) => (float[2,3,4,5] y) <float k = {2}> { y = Pow(x, k) }",
     .units = {"ElementWise"},
     .low = -3,
     .high = 3},
    {.name = "cube_by_integer",
     .model = "(float[2,3,4,5] x) => (float[2,3,4,5] y) <int64 k = {3}> { y = Pow(x, k) }",
     .units = {"ElementWise", "ElementWise"},
     .low = -3,
     .high = 3},
    {.name = "fifth",
     .model = "(float[2,60] x) => (float[2,60] y) <float k = {5}> { y = Pow(x, k) }",
     .units = {"ElementWise", "ElementWise", "ElementWise"},
     .low = -3,
     .high = 3},
    {.name = "inverse_square",
     .model = "(float[2,60] x) => (float[2,60] y) <float k = {-2}> { y = Pow(x, k) }",
     .units = {"ElementWise", "Neuron"},
     .low = 0.5f,
     .high = 3},
    {.name = "first_is_nothing",
     .model = "(float[2,60] x) => (float[2,60] y) <float k = {1}> "
              "{ a = Relu(x) y = Pow(a, k) }",
     .units = {"Neuron"}},
    {.name = "zeroth",
     .model = "(float[2,60] x) => (float[2,60] y) <float k = {0}> { y = Pow(x, k) }",
     .units = {"GOC"}},
    {.name = "root",
     .model = "(float[2,60] x) => (float[2,60] y) <float k = {0.5}> { y = Pow(x, k) }",
     .target = "h16",
     .units = {"Neuron"},
     .low = 0,
     .high = 9},
    {.name = "inverse_root",
     .model = "(float[2,60] x) => (float[2,60] y) <float k = {-0.5}> { y = Pow(x, k) }",
     .units = {"Neuron"},
     .low = 0.25f,
     .high = 9},
    {.name = "any_number",
     .model = "(float[2,60] x) => (float[2,60] y) <float k = {1.7}> { y = Pow(x, k) }",
     .units = {"ElementWise"},
     .low = 0.1f,
     .high = 3},
    {.name = "per_channel",
     .model = "(float[2,3,4,5] x) => (float[2,3,4,5] y) <float[3,1,1] k> { y = Pow(x, k) }",
     .units = {"ElementWise"},
     .low = 0.1f,
     .high = 2},
    {.name = "number_to_the_x",
     .model = "(float[2,60] x) => (float[2,60] y) <float k = {2}> { y = Pow(k, x) }",
     .units = {"ElementWise"},
     .low = -4,
     .high = 4},
    {.name = "at_run_time",
     .model = "(float[2,60] x, float[60] k) => (float[2,60] y) { y = Pow(x, k) }",
     .units = {"ElementWise"},
     .low = 0.1f,
     .high = 2},
    {.name = "mod",
     .model = Exact("y = Mod<fmod = 1>(x, k)", "float k = {3}"),
     .units = {"ElementWise", "ElementWise", "Neuron", "ElementWise", "ElementWise", "ElementWise",
               "Neuron", "ElementWise", "ElementWise", "ElementWise"},
     .tolerance = 0},
    {.name = "mod_of_tensors",
     .model = "(float[4,9] x, float[9] k) => (float[4,9] y) { y = Mod<fmod = 1>(x, k) }",
     .target = "h16",
     .units = {"ElementWise", "ElementWise", "ElementWise", "Neuron", "Neuron", "ElementWise",
               "ElementWise", "ElementWise"},
     .low = 1,
     .high = 1.9f},
    {.name = "mod_is_a_rewrite",
     .model = "(float[8] x, float[8] k) => (float[8] y) { y = Mod<fmod = 1>(x, k) }",
     .rewrites = false,
     .refused_by = "no-lowering"},
    {.name = "mod_of_integers",
     .model = "(int64[8] x) => (int64[8] y) <int64 k = {3}> { y = Mod(x, k) }",
     .refused_by = "integer-form"},
    {.name = "round",
     .model = Exact("y = Round(x)"),
     .units = {"ElementWise", "ElementWise", "GOC", "Neuron", "GOC", "ElementWise", "ElementWise",
               "ElementWise", "ElementWise", "GOC", "ElementWise", "Neuron", "ElementWise",
               "ElementWise"},
     .tolerance = 0},
    // The fp16 numbers next to a half. The inputs are so large that x = w.
    {.name = "round_next_to_a_half",
     .model = "(float[4] a) => (float[4] y) <float[4] w = {-0.50048828125, -0.499755859375, "
              "-1.5009765625, 0.50048828125}> { x = Min(a, w) y = Round(x) }",
     .units = {"ElementWise", "GOC", "Neuron", "GOC", "ElementWise", "ElementWise", "ElementWise",
               "ElementWise", "GOC", "ElementWise", "Neuron", "ElementWise", "ElementWise"},
     .tolerance = 0,
     .low = 1,
     .high = 2},
    {.name = "floor",
     .model = Exact("y = Floor(x)"),
     .units = {"ElementWise", "ElementWise", "Neuron"},
     .tolerance = 0},
    {.name = "ceil",
     .model = Exact("y = Ceil(x)"),
     .target = "h16",
     .units = {"ElementWise", "ElementWise", "Neuron"},
     .tolerance = 0},
};

INSTANTIATE_TEST_SUITE_P(Arithmetic, KernelTest, testing::ValuesIn(kArithmeticCases), CaseName);

}  // namespace
}  // namespace anemone
