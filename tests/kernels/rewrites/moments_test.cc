// LayerNormalization whose mean and deviation are used, MeanVarianceNormalization, LpNormalization
// as several units, Hardmax and Trilu: axes, constant rows, differences whose squares overflow in
// fp16.
#include "tests/kernels/on_targets.h"

namespace anemone {
namespace {

const std::vector<Case> kMoments = {
    {.name = "layer_norm_with_all_outputs",
     .model = "(float[2,3,8] x, float[8] s, float[8] b) => (float[2,3,8] y, float[2,3,1] m, "
              "float[2,3,1] d) { y, m, d = LayerNormalization(x, s, b) }",
     .units = Units({{"ElementWise", 11}, {"GOC", 1}, {"Neuron", 2}, {"Reduction", 3}})},
    {.name = "layer_norm_of_one_element_and_an_epsilon_that_fp16_has_not",
     .model = "(float[2,1,1] x, float[1] s) => (float[2,1,1] y) {"
              "  y = LayerNormalization<epsilon = 1e-12>(x, s) }",
     .units = Units({{"ElementWise", 10}, {"GOC", 1}, {"Neuron", 2}})},
    {.name = "layer_norm_with_mean_over_two_axes",
     .model = "(float[2,3,8] x) => (float[2,3,8] y, float[2,1,1] m) <float[3,8] s> "
              "{ y, m = LayerNormalization<axis = 1, epsilon = 0.001>(x, s) }",
     .units = Units({{"ElementWise", 10}, {"GOC", 1}, {"Neuron", 2}, {"Reduction", 3}}),
     .low = -3,
     .high = 9},
    {.name = "layer_norm_of_large",  // squares above 65504
     .model = "(float[4,16] x) => (float[4,16] y, float[4,1] m, float[4,1] d) <float[16] s> "
              "{ y, m, d = LayerNormalization(x, s) }",
     .units = Units({{"ElementWise", 10}, {"GOC", 1}, {"Neuron", 2}, {"Reduction", 3}}),
     .low = -3000,
     .high = 3000},
    {.name = "mean_variance",
     .model = "(float[2,3,5,4] x) => (float[2,3,5,4] y) { y = MeanVarianceNormalization(x) }",
     .units = Units({{"ElementWise", 9}, {"GOC", 1}, {"Neuron", 2}, {"Reduction", 3}}),
     .low = -2,
     .high = 7},
    {.name = "mean_variance_of_one_axis",
     .model = "(float[2,3,5,4] x) => (float[2,3,5,4] y) "
              "{ y = MeanVarianceNormalization<axes = [1]>(x) }",
     .units = Units({{"ElementWise", 9}, {"GOC", 1}, {"Neuron", 2}, {"Reduction", 3}})},
    {.name = "mean_variance_of_a_constant",
     .model = "(float[1,3,5,4] x) => (float[1,3,5,4] y) { y = MeanVarianceNormalization(x) }",
     .units = Units({{"ElementWise", 9}, {"GOC", 1}, {"Neuron", 2}, {"Reduction", 3}}),
     .low = 0.5,
     .high = 0.5},
};

INSTANTIATE_TEST_SUITE_P(Moments, KernelTest, testing::ValuesIn(OnBoth(kMoments)), CaseName);

const std::vector<Case> kNorms = {
    {.name = "l1_of_the_last_axis",
     .model = "(float[3,4,5] x) => (float[3,4,5] y) { y = LpNormalization<p = 1>(x) }",
     .units = Units({{"ElementWise", 6}, {"Reduction", 2}})},
    {.name = "l1_of_large",
     .model = "(float[2,30] x) => (float[2,30] y) { y = LpNormalization<p = 1, axis = 1>(x) }",
     .units = Units({{"ElementWise", 6}, {"Reduction", 2}}),
     .low = -60000,
     .high = 60000},
    {.name = "l1_of_zeros",
     .model = "(float[2,30] x) => (float[2,30] y) { y = LpNormalization<p = 1, axis = 1>(x) }",
     .units = Units({{"ElementWise", 6}, {"Reduction", 2}}),
     .low = 0,
     .high = 0},
    {.name = "l2_of_the_batch",
     .model = "(float[3,4,5] x) => (float[3,4,5] y) { y = LpNormalization<axis = 0>(x) }",
     .units = Units({{"ElementWise", 6}, {"Neuron", 1}, {"Reduction", 2}})},
};

INSTANTIATE_TEST_SUITE_P(LpNormalization, KernelTest, testing::ValuesIn(OnBoth(kNorms)), CaseName);

const std::vector<Case> kHardmax = {
    {.name = "last_axis",
     .model = "(float[3,4,5] x) => (float[3,4,5] y) { y = Hardmax(x) }",
     .units = Units({{"Conv", 1}, {"ElementWise", 3}, {"Reduction", 1}, {"Transpose", 2}})},
    {.name = "of_equal_elements",  // the result is 1 for the first of them
     .model = "(float[3,4] x) => (float[3,4] y) { y = Hardmax<axis = 1>(x) }",
     .units = Units({{"Conv", 1}, {"ElementWise", 3}, {"Reduction", 1}, {"Transpose", 2}}),
     .low = 1,
     .high = 1},
    {.name = "batch_axis",
     .model = "(float[6,2,3,4] x) => (float[6,2,3,4] y) { y = Hardmax<axis = 0>(x) }",
     .units = Units({{"Conv", 1}, {"ElementWise", 3}, {"Reduction", 1}})},
};

INSTANTIATE_TEST_SUITE_P(Hardmax, KernelTest, testing::ValuesIn(OnBoth(kHardmax)), CaseName);

const std::vector<Case> kTrilu = {
    {.name = "upper",
     .model = "(float[2,4,5] x) => (float[2,4,5] y) { y = Trilu(x) }",
     .units = {"ElementWise", "ElementWise"},
     .tolerance = 5e-4},
    {.name = "lower_shifted",
     .model = "(float[2,3,4,4] x) => (float[2,3,4,4] y) <int64 k = {-2}> "
              "{ y = Trilu<upper = 0>(x, k) }",
     .units = {"ElementWise", "ElementWise"},
     .tolerance = 5e-4},
    {.name = "far_outside",
     .model = "(float[3,4] x) => (float[3,4] y) <int64 k = {9000000000}> { y = Trilu(x, k) }",
     .units = {"ElementWise", "ElementWise"},
     .tolerance = 5e-4},
    {.name = "of_infinity",  // infinity times 0 would be NaN
     .model = "(float[4,4] x) => (float[4,4] y) { e = Exp(x) y = Trilu(e) }",
     .units = {"Neuron", "ElementWise", "ElementWise"},
     .low = 100,
     .high = 200},
};

INSTANTIATE_TEST_SUITE_P(Trilu, KernelTest, testing::ValuesIn(OnBoth(kTrilu)), CaseName);

}  // namespace
}  // namespace anemone
