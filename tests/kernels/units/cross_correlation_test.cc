// Conv of one channel whose kernel is an input or computed, lowered to CrossCorrelation.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kCrossCorrelationCases = {
    {.name = "kernel_is_an_input",
     .model = "(float[1,1,12,15] x, float[1,1,3,5] w) => (float[1,1,10,11] y) { y = Conv(x, w) }",
     .units = {"CrossCorrelation"}},
    {.name = "kernel_is_computed",
     .model = "(float[1,1,9,9] x, float[1,1,3,3] k) => (float[1,1,7,7] y) "
              "{ w = Relu(k) y = Conv(x, w) }",
     .target = "h16",
     .units = {"CrossCorrelation", "Neuron"}},
    {.name = "map_is_constant",
     .model = "(float[1,1,3,3] w) => (float[1,1,7,7] y) <float[1,1,9,9] x> { y = Conv(x, w) }",
     .units = {"CrossCorrelation"}},
    {.name = "pads",
     .model = "(float[1,1,6,7] x, float[1,1,3,4] w) => (float[1,1,7,9] y) "
              "{ y = Conv<pads = [1,2,2,3]>(x, w) }",
     .units = {"CrossCorrelation"}},
    {.name = "pads_as_wide_as_the_kernel",
     .model = "(float[1,1,2,2] x, float[1,1,3,3] w) => (float[1,1,6,6] y) "
              "{ y = Conv<pads = [3,3,3,3]>(x, w) }",
     .units = {"CrossCorrelation"}},
    {.name = "same_lower",
     .model = "(float[1,1,8,8] x, float[1,1,4,3] w) => (float[1,1,8,8] y) "
              "{ y = Conv<auto_pad = \"SAME_LOWER\">(x, w) }",
     .units = {"CrossCorrelation"}},
    {.name = "kernel_as_large_as_the_map",
     .model = "(float[1,1,5,6] x, float[1,1,5,6] w) => (float[1,1,1,1] y) { y = Conv(x, w) }",
     .units = {"CrossCorrelation"}},
    {.name = "kernel_of_one_element",
     .model = "(float[1,1,5,6] x, float[1,1,1,1] w) => (float[1,1,5,6] y) { y = Conv(x, w) }",
     .units = {"CrossCorrelation"}},
    {.name = "one_spatial_axis",
     .model = "(float[1,1,40] x, float[1,1,7] w) => (float[1,1,36] y) "
              "{ y = Conv<pads = [1,1]>(x, w) }",
     .units = {"CrossCorrelation"}},
    {.name = "bias",
     .model = "(float[1,1,8,8] x, float[1,1,3,3] w) => (float[1,1,6,6] y) <float[1] b = {0.7}> "
              "{ y = Conv(x, w, b) }",
     .units = {"CrossCorrelation", "ElementWise"}},
    {.name = "bias_is_an_input",
     .model = "(float[1,1,8,8] x, float[1,1,3,3] w, float[1] b) => (float[1,1,6,6] y) "
              "{ y = Conv(x, w, b) }",
     .units = {"CrossCorrelation", "ElementWise"}},
    {.name = "kernel_is_constant",
     .model = "(float[1,1,8,8] x) => (float[1,1,6,6] y) <float[1,1,3,3] w> { y = Conv(x, w) }",
     .units = {"Conv"}},
    {.name = "two_images",
     .model = "(float[2,1,8,8] x, float[1,1,3,3] w) => (float[2,1,6,6] y) { y = Conv(x, w) }",
     .refused_by = "form-not-lowered"},
    {.name = "two_channels",
     .model = "(float[1,2,8,8] x, float[1,2,3,3] w) => (float[1,1,6,6] y) { y = Conv(x, w) }",
     .refused_by = "form-not-lowered"},
    {.name = "two_kernels",
     .model = "(float[1,1,8,8] x, float[2,1,3,3] w) => (float[1,2,6,6] y) { y = Conv(x, w) }",
     .refused_by = "form-not-lowered"},
    {.name = "strides",
     .model = "(float[1,1,9,9] x, float[1,1,3,3] w) => (float[1,1,4,4] y) "
              "{ y = Conv<strides = [2,2]>(x, w) }",
     .refused_by = "form-not-lowered"},
    {.name = "dilations",
     .model = "(float[1,1,9,9] x, float[1,1,3,3] w) => (float[1,1,9,5] y) "
              "{ y = Conv<dilations = [1,2], pads = [1,0,1,0]>(x, w) }",
     .refused_by = "form-not-lowered"},
    {.name = "three_spatial_axes",
     .model = "(float[1,1,4,5,6] x, float[1,1,1,3,3] w) => (float[1,1,4,3,4] y) "
              "{ y = Conv(x, w) }",
     .refused_by = "form-not-lowered"},
    {.name = "conversion_route",
     .model = "(float[1,1,8,8] x, float[1,1,3,3] w) => (float[1,1,6,6] y) { y = Conv(x, w) }",
     .route = "mil",
     .refused_by = "form-not-lowered"},
    {.name = "is_a_rewrite",
     .model = "(float[1,1,8,8] x, float[1,1,3,3] w) => (float[1,1,6,6] y) { y = Conv(x, w) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "before_a13",
     .model = "(float[1,1,8,8] x, float[1,1,3,3] w) => (float[1,1,6,6] y) { y = Conv(x, w) }",
     .target = "h12",
     .refused_by = "form-not-lowered"},
};

INSTANTIATE_TEST_SUITE_P(CrossCorrelation, KernelTest, testing::ValuesIn(kCrossCorrelationCases),
                         CaseName);

}  // namespace
}  // namespace anemone
