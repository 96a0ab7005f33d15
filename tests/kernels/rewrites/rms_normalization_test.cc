// RMS normalization in the forms that exporters write becomes one L2Normalization and a scale.
#include "absl/strings/str_cat.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<std::string> kScaled = {"L2Normalization", "ElementWise"};
const std::vector<std::string> kAlone = {"L2Normalization", "GOC"};

std::string Rms(const std::string& nodes) {
  return absl::StrCat(
      "(float[2,10,32] x) => (float[2,10,32] y) <float[32] w, float e = {0.00001}, float two = "
      "{2}, "
      "float one = {1}, float half = {-0.5}, int64[1] last = {-1}, int64[2] both = {1, 2}> { ",
      nodes, " }");
}

const char kPow[] = "s = Pow(x, two) m = ReduceMean(s, last) a = Add(m, e) ";

const std::vector<Case> kRmsNormalizationCases = {
    {.name = "llama_of_torchscript",
     .model = Rms(absl::StrCat(kPow, "r = Sqrt(a) i = Div(one, r) n = Mul(x, i) y = Mul(w, n)")),
     .opset = 18,
     .units = kScaled},
    {.name = "llama_of_dynamo",
     .model = Rms(absl::StrCat(kPow, "r = Sqrt(a) i = Reciprocal(r) n = Mul(x, i) y = Mul(w, n)")),
     .opset = 18,
     .units = kScaled},
    {.name = "large_values",  // whose squares are infinite in fp16
     .model = Rms(absl::StrCat(kPow, "r = Sqrt(a) i = Reciprocal(r) n = Mul(x, i) y = Mul(w, n)")),
     .units = kScaled,
     .low = -2000,
     .high = 2000,
     .seed = 2},
    {.name = "power_of_minus_a_half",
     .model = Rms(absl::StrCat(kPow, "i = Pow(a, half) n = Mul(i, x) y = Mul(n, w)")),
     .units = kScaled},
    {.name = "square_as_product_and_no_scale",
     .model = Rms("s = Mul(x, x) m = ReduceMean(s, last) a = Add(e, m) r = Sqrt(a) y = Div(x, r)"),
     .units = kAlone},
    {.name = "over_two_axes",
     .model = Rms("s = Mul(x, x) m = ReduceMean(s, both) a = Add(e, m) r = Sqrt(a) y = Div(x, r)"),
     .units = kAlone},
    {.name = "in_half_precision",
     .model =
         "(float[2,10,32] x32) => (float[2,10,32] y) <float[32] w32, float e = {0.00001}, float "
         "two = {2}, int64[1] last = {-1}> { x = Cast<to = 10>(x32) f = Cast<to = 1>(x) "
         "s = Pow(f, two) m = ReduceMean(s, last) a = Add(m, e) r = Sqrt(a) i = Reciprocal(r) "
         "n = Mul(f, i) h = Cast<to = 10>(n) w = Cast<to = 10>(w32) o = Mul(w, h) "
         "y = Cast<to = 1>(o) }",
     .units = kScaled},
    {.name = "operator",
     .model =
         "(float[2,10,32] x) => (float[2,10,32] y) <float[32] w> { y = RMSNormalization(x, w) }",
     .opset = 23,
     .units = kScaled},
    // What stays plain.
    {.name = "scale_at_run_time",
     .model = "(float[2,10,32] x, float[32] w) => (float[2,10,32] y) <float e = {0.00001}, "
              "int64[1] last = {-1}> { s = Mul(x, x) m = ReduceMean(s, last) a = Add(m, e) "
              "r = Sqrt(a) n = Div(x, r) y = Mul(n, w) }",
     .units = {"L2Normalization", "GOC", "ElementWise"}},
    {.name = "root_is_read_too",
     .model = "(float[2,10,32] x) => (float[2,10,32] y, float[2,10,1] r) <float e = {0.00001}, "
              "int64[1] last = {-1}> { s = Mul(x, x) m = ReduceMean(s, last) a = Add(m, e) "
              "r = Sqrt(a) y = Div(x, r) }",
     .units = {"ElementWise", "Reduction", "GOC", "Neuron", "ElementWise"}},
    {.name = "square_of_another",
     .model = "(float[2,10,32] x, float[2,10,32] z) => (float[2,10,32] y) <float e = {0.00001}, "
              "int64[1] last = {-1}> { s = Mul(z, z) m = ReduceMean(s, last) a = Add(m, e) "
              "r = Sqrt(a) y = Div(x, r) }",
     .units = {"ElementWise", "Reduction", "GOC", "Neuron", "ElementWise"}},
    {.name = "scale_that_repeats_x",
     .model = "(float[1,32] x) => (float[3,32] y) <float[3,32] w, float e = {0.00001}, "
              "int64[1] last = {-1}> { s = Mul(x, x) m = ReduceMean(s, last) a = Add(m, e) "
              "r = Sqrt(a) n = Div(x, r) y = Mul(n, w) }",
     .units = {"L2Normalization", "GOC", "ElementWise"}},
    {.name = "on_route_mil",
     .model = Rms("s = Mul(x, x) m = ReduceMean(s, last) a = Add(e, m) r = Sqrt(a) y = Div(x, r)"),
     .target = "h16",
     .route = "mil",
     .units = {"ElementWise", "Reduction", "GOC", "Neuron", "ElementWise"}},
};
INSTANTIATE_TEST_SUITE_P(RmsNormalization, KernelTest, testing::ValuesIn(kRmsNormalizationCases),
                         CaseName);

}  // namespace
}  // namespace anemone
