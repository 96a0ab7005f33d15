// Convolution and deconvolution: every ONNX form that is lowered, every limit at N and N + 1.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kConvCases = {
    {.name = "plain_3x3_padded",
     .model = "(float[1,8,16,16] x) => (float[1,12,16,16] y) <float[12,8,3,3] w, float[12] b> "
              "{ y = Conv<pads = [1,1,1,1]>(x, w, b) }",
     .units = {"Conv"}},
    {.name = "batch_of_three_stride_two",
     .model = "(float[3,8,15,17] x) => (float[3,4,8,9] y) <float[4,8,3,3] w> "
              "{ y = Conv<pads = [1,1,1,1], strides = [2,2]>(x, w) }",
     .target = "h16",
     .units = {"Conv"}},
    {.name = "grouped",
     .model = "(float[1,8,9,9] x) => (float[1,12,7,7] y) <float[12,2,3,3] w> "
              "{ y = Conv<group = 4>(x, w) }",
     .units = {"Conv"}},
    {.name = "depthwise_5x5",
     .model = "(float[2,16,12,12] x) => (float[2,16,12,12] y) <float[16,1,5,5] w, float[16] b> "
              "{ y = Conv<group = 16, pads = [2,2,2,2]>(x, w, b) }",
     .units = {"Conv"}},
    {.name = "dilated",
     .model = "(float[1,4,20,20] x) => (float[1,4,16,16] y) <float[4,4,3,3] w> "
              "{ y = Conv<dilations = [2,2]>(x, w) }",
     .units = {"Conv"}},
    {.name = "one_dimensional",
     .model = "(float[2,4,33] x) => (float[2,6,31] y) <float[6,4,3] w> { y = Conv(x, w) }",
     .units = {"Conv"}},
    {.name = "asymmetric_pads",
     .model = "(float[1,4,8,8] x) => (float[1,4,9,8] y) <float[4,4,2,3] w> "
              "{ y = Conv<pads = [2,0,0,2]>(x, w) }",
     .units = {"Conv"}},
    {.name = "same_upper",
     .model = "(float[1,4,9,9] x) => (float[1,4,5,5] y) <float[4,4,2,2] w> "
              "{ y = Conv<auto_pad = \"SAME_UPPER\", strides = [2,2]>(x, w) }",
     .units = {"Conv"}},
    {.name = "same_lower",
     .model = "(float[1,4,9,9] x) => (float[1,4,5,5] y) <float[4,4,2,2] w> "
              "{ y = Conv<auto_pad = \"SAME_LOWER\", strides = [2,2]>(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_stride_two",
     .model = "(float[1,6,7,7] x) => (float[1,4,14,14] y) <float[6,4,2,2] w, float[4] b> "
              "{ y = ConvTranspose<strides = [2,2]>(x, w, b) }",
     .units = {"Conv"}},
    {.name = "transposed_grouped_padded",
     .model = "(float[1,6,7,7] x) => (float[1,4,14,14] y) <float[6,2,3,3] w> "
              "{ y = ConvTranspose<strides = [2,2], pads = [1,1,1,1], output_padding = [1,1], "
              "group = 2>(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_same_upper",
     .model = "(float[1,2,5,5] x) => (float[1,2,10,10] y) <float[2,2,3,3] w> "
              "{ y = ConvTranspose<strides = [2,2], auto_pad = \"SAME_UPPER\">(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_output_shape",
     .model = "(float[1,2,5,5] x) => (float[1,2,10,10] y) <float[2,2,3,3] w> "
              "{ y = ConvTranspose<strides = [2,2], output_shape = [10,10]>(x, w) }",
     .units = {"Conv"}},
    // The pads come from the shape: one before, none after; with SAME_UPPER the other way round.
    {.name = "transposed_output_shape_odd_pads",
     .model = "(float[1,2,5,5] x) => (float[1,2,10,11] y) <float[2,2,3,3] w> "
              "{ y = ConvTranspose<strides = [2,2], pads = [0,1,0,1], output_shape = [10,11]>"
              "(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_output_shape_same_upper",
     .model = "(float[1,2,5,5] x) => (float[1,2,10,9] y) <float[2,2,3,3] w> "
              "{ y = ConvTranspose<strides = [2,2], auto_pad = \"SAME_UPPER\", "
              "output_shape = [10,9]>(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_output_shape_valid",
     .model = "(float[1,2,5,5] x) => (float[1,2,10,9] y) <float[2,2,3,3] w> "
              "{ y = ConvTranspose<strides = [2,2], auto_pad = \"VALID\", "
              "output_shape = [10,9]>(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_output_shape_with_output_padding",
     .model = "(float[1,2,5,5] x) => (float[1,2,11,10] y) <float[2,2,4,3] w> "
              "{ y = ConvTranspose<strides = [2,2], output_padding = [1,0], "
              "output_shape = [11,10]>(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_output_shape_below_the_input",
     .model = "(float[1,2,5,5] x) => (float[1,2,3,4] y) <float[2,2,3,3] w> "
              "{ y = ConvTranspose<output_shape = [3,4]>(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_same_upper_of_a_kernel_below_the_stride",
     .model = "(float[1,2,5,5] x) => (float[1,2,9,9] y) <float[2,2,1,1] w> "
              "{ y = ConvTranspose<strides = [2,2], auto_pad = \"SAME_UPPER\">(x, w) }",
     .units = {"Conv"}},
    {.name = "transposed_same_lower_with_output_padding",
     .model = "(float[1,2,5,5] x) => (float[1,2,10,10] y) <float[2,2,4,3] w> "
              "{ y = ConvTranspose<strides = [2,2], auto_pad = \"SAME_LOWER\", "
              "output_padding = [1,1]>(x, w) }",
     .units = {"Conv"}},
    {.name = "width_13_is_the_last_on_a13",
     .model = "(float[1,4,16,32] x) => (float[1,4,14,20] y) <float[4,4,3,13] w> "
              "{ y = Conv(x, w) }",
     .units = {"Conv"}},
    {.name = "width_14_is_refused_on_a13",
     .model = "(float[1,4,16,32] x) => (float[1,4,14,19] y) <float[4,4,3,14] w> "
              "{ y = Conv(x, w) }",
     .rewrites = false,
     .refused_by = "conv-kernel"},
    {.name = "height_29_is_the_last_on_a13",
     .model = "(float[1,2,40,8] x) => (float[1,2,12,6] y) <float[2,2,29,3] w> { y = Conv(x, w) }",
     .units = {"Conv"}},
    {.name = "height_30_is_refused_on_a13",
     .model = "(float[1,2,40,8] x) => (float[1,2,11,6] y) <float[2,2,30,3] w> { y = Conv(x, w) }",
     .rewrites = false,
     .refused_by = "conv-kernel"},
    {.name = "three_dimensional_fails_below_the_validator",
     .model = "(float[1,2,6,6,6] x) => (float[1,2,4,4,4] y) <float[2,2,3,3,3] w> "
              "{ y = Conv(x, w) }",
     .target = "h16",
     .rewrites = false,
     .refused_by = "conv-3d"},
    {.name = "transposed_stride_three",
     .model = "(float[1,2,5,5] x) => (float[1,2,15,15] y) <float[2,2,3,3] w> "
              "{ y = ConvTranspose<strides = [3,3]>(x, w) }",
     .rewrites = false,
     .refused_by = "deconv-stride"},
    {.name = "kernel_at_run_time",
     .model = "(float[1,2,5,5] x, float[2,2,3,3] w) => (float[1,2,3,3] y) { y = Conv(x, w) }",
     .refused_by = "form-not-lowered"},
    {.name = "mil_wants_rank_four",
     .model = "(float[2,4,33] x) => (float[2,6,31] y) <float[6,4,3] w> { y = Conv(x, w) }",
     .route = "mil",
     .rewrites = false,
     .refused_by = "conv-mil-rank"},
};

INSTANTIATE_TEST_SUITE_P(Conv, KernelTest, testing::ValuesIn(kConvCases), CaseName);

}  // namespace
}  // namespace anemone
