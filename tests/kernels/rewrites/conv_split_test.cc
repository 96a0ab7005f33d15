// Convolutions that are divided into parts: kernels that exceed the target's limit, kernels with a
// depth, ranks on route mil.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kConvSplitCases = {
    {.name = "width_14_without_rewrites",
     .model = "(float[1,4,16,32] x) => (float[1,4,14,19] y) <float[4,4,3,14] w> { y = Conv(x, w) }",
     .rewrites = false,
     .refused_by = "conv-kernel"},
    {.name = "width_14_in_two",
     .model = "(float[1,4,16,32] x) => (float[1,6,14,19] y) <float[6,4,3,14] w, float[6] b> "
              "{ y = Conv(x, w, b) }",
     .units = {"Conv", "Conv", "ElementWise", "InputView", "InputView"}},
    {.name = "width_16_is_the_last_on_a14",
     .model = "(float[1,2,4,32] x) => (float[1,2,4,17] y) <float[2,2,1,16] w> { y = Conv(x, w) }",
     .target = "h14",
     .units = {"Conv"}},
    {.name = "width_17_in_two_on_a14",
     .model = "(float[1,2,4,32] x) => (float[1,2,4,16] y) <float[2,2,1,17] w> { y = Conv(x, w) }",
     .target = "h14",
     .units = {"Conv", "Conv", "ElementWise", "InputView", "InputView"}},
    {.name = "height_30_in_two",
     .model = "(float[2,2,40,8] x) => (float[2,2,13,6] y) <float[2,2,30,3] w> "
              "{ y = Conv<pads = [2,0,0,0]>(x, w) }",
     .units = {"Conv", "Conv", "ElementWise", "InputView", "InputView"}},
    {.name = "depthwise_31x31",  // RepLKNet: 2 parts along the height, 3 along the width
     .model = "(float[1,6,20,20] x) => (float[1,6,20,20] y) <float[6,1,31,31] w, float[6] b> "
              "{ y = Conv<group = 6, pads = [15,15,15,15]>(x, w, b) }",
     .units = {"Conv", "Conv", "Conv", "Conv", "Conv", "Conv", "ElementWise", "ElementWise",
               "ElementWise", "ElementWise", "ElementWise", "InputView", "InputView", "InputView",
               "InputView", "InputView"}},
    {.name = "dilated_and_wide",
     .model = "(float[1,3,4,64] x) => (float[1,4,4,36] y) <float[4,3,1,15] w> "
              "{ y = Conv<dilations = [1,2]>(x, w) }",
     .units = {"Conv", "Conv", "ElementWise", "InputView", "InputView"}},
    {.name = "strided_dilated_and_wide",
     .model = "(float[1,3,4,64] x) => (float[1,4,4,18] y) <float[4,3,1,15] w> "
              "{ y = Conv<dilations = [1,2], strides = [1,2]>(x, w) }",
     .units = {"Conv", "Conv", "ElementWise", "InputView", "InputView"}},
    {.name = "taps_that_meet_only_padding",
     .model = "(float[1,2,1,4] x) => (float[1,2,1,4] y) <float[2,2,1,40] w> "
              "{ y = Conv<pads = [0,20,0,19]>(x, w) }",
     .units = {"Conv", "Conv", "ElementWise", "InputView"}},
    {.name = "wide_with_a_stride_is_folded",  // Silero VAD's Fourier transform
     .model = "(float[2,1,640] x) => (float[2,10,4] y) <float[10,1,256] w> "
              "{ y = Conv<strides = [128]>(x, w) }",
     .units = {"Conv", "Transpose"},
     .tolerance = 1e-3},
    {.name = "folded_with_taps_left_over",  // 15 = 4 * 4 - 1; 45 elements are cropped to 40
     .model = "(float[1,3,5,44] x) => (float[1,8,5,8] y) <float[8,3,1,15] w, float[8] b> "
              "{ y = Conv<strides = [1,4], pads = [0,1,0,0]>(x, w, b) }",
     .units = {"Conv", "InputView", "Padding", "Transpose"},
     .tolerance = 1e-3},
    {.name = "folded_along_the_height",
     .model = "(float[2,4,60,7] x) => (float[2,6,14,5] y) <float[6,2,30,3] w> "
              "{ y = Conv<group = 2, strides = [3,1], pads = [6,0,5,0]>(x, w) }",
     .units = {"Conv", "Padding", "Transpose"},
     .tolerance = 1e-3},
    {.name = "folded_both_ways",  // a patch embedding
     .model = "(float[1,3,64,64] x) => (float[1,8,2,2] y) <float[8,3,32,32] w, float[8] b> "
              "{ y = Conv<strides = [32,32]>(x, w, b) }",
     .units = {"Conv", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "folded_and_still_wide",
     .model = "(float[1,1,128] x) => (float[1,2,49] y) <float[2,1,31] w> "
              "{ y = Conv<strides = [2]>(x, w) }",
     .units = {"Conv", "Conv", "ElementWise", "InputView", "InputView", "Transpose"}},
    {.name = "too_many_parts",
     .model = "(float[1,1,1000] x) => (float[1,2,601] y) <float[2,1,400] w> { y = Conv(x, w) }",
     .refused_by = "conv-kernel"},
    {.name = "three_dimensional",
     .model = "(float[2,2,6,6,6] x) => (float[2,3,4,4,4] y) <float[3,2,3,3,3] w, float[3] b> "
              "{ y = Conv(x, w, b) }",
     .target = "h16",
     .units = {"Conv", "Conv", "Conv", "ElementWise", "ElementWise", "InputView", "InputView",
               "InputView"}},
    {.name = "three_dimensional_padded_strided_grouped",
     .model = "(float[1,4,7,6,6] x) => (float[1,4,4,3,3] y) <float[4,2,3,3,3] w> "
              "{ y = Conv<group = 2, pads = [1,1,1,1,1,1], strides = [2,2,2]>(x, w) }",
     .units = {"Concat", "Conv", "Conv", "Conv", "ElementWise", "ElementWise", "InputView",
               "InputView", "InputView"}},
    {.name = "stride_along_the_depth",
     .model = "(float[1,2,6,5,5] x) => (float[1,3,3,5,5] y) <float[3,2,1,1,1] w> "
              "{ y = Conv<strides = [2,1,1]>(x, w) }",
     .units = {"Conv", "InputView"},
     .tolerance = 1e-3},
    {.name = "padding_along_the_depth",
     .model = "(float[1,2,3,5,5] x) => (float[1,3,6,5,5] y) <float[3,2,1,3,3] w, float[3] b> "
              "{ y = Conv<pads = [1,1,1,2,1,1]>(x, w, b) }",
     .units = {"Concat", "Conv"},
     .tolerance = 1e-3},
    {.name = "padding_along_the_depth_without_rewrites",
     .model = "(float[1,2,3,5,5] x) => (float[1,3,5,5,5] y) <float[3,2,1,1,1] w> "
              "{ y = Conv<pads = [1,0,0,1,0,0]>(x, w) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "one_dimensional_on_mil",
     .model = "(float[2,4,33] x) => (float[2,6,31] y) <float[6,4,3] w> { y = Conv(x, w) }",
     .route = "mil",
     .units = {"Conv"}},
};

INSTANTIATE_TEST_SUITE_P(ConvSplit, KernelTest, testing::ValuesIn(kConvSplitCases), CaseName);

}  // namespace
}  // namespace anemone
