// Sin and Cos by polynomials before A15, and Tan on all targets, within the error bounds of
// kernels/rewrites/trigonometry.cc.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<std::string> kPolynomial = {
    "ElementWise", "ElementWise", "ElementWise", "ElementWise", "ElementWise", "ElementWise",
    "ElementWise", "GOC",         "GOC",         "GOC",         "GOC",         "GOC",
    "GOC",         "GOC",         "GOC",         "Neuron",      "Neuron",      "Neuron"};

// y = op(x), where x is 0 or a multiple of `step` up to `most`, as bits say: a float input would be
// rounded, and far from zero that moves a sine more than its polynomial does.
Case Exactly(const std::string& name, const std::string& op, const std::string& target, float most,
             float step, double tolerance, std::vector<std::string> units) {
  std::vector<float> values;
  for (float x = -most; x <= most; x += step) values.push_back(x);
  std::string shape = absl::StrCat("[", values.size(), "]");
  units.push_back("ElementWise");
  return {.name = name,
          .model = absl::StrCat("(bool", shape, " b) => (float", shape, " y) <float", shape,
                                " w = {", absl::StrJoin(values, ","),
                                "}> { f = Cast<to = 1>(b) x = Mul(f, w) y = ", op, "(x) }"),
          .target = target,
          .units = std::move(units),
          .tolerance = tolerance};
}

std::vector<std::string> CosinePolynomial() {
  std::vector<std::string> units = kPolynomial;
  units.insert(units.end(), {"GOC"});
  return units;
}

std::vector<std::string> TanPolynomial() {
  std::vector<std::string> units(10, "ElementWise");
  units.insert(units.end(), 9, "GOC");
  units.insert(units.end(), 3, "Neuron");
  return units;
}

const std::vector<Case> kTrigonometryCases = {
    Exactly("sin_near_zero", "Sin", "h14", 4, 1.0f / 256, 1.1e-3, kPolynomial),
    Exactly("sin_to_254", "Sin", "h13", 254, 0.125f, 1.1e-3, kPolynomial),
    Exactly("sin_on_a12", "Sin", "h12", 20, 1.0f / 64, 1.1e-3, kPolynomial),
    Exactly("cos_near_zero", "Cos", "h13", 4, 1.0f / 256, 1.1e-3, CosinePolynomial()),
    Exactly("cos_to_128", "Cos", "h14", 128, 0.125f, 1.1e-3, CosinePolynomial()),
    Exactly("sin_from_a15", "Sin", "h15", 254, 0.125f, 5e-4, {"Neuron"}),
    Exactly("tan_by_polynomials", "Tan", "h13", 1.5, 1.0f / 256, 2.1e-3, TanPolynomial()),
    Exactly("tan_on_a12", "Tan", "h12", 4.5, 1.0f / 64, 2.1e-3, TanPolynomial()),
    Exactly("tan_from_a15", "Tan", "h15", 7.5, 1.0f / 64, 1.2e-3,
            {"Neuron", "Neuron", "Neuron", "ElementWise"}),
    {.name = "sin_without_rewrites",
     .model = "(float[8] x) => (float[8] y) { y = Sin(x) }",
     .rewrites = false,
     .refused_by = "neuron-type"},
    {.name = "tan_without_rewrites",
     .model = "(float[8] x) => (float[8] y) { y = Tan(x) }",
     .target = "h16",
     .rewrites = false,
     .refused_by = "no-lowering"},
};

INSTANTIATE_TEST_SUITE_P(Trigonometry, KernelTest, testing::ValuesIn(kTrigonometryCases), CaseName);

}  // namespace
}  // namespace anemone
