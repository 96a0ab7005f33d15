// InputView: Slice and Split in every form, and nodes without effect.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kInputViewCases = {
    {.name = "slice_of_one_axis",
     .model = "(float[1,8,6,7] x) => (float[1,5,6,7] y) "
              "<int64[1] s = {2}, int64[1] e = {7}, int64[1] a = {1}> { y = Slice(x, s, e, a) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "slice_of_two_axes_from_behind",
     .model = "(float[2,8,6,7] x) => (float[2,8,3,6] y) "
              "<int64[2] s = {-3,0}, int64[2] e = {9223372036854775807,-1}, int64[2] a = {2,-1}> "
              "{ y = Slice(x, s, e, a) }",
     .target = "h16",
     .units = {"InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "slice_without_axes",
     .model = "(float[4,9] x) => (float[2,3] y) <int64[2] s = {1,2}, int64[2] e = {3,5}> "
              "{ y = Slice(x, s, e) }",
     .target = "h14",
     .units = {"InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "slice_with_a_step",
     .model = "(float[1,3,9,8] x) => (float[1,3,4,3] y) "
              "<int64[2] s = {1,0}, int64[2] e = {9,8}, int64[2] a = {2,3}, int64[2] p = {2,3}> "
              "{ y = Slice(x, s, e, a, p) }",
     .units = {"InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "slice_with_a_step_past_the_end",
     .model = "(float[3,9] x) => (float[3,1] y) <int64[1] s = {4}, int64[1] e = {9}, "
              "int64[1] a = {1}, int64[1] p = {9223372036854775807}> { y = Slice(x, s, e, a, p) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "slice_backwards_whole",
     .model = "(float[2,3,9] x) => (float[2,3,9] y) <int64[1] s = {-1}, "
              "int64[1] e = {-9223372036854775808}, int64[1] a = {2}, int64[1] p = {-1}> "
              "{ y = Slice(x, s, e, a, p) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "slice_backwards_in_part",  // a view of the part, then a view that reverses it
     .model = "(float[2,9,3] x) => (float[2,3,3] y) <int64[1] s = {7}, int64[1] e = {1}, "
              "int64[1] a = {1}, int64[1] p = {-2}> { y = Slice(x, s, e, a, p) }",
     .units = {"InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "slice_of_everything_is_nothing",
     .model = "(float[2,9] x) => (float[2,9] y) <int64[1] s = {0}, int64[1] e = {100}, "
              "int64[1] a = {1}> { z = Relu(x) y = Slice(z, s, e, a) }",
     .units = {"Neuron"}},
    {.name = "slice_of_depth",
     .model = "(float[2,3,4,5,6] x) => (float[2,3,2,5,6] y) <int64[1] s = {1}, int64[1] e = {3}, "
              "int64[1] a = {2}> { y = Slice(x, s, e, a) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "slice_of_channels_of_rank_5",
     .model = "(float[2,3,4,5,6] x) => (float[2,2,4,5,6] y) <int64[1] s = {1}, int64[1] e = {3}, "
              "int64[1] a = {1}> { y = Slice(x, s, e, a) }",
     .units = {"InputView"},
     .tolerance = 1e-3},
    {.name = "slice_to_nothing",
     .model = "(float[4,9] x) => (float[0,9] y) <int64[1] s = {2}, int64[1] e = {2}, "
              "int64[1] a = {0}> { y = Slice(x, s, e, a) }",
     .refused_by = "input-view-size"},
    {.name = "slice_of_nothing_with_a_step",
     .model = "(float[4,9] x) => (float[0,9] y) <int64[1] z = {0}, int64[1] s = {-1}, "
              "int64[1] e = {-9}, int64[1] p = {-2}> "
              "{ n = Slice(x, z, z, z) m = Relu(n) y = Slice(m, s, e, z, p) }",
     .refused_by = "empty-tensor"},
    {.name = "slice_of_integers",
     .model = "(int64[9] x) => (int64[2] y) <int64[1] s = {1}, int64[1] e = {3}> "
              "{ y = Slice(x, s, e) }",
     .refused_by = "integer-range"},
    {.name = "slice_at_run_time",
     .model = "(float[4,9] x, int64[1] s, int64[1] e) => (float[n,9] y) { y = Slice(x, s, e) }",
     .refused_by = "port-format"},
    {.name = "split_in_given_sizes",
     .model = "(float[1,8,6,7] x) => (float[1,3,6,7] y, float[1,5,6,7] z) <int64[2] s = {3,5}> "
              "{ y, z = Split<axis = 1>(x, s) }",
     .units = {"InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "split_in_equal_parts",
     .model = "(float[2,12] x) => (float[2,4] y, float[2,4] z, float[2,4] w) "
              "{ y, z, w = Split<axis = -1, num_outputs = 3>(x) }",
     .target = "h16",
     .units = {"InputView", "InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "split_with_a_smaller_rest",
     .model = "(float[7,2] x) => (float[3,2] y, float[3,2] z, float[1,2] w) "
              "{ y, z, w = Split<num_outputs = 3>(x) }",
     .units = {"InputView", "InputView", "InputView"},
     .tolerance = 1e-3},
    {.name = "split_with_an_unread_part",
     .model = "(float[1,8,6] x) => (float[1,4,6] y) "
              "{ z, w = Split<axis = 1, num_outputs = 2>(x) y = Relu(w) }",
     .units = {"InputView", "InputView", "Neuron"}},
    {.name = "identity_to_an_output",
     .model = "(float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Relu(x) z = Identity(y) }",
     .units = {"Neuron"}},
    {.name = "dropout_at_inference",
     .model = "(float[2,3] x) => (float[2,3] y) <float ratio = {0.5}> "
              "{ z = Relu(x) y = Dropout(z, ratio) }",
     .units = {"Neuron"}},
    // The other constants get new numbers.
    {.name = "dropout_of_a_constant",
     .model = "(float[2,3] x) => (float[2] y, float[2,3] z) <float[2] c = {1, 2}, float k = {0.5}> "
              "{ y = Dropout(c) z = Min(x, k) }",
     .units = {"ElementWise"}},
    {.name = "dropout_of_nothing_in_training",
     .model = "(float[2,3] x) => (float[2,3] y) <float ratio = {0}, bool training = {1}> "
              "{ z = Relu(x) y = Dropout(z, ratio, training) }",
     .units = {"Neuron"}},
};

INSTANTIATE_TEST_SUITE_P(InputView, KernelTest, testing::ValuesIn(kInputViewCases), CaseName);

}  // namespace
}  // namespace anemone
