// Gather: evenly spaced indices as views, others as a Gather unit, also
// if they are computed at run time and known to be inside the axis.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kGatherCases = {
    {.name = "one_element_drops_the_axis",
     .model = "(float[2,5,7] x) => (float[2,7] y) <int64 i = {3}> { y = Gather<axis = 1>(x, i) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "one_element_of_the_last_axis",
     .model =
         "(float[1,128,4] x) => (float[1,128] y) <int64 i = {0}> { y = Gather<axis = 2>(x, i) }",
     .target = "h16",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "the_last_element_kept",
     .model = "(float[2,5,7] x) => (float[1,5,7] y) <int64[1] i = {-1}> { y = Gather(x, i) }",
     .target = "h14",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "one_channel_of_rank_5",
     .model = "(float[2,3,4,5,6] x) => (float[2,4,5,6] y) <int64 i = {1}> "
              "{ y = Gather<axis = 1>(x, i) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "a_stretch",
     .model = "(float[1,8,3,3] x) => (float[1,3,3,3] y) <int64[3] i = {2,3,4}> "
              "{ y = Gather<axis = 1>(x, i) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "every_other",
     .model = "(float[1,8,3,3] x) => (float[1,4,3,3] y) <int64[4] i = {1,3,5,7}> "
              "{ y = Gather<axis = 1>(x, i) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "reversed",  // BGR to RGB
     .model = "(float[1,3,4,4] x) => (float[1,3,4,4] y) <int64[3] i = {2,1,0}> "
              "{ y = Gather<axis = 1>(x, i) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "shuffled_channels",
     .model = "(float[2,6,3,3] x) => (float[2,6,3,3] y) <int64[6] i = {0,3,1,4,2,5}> "
              "{ y = Gather<axis = 1>(x, i) }",
     .units = {"Gather", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "scattered_columns",
     .model = "(float[2,3,10] x) => (float[2,3,4] y) <int64[4] i = {9,0,-3,7}> "
              "{ y = Gather<axis = -1>(x, i) }",
     .target = "h16",
     .units = {"Gather"},
     .tolerance = 1e-3},
    {.name = "rows_by_a_table_of_two_axes",
     .model = "(float[5,4] x) => (float[2,3,4] y) <int64[2,3] i = {4,0,0,2,1,3}> "
              "{ y = Gather(x, i) }",
     .units = {"Gather", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "depth_of_rank_5",
     .model = "(float[2,3,4,2,5] x) => (float[2,3,3,2,5] y) <int32[3] i = {3,0,1}> "
              "{ y = Gather<axis = 2>(x, i) }",
     .units = {"Gather", "Transpose", "Transpose", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "past_the_channel_cap_as_a_concat",  // C would have 260 * 260 columns
     .model = "(float[1,4,260,260] x) => (float[1,3,260,260] y) <int64[3] i = {0,1,3}> "
              "{ y = Gather<axis = 1>(x, i) }",
     .units = {"Concat", "InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "past_the_channel_cap_and_too_many_pieces",
     .model = "(float[1,30,260,260] x) => (float[1,14,260,260] y) "
              "<int64[14] i = {0,0,0,0,0,0,0,0,0,0,0,0,0,0}> { y = Gather<axis = 1>(x, i) }",
     .refused_by = "max-width"},
    {.name = "indices_at_run_time",
     .model = "(float[5,4] x, int64[3] i) => (float[3,4] y) { y = Gather(x, i) }",
     .refused_by = "port-format"},
    {.name = "place_of_the_largest",  // 0..8
     .model = "(float[2,9,4] x, float[3,9] s) => (float[2,3,4] y) "
              "{ i = ArgMax<axis = 1, keepdims = 0>(s) y = Gather<axis = 1>(x, i) }",
     .target = "h14",
     .units = {"Concat", "Gather", "ArgMinMax", "Transpose", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "places_within_the_envelope_of_the_m1",
     .model = "(float[9,4] x, uint8[2,2] s) => (float[2,2,4] y) <int64 l = {2}, int64 h = {8}> "
              "{ a = Cast<to = 7>(s) i = Clip(a, l, h) y = Gather(x, i) }",
     .units = {"Concat", "GOC", "Gather", "Neuron", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "places_from_the_end",  // -1..3 of 5
     .model = "(float[6,5] x, float[4,5] s) => (float[6,4] y) <int64 n = {1}> "
              "{ i = ArgMax<axis = 1, keepdims = 0>(s) j = Sub(i, n) y = Gather<axis = 1>(x, j) }",
     .target = "h16",
     .units = {"Concat", "ElementWise", "ElementWise", "ElementWise", "GOC", "Gather", "ArgMinMax",
               "Transpose"},
     .tolerance = 1e-3},
    {.name = "places_that_may_be_outside",
     .model = "(float[4,4] x, float[4,5] s) => (float[4,4] y) "
              "{ i = ArgMax<axis = 1, keepdims = 0>(s) y = Gather(x, i) }",
     .target = "h14",
     .refused_by = "form-not-lowered"},
    {.name = "integers",
     .model = "(int64[5,4] x) => (int64[4] y) <int64 i = {1}> { y = Gather(x, i) }",
     .refused_by = "integer-range"},
};

INSTANTIATE_TEST_SUITE_P(Gather, KernelTest, testing::ValuesIn(kGatherCases), CaseName);

}  // namespace
}  // namespace anemone
