// Padding: modes, axes, negative pads; forms that the validator refuses and how they are rewritten.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kPaddingCases = {
    {.name = "zeros_around_a_plane",
     .model = "(float[1,3,5,7] x) => (float[1,3,8,10] y) <int64[8] p = {0,0,1,2,0,0,2,1}> "
              "{ y = Pad(x, p) }",
     .units = {"Padding"},
     .tolerance = 1e-3},
    {.name = "a_value_around_a_batch",
     .model = "(float[3,2,5,7] x) => (float[3,2,6,7] y) <int64[8] p = {0,0,1,0,0,0,0,0}, "
              "float v = {-2.5}> { y = Pad(x, p, v) }",
     .target = "h16",
     .units = {"Padding"},
     .tolerance = 1e-3},
    {.name = "axes_given",
     .model = "(float[2,3,5,7] x) => (float[2,3,5,10] y) <int64[2] p = {1,2}, int64[1] a = {-1}> "
              "{ y = Pad(x, p, , a) }",
     .target = "h12",
     .units = {"Padding"},
     .tolerance = 1e-3},
    {.name = "rank_2",
     .model = "(float[4,5] x) => (float[6,8] y) <int64[4] p = {1,1,1,2}> { y = Pad(x, p) }",
     .units = {"Padding"},
     .tolerance = 1e-3},
    {.name = "middle_axis_of_rank_3",
     .model = "(float[2,4,5] x) => (float[2,6,8] y) <int64[6] p = {0,1,1,0,1,2}> { y = Pad(x, p) }",
     .units = {"Padding"},
     .tolerance = 1e-3},
    {.name = "plane_of_rank_5",
     .model = "(float[1,2,3,4,5] x) => (float[1,2,3,5,7] y) "
              "<int64[10] p = {0,0,0,1,1,0,0,0,0,1}> { y = Pad(x, p) }",
     .units = {"Padding"},
     .tolerance = 1e-3},
    {.name = "negative_pads_cut",
     .model = "(float[1,2,6,7] x) => (float[1,2,5,7] y) <int64[8] p = {0,0,-2,1,0,0,1,-1}> "
              "{ y = Pad(x, p) }",
     .units = {"InputView", "InputView", "Padding"},
     .tolerance = 1e-3},
    {.name = "only_negative_pads",
     .model = "(float[1,4,6] x) => (float[1,2,6] y) <int64[6] p = {0,-1,0,0,-1,0}> "
              "{ y = Pad(x, p) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "nothing_to_do",
     .model = "(float[1,4] x) => (float[1,4] y) <int64[4] p = {0,0,0,0}> "
              "{ z = Relu(x) y = Pad(z, p) }",
     .units = {"Neuron"}},
    {.name = "border_repeated",
     .model = "(float[1,3,5,7] x) => (float[1,3,8,13] y) <int64[8] p = {0,0,1,2,0,0,2,4}> "
              "{ y = Pad<mode = \"edge\">(x, p) }",
     .units = {"Padding"},
     .tolerance = 1e-3},
    {.name = "mirrored_from_a14",
     .model = "(float[1,3,5,7] x) => (float[1,3,8,10] y) <int64[8] p = {0,0,1,2,0,0,2,1}> "
              "{ y = Pad<mode = \"reflect\">(x, p) }",
     .target = "h14",
     .units = {"Padding"},
     .tolerance = 1e-3},
    {.name = "mirrored_is_refused_on_a13",
     .model = "(float[1,3,5,7] x) => (float[1,3,8,10] y) <int64[8] p = {0,0,1,2,0,0,2,1}> "
              "{ y = Pad<mode = \"reflect\">(x, p) }",
     .rewrites = false,
     .refused_by = "pad-mode"},
    {.name = "mirrored_in_parts_on_a13",  // each of the 2 sides: a view and a view that reverses it
     .model = "(float[1,3,5,7] x) => (float[1,3,8,10] y) <int64[8] p = {0,0,1,2,0,0,2,1}> "
              "{ y = Pad<mode = \"reflect\">(x, p) }",
     .units = {"Concat", "Concat", "InputView", "InputView", "InputView", "InputView", "InputView",
               "InputView"},
     .tolerance = 1e-3},
    {.name = "takes_away_more_than_there_is",
     .model = "(float[1,4,5] x) => (float[1,4,2] y) <int64[6] p = {0,0,-6,0,0,3}> "
              "{ y = Pad(x, p) }",
     .refused_by = "form-not-lowered"},
    {.name = "mirrored_end_of_a_line",  // Silero VAD
     .model = "(float[1,576] x) => (float[1,640] y) <int64[4] p = {0,0,0,64}> "
              "{ y = Pad<mode = \"reflect\">(x, p) }",
     .units = {"Concat", "InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "mirrored_further_than_there_is",
     .model = "(float[1,1,5] x) => (float[1,1,10] y) <int64[6] p = {0,0,0,0,0,5}> "
              "{ y = Pad<mode = \"wrap\">(x, p) }",
     .target = "h16",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "wrapped",
     .model = "(float[1,2,5] x) => (float[1,2,9] y) <int64[6] p = {0,0,3,0,0,1}> "
              "{ y = Pad<mode = \"wrap\">(x, p) }",
     .units = {"Concat", "InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "channels_are_refused",
     .model = "(float[1,3,4,4] x) => (float[1,6,4,4] y) <int64[8] p = {0,1,0,0,0,2,0,0}> "
              "{ y = Pad(x, p) }",
     .rewrites = false,
     .refused_by = "pad-on-channel"},
    {.name = "channels_are_joined",
     .model = "(float[1,3,4,4] x) => (float[1,6,5,4] y) <int64[8] p = {0,1,1,0,0,2,0,0}, "
              "float v = {3.0}> { y = Pad(x, p, v) }",
     .units = {"Concat", "Concat"},
     .tolerance = 1e-3},
    {.name = "batch_is_refused",
     .model = "(float[2,3,4,4] x) => (float[3,3,4,4] y) <int64[8] p = {0,0,0,0,1,0,0,0}> "
              "{ y = Pad(x, p) }",
     .target = "h16",
     .rewrites = false,
     .refused_by = "pad-axes"},
    {.name = "batch_is_joined",
     .model = "(float[2,3,4,4] x) => (float[3,3,4,4] y) <int64[8] p = {0,0,0,0,1,0,0,0}> "
              "{ y = Pad(x, p) }",
     .target = "h16",
     .units = {"Concat"},
     .tolerance = 1e-3},
    {.name = "border_of_channels",
     .model = "(float[1,3,4,4] x) => (float[1,6,4,4] y) <int64[8] p = {0,1,0,0,0,2,0,0}> "
              "{ y = Pad<mode = \"edge\">(x, p) }",
     .units = {"Broadcast", "Concat", "InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "value_at_run_time",
     .model = "(float[4,5] x, float v) => (float[6,5] y) <int64[4] p = {1,0,1,0}> "
              "{ y = Pad(x, p, v) }",
     .refused_by = "form-not-lowered"},
};

INSTANTIATE_TEST_SUITE_P(Padding, KernelTest, testing::ValuesIn(kPaddingCases), CaseName);

}  // namespace
}  // namespace anemone
