// Concat: any axis of any rank, any number of inputs.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kConcatCases = {
    {.name = "channels",
     .model = "(float[1,3,5,7] a, float[1,4,5,7] b) => (float[1,7,5,7] y) "
              "{ y = Concat<axis = 1>(a, b) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "batch",
     .model = "(float[2,3,5] a, float[1,3,5] b) => (float[3,3,5] y) { y = Concat<axis = 0>(a, b) }",
     .target = "h16",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "height_of_three",
     .model = "(float[2,3,5,7] a, float[2,3,1,7] b, float[2,3,2,7] c) => (float[2,3,8,7] y) "
              "{ y = Concat<axis = -2>(a, b, c) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "width_of_rank_2",
     .model = "(float[4,5] a, float[4,6] b) => (float[4,11] y) { y = Concat<axis = -1>(a, b) }",
     .target = "h12",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "rank_1",
     .model = "(float[4] a, float[6] b) => (float[10] y) { y = Concat<axis = 0>(a, b) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "channels_of_rank_5",
     .model = "(float[2,3,4,5,6] a, float[2,1,4,5,6] b) => (float[2,4,4,5,6] y) "
              "{ y = Concat<axis = 1>(a, b) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "depth_of_rank_5",
     .model = "(float[2,3,4,5,6] a, float[2,3,2,5,6] b) => (float[2,3,6,5,6] y) "
              "{ y = Concat<axis = 2>(a, b) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "with_a_constant",
     .model = "(float[1,3,4] a) => (float[1,4,4] y) <float[1,1,4] b = {1,2,3,4}> "
              "{ y = Concat<axis = 1>(a, b) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "the_same_twice",
     .model = "(float[1,3,4] a) => (float[1,6,4] y) { y = Concat<axis = 1>(a, a) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "of_one_is_nothing",
     .model = "(float[1,3,4] a) => (float[1,3,4] y) { b = Relu(a) y = Concat<axis = 1>(b) }",
     .units = {"Neuron"}},
    {.name = "with_an_empty_part",
     .model = "(float[1,3,4] a, float[1,2,4] b) => (float[1,5,4] y) "
              "<float[1,0,4] e = {}> { y = Concat<axis = 1>(a, e, b) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "stacked",
     .model = "(float[3,4] a, float[3,4] b) => (float[3,2,4] y) <int64[1] at = {1}> "
              "{ c = Unsqueeze(a, at) d = Unsqueeze(b, at) y = Concat<axis = 1>(c, d) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "width_at_the_cap_of_a13",
     .model = "(float[1,16000] a, float[1,384] b) => (float[1,16384] y) "
              "{ y = Concat<axis = 1>(a, b) }",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "width_past_the_cap_of_a13",
     .model = "(float[1,16000] a, float[1,385] b) => (float[1,16385] y) "
              "{ y = Concat<axis = 1>(a, b) }",
     .refused_by = "max-width"},
    {.name = "integers",
     .model = "(int64[4] a, int64[6] b) => (int64[10] y) { y = Concat<axis = 0>(a, b) }",
     .refused_by = "integer-range"},
};

INSTANTIATE_TEST_SUITE_P(Concat, KernelTest, testing::ValuesIn(kConcatCases), CaseName);

}  // namespace
}  // namespace anemone
