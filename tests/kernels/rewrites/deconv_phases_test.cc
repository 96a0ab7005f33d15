// Deconvolutions that the unit does not support, computed as convolutions of all phases.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kDeconvPhasesCases = {
    {.name = "stride_three_without_rewrites",
     .model = "(float[1,2,5,5] x) => (float[1,2,15,15] y) <float[2,2,3,3] w> "
              "{ y = ConvTranspose<strides = [3,3]>(x, w) }",
     .rewrites = false,
     .refused_by = "deconv-stride"},
    {.name = "stride_three",
     .model = "(float[2,3,5,5] x) => (float[2,4,15,15] y) <float[3,4,3,3] w, float[4] b> "
              "{ y = ConvTranspose<strides = [3,3]>(x, w, b) }",
     .units = {"Conv", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "stride_eight_of_a_line",  // HiFi-GAN
     .model = "(float[1,8,9] x) => (float[1,4,72] y) <float[8,4,16] w, float[4] b> "
              "{ y = ConvTranspose<strides = [8], pads = [4,4]>(x, w, b) }",
     .units = {"Conv", "InputView", "Transpose"},
     .tolerance = 1e-3},
    {.name = "strides_that_differ",
     .model = "(float[1,4,5,6] x) => (float[1,6,10,22] y) <float[4,3,2,5] w> "
              "{ y = ConvTranspose<group = 2, strides = [2,4], pads = [0,1,0,2]>(x, w) }",
     .units = {"Conv", "InputView", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "kernel_smaller_than_the_stride",
     .model = "(float[1,2,4,4] x) => (float[1,2,18,18] y) <float[2,2,3,3] w, float[2] b> "
              "{ y = ConvTranspose<strides = [5,5]>(x, w, b) }",
     .units = {"Conv", "InputView", "InputView", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "output_padding",
     .model = "(float[1,2,4,4] x) => (float[1,2,16,15] y) <float[2,2,4,4] w> "
              "{ y = ConvTranspose<strides = [4,4], output_padding = [0,3], pads = [0,2,0,2]>"
              "(x, w) }",
     .units = {"Conv", "InputView", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "output_padding_past_the_last_window",
     .model = "(float[1,2,6] x) => (float[1,2,20] y) <float[2,2,3] w, float[2] b> "
              "{ y = ConvTranspose<strides = [3], output_padding = [2]>(x, w, b) }",
     .units = {"Conv", "InputView", "Transpose"},
     .tolerance = 1e-3},
    {.name = "cut_to_less_than_the_input",
     .model = "(float[1,2,6] x) => (float[1,2,4] y) <float[2,2,3] w> "
              "{ y = ConvTranspose<strides = [3], pads = [2,12]>(x, w) }",
     .units = {"Conv", "InputView", "Transpose"},
     .tolerance = 1e-3},
    {.name = "dilated",
     .model = "(float[1,3,6,6] x) => (float[1,2,10,10] y) <float[3,2,3,3] w> "
              "{ y = ConvTranspose<dilations = [2,2]>(x, w) }",
     .units = {"Conv"},
     .tolerance = 1e-3},
    {.name = "dilated_with_a_stride",
     .model = "(float[1,3,6] x) => (float[1,2,15] y) <float[3,2,3] w, float[2] b> "
              "{ y = ConvTranspose<dilations = [2], strides = [2]>(x, w, b) }",
     .units = {"Conv", "InputView", "Transpose"},
     .tolerance = 1e-3},
    {.name = "wide_kernel_with_a_stride",
     .model = "(float[1,2,9] x) => (float[1,2,36] y) <float[2,2,20] w> "
              "{ y = ConvTranspose<strides = [2]>(x, w) }",
     .units = {"Conv", "Transpose"},
     .tolerance = 1e-3},
    {.name = "with_a_depth",
     .model = "(float[1,2,3,3,3] x) => (float[1,2,9,9,9] y) <float[2,2,3,3,3] w> "
              "{ y = ConvTranspose<strides = [3,3,3]>(x, w) }",
     .refused_by = "deconv-depth-stride"},
};

INSTANTIATE_TEST_SUITE_P(DeconvPhases, KernelTest, testing::ValuesIn(kDeconvPhasesCases), CaseName);

}  // namespace
}  // namespace anemone
