// Gain and offset: batch normalization at inference, and a product followed by a sum.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kGocCases = {
    {.name = "batch_norm",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) "
              "<float[5] s, float[5] b, float[5] m, float[5] v> "
              "{ y = BatchNormalization(x, s, b, m, v) }",
     .units = {"GOC"},
     .low = 0.1f,
     .high = 2},
    {.name = "batch_norm_epsilon_h16",
     .model = "(float[3,5,9] x) => (float[3,5,9] y) "
              "<float[5] s, float[5] b, float[5] m, float[5] v> "
              "{ y = BatchNormalization<epsilon = 0.5>(x, s, b, m, v) }",
     .target = "h16",
     .units = {"GOC"},
     .low = 0.1f,
     .high = 2},
    {.name = "batch_norm_rank_2",
     .model = "(float[3,5] x) => (float[3,5] y) "
              "<float[5] s, float[5] b, float[5] m, float[5] v> "
              "{ y = BatchNormalization(x, s, b, m, v) }",
     .units = {"GOC"},
     .low = 0.1f,
     .high = 2},
    {.name = "batch_norm_of_planes_of_one_element",
     .model = "(float[70,130,1,1] x) => (float[70,130,1,1] y) "
              "<float[130] s, float[130] b, float[130] m, float[130] v> "
              "{ y = BatchNormalization(x, s, b, m, v) }",
     .units = {"GOC"},
     .low = 0.1f,
     .high = 2},
    {.name = "batch_norm_rank_5",
     .model = "(float[2,5,3,4,6] x) => (float[2,5,3,4,6] y) "
              "<float[5] s, float[5] b, float[5] m, float[5] v> "
              "{ y = BatchNormalization(x, s, b, m, v) }",
     .units = {"GOC"},
     .low = 0.1f,
     .high = 2},
    {.name = "batch_norm_at_run_time",
     .model = "(float[2,5,6,7] x, float[5] s, float[5] v) => (float[2,5,6,7] y) "
              "<float[5] b, float[5] m> { y = BatchNormalization(x, s, b, m, v) }",
     .units = {"GOC", "Neuron", "ElementWise", "ElementWise", "ElementWise", "ElementWise",
               "ElementWise"},
     .low = 0.1f,
     .high = 2},
    {.name = "batch_norm_at_run_time_is_a_rewrite",
     .model = "(float[3,5] x, float[5] s) => (float[3,5] y) "
              "<float[5] b, float[5] m, float[5] v> { y = BatchNormalization(x, s, b, m, v) }",
     .rewrites = false,
     .refused_by = "form-not-lowered",
     .low = 0.1f,
     .high = 2},
    {.name = "batch_norm_in_training",
     .model = "(float[4,5,6] x) => (float[4,5,6] y, float[5] a, float[5] c) "
              "<float[5] s, float[5] b, float[5] m, float[5] v> "
              "{ y, a, c = BatchNormalization<training_mode = 1>(x, s, b, m, v) }",
     .refused_by = "form-not-lowered",
     .low = 0.1f,
     .high = 2},
    {.name = "scale_and_bias",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) <float[1] s = {1.38}, float b = {-0.58}> "
              "{ a = Mul(s, x) y = Add(a, b) }",
     .units = {"GOC"}},
    {.name = "divide_and_subtract",
     .model = "(float[2,40] x) => (float[2,40] y) <float s = {4}, float b = {0.25}> "
              "{ a = Div(x, s) y = Sub(a, b) }",
     .units = {"GOC"}},
    {.name = "subtract_from",
     .model = "(float[2,40] x) => (float[2,40] y) <float s = {3}, float b = {0.25}> "
              "{ a = Mul(x, s) y = Sub(b, a) }",
     .target = "h16",
     .units = {"GOC"}},
    {.name = "product_read_twice",
     .model = "(float[2,40] x) => (float[2,40] y, float[2,40] a) "
              "<float s = {3}, float b = {0.25}> { a = Mul(x, s) y = Add(a, b) }",
     .units = {"GOC", "GOC"}},
    // 0 times infinity is NaN, so a gain beyond the range of fp16 becomes 65504.
    {.name = "mask_of_the_largest_float",
     .model = "(float[4,8] x, bool[8] mask) => (float[4,8] y) "
              "<float one = {1}, float big = {-3.4e38}> "
              "{ m = Cast<to = 1>(mask) n = Sub(one, m) b = Mul(n, big) s = Add(x, b) "
              "y = Softmax(s) }",
     .units = {"GOC", "GOC", "ElementWise", "Softmax"}},
};

INSTANTIATE_TEST_SUITE_P(Goc, KernelTest, testing::ValuesIn(kGocCases), CaseName);

}  // namespace
}  // namespace anemone
