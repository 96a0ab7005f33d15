// Sinh, Cosh and the inverse functions, within the error bounds of kernels/rewrites/hyperbolic.cc:
// over their domains (where the rounding of the float input adds to the error), at the ends of the
// domains, and near zero, where the formulas would have cancellation.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/kernels/on_targets.h"

namespace anemone {
namespace {

std::vector<std::string> Counted(int elementwise, int gains, int neurons) {
  return Units({{"ElementWise", elementwise}, {"GOC", gains}, {"Neuron", neurons}});
}

// y = op(w) for these fp16 numbers. The maximum with the input makes w a value computed at run
// time.
Case At(const std::string& name, const std::string& op, const std::vector<float>& values,
        double tolerance, std::vector<std::string> units) {
  const std::string shape = absl::StrCat("[", values.size(), "]");
  units.push_back("ElementWise");
  return {.name = name,
          .model = absl::StrCat("(float[1] x) => (float", shape, " y) <float", shape, " w = {",
                                absl::StrJoin(values, ","), "}> { v = Max(x, w) y = ", op, "(v) }"),
          .units = std::move(units),
          .tolerance = tolerance,
          .low = -70000,  // -infinity in fp16, so the maximum is w
          .high = -70000};
}

Case Over(const std::string& name, const std::string& op, float low, float high, double tolerance,
          std::vector<std::string> units) {
  return {.name = name,
          .model = absl::StrCat("(float[2,3,5,40] x) => (float[2,3,5,40] y) { y = ", op, "(x) }"),
          .units = std::move(units),
          .tolerance = tolerance,
          .low = low,
          .high = high};
}

const std::vector<Case> kHyperbolicCases = {
    Over("sinh", "Sinh", -5, 5, 5e-3, Counted(4, 4, 3)),
    Over("sinh_near_zero", "Sinh", -0.01, 0.01, 3e-3, Counted(4, 4, 3)),
    At("sinh_of_the_largest", "Sinh", {11.75, -11.75, 11.5, 0, 1}, 4e-3, Counted(4, 4, 3)),
    Over("cosh", "Cosh", -5, 5, 4e-3, Counted(3, 4, 2)),
    At("cosh_of_the_largest", "Cosh", {11.75, -11.75, 0, 1}, 4e-3, Counted(3, 4, 2)),
    Over("asinh", "Asinh", -300, 300, 3e-3, Counted(14, 8, 4)),
    Over("asinh_near_zero", "Asinh", -0.01, 0.01, 3e-3, Counted(14, 8, 4)),
    Over("asinh_at_the_seam", "Asinh", 0.4, 0.6, 3e-3, Counted(14, 8, 4)),
    At("asinh_of_large", "Asinh", {65504, -65504, 40000, 129, 127}, 3e-3, Counted(14, 8, 4)),
    Over("acosh", "Acosh", 1.05, 300, 2e-3, Counted(2, 6, 3)),
    At("acosh_near_one", "Acosh", {1, 1.0009765625, 1.25, 65504, 300}, 2e-3, Counted(2, 6, 3)),
    Over("atanh", "Atanh", -0.9, 0.9, 3e-3, Counted(9, 8, 3)),
    Over("atanh_near_zero", "Atanh", -0.01, 0.01, 3e-3, Counted(9, 8, 3)),
    At("atanh_near_one", "Atanh", {0.99951171875, -0.99951171875, 0.375, 0.25}, 3e-3,
       Counted(9, 8, 3)),
    Over("asin", "Asin", -0.98, 0.98, 3e-3, Counted(2, 4, 3)),
    Over("asin_near_zero", "Asin", -0.01, 0.01, 3e-3, Counted(2, 4, 3)),
    At("asin_at_the_ends", "Asin", {1, -1, 0, 0.99951171875}, 3e-3, Counted(2, 4, 3)),
    Over("acos", "Acos", -0.98, 0.98, 2e-3, Counted(2, 5, 3)),
    At("acos_at_the_ends", "Acos", {1, -1, 0, -0.99951171875}, 2e-3, Counted(2, 5, 3)),
};

INSTANTIATE_TEST_SUITE_P(Hyperbolic, KernelTest, testing::ValuesIn(OnBoth(kHyperbolicCases)),
                         CaseName);

}  // namespace
}  // namespace anemone
