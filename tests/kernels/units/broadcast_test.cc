// Broadcast: Expand of every rank, also where the rank grows, and depth on targets without it.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kBroadcastCases = {
    {.name = "one_axis",
     .model = "(float[1,1,5,7] x) => (float[1,4,5,7] y) <int64[4] s = {1,4,5,7}> "
              "{ y = Expand(x, s) }",
     .units = {"Broadcast"},
     .tolerance = 1e-3},
    {.name = "all_axes",
     .model = "(float[1,1,1,1] x) => (float[2,3,4,5] y) <int64[4] s = {2,3,4,5}> "
              "{ y = Expand(x, s) }",
     .target = "h16",
     .units = {"Broadcast"},
     .tolerance = 1e-3},
    {.name = "rank_grows",
     .model = "(float[3,1] x) => (float[2,3,4] y) <int64[3] s = {2,3,4}> { y = Expand(x, s) }",
     .units = {"Broadcast"},
     .tolerance = 1e-3},
    {.name = "rank_grows_to_4",
     .model = "(float[5] x) => (float[2,3,4,5] y) <int64[4] s = {2,3,4,1}> { y = Expand(x, s) }",
     .target = "h12",
     .units = {"Broadcast"},
     .tolerance = 1e-3},
    {.name = "shape_says_less",
     .model = "(float[2,3] x) => (float[2,3] y) <int64[2] s = {1,1}> "
              "{ z = Relu(x) y = Expand(z, s) }",
     .units = {"Neuron"}},
    {.name = "depth_from_a14",
     .model = "(float[2,3,1,5,6] x) => (float[2,3,4,5,6] y) <int64[5] s = {1,1,4,1,1}> "
              "{ y = Expand(x, s) }",
     .target = "h14",
     .units = {"Broadcast"},
     .tolerance = 1e-3},
    {.name = "depth_is_refused_on_a13",
     .model = "(float[2,3,1,5,6] x) => (float[2,3,4,5,6] y) <int64[5] s = {1,1,4,1,1}> "
              "{ y = Expand(x, s) }",
     .rewrites = false,
     .refused_by = "broadcast-depth"},
    {.name = "depth_under_other_dims_on_a13",
     .model = "(float[2,3,1,5,1] x) => (float[2,3,4,5,6] y) <int64[5] s = {1,1,4,1,6}> "
              "{ y = Expand(x, s) }",
     .units = {"Broadcast", "Broadcast"},
     .tolerance = 1e-3},
    {.name = "nothing",
     .model = "(float[2,3,1,4,6] x) => (float[2,3,4,0,6] y) "
              "<int64[1] z = {0}, int64[1] a = {3}, int64[5] s = {1,1,4,1,1}> "
              "{ n = Slice(x, z, z, a) y = Expand(n, s) }",
     .refused_by = "empty-tensor"},
    {.name = "integers",
     .model = "(int64[1,3] x) => (int64[2,3] y) <int64[2] s = {2,3}> { y = Expand(x, s) }",
     .refused_by = "integer-range"},
};

INSTANTIATE_TEST_SUITE_P(Broadcast, KernelTest, testing::ValuesIn(kBroadcastCases), CaseName);

}  // namespace
}  // namespace anemone
