// LayerNormalization, its pieces as exporters before opset 17 write it, and GroupNormalization.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kLayerNormCases = {
    {.name = "last_axis",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float[48] g, float[48] b> "
              "{ y = LayerNormalization(x, g, b) }",
     .units = {"LayerNormalization"}},
    {.name = "rank_two",
     .model = "(float[5,48] x) => (float[5,48] y) <float[48] g, float[48] b> "
              "{ y = LayerNormalization<epsilon = 0.01>(x, g, b) }",
     .target = "h16",
     .units = {"LayerNormalization"}},
    {.name = "rank_four_without_bias",
     .model = "(float[2,3,5,48] x) => (float[2,3,5,48] y) <float[48] g> "
              "{ y = LayerNormalization(x, g) }",
     .units = {"LayerNormalization"}},
    {.name = "three_axes",
     .model = "(float[2,3,5,7] x) => (float[2,3,5,7] y) <float[3,5,7] g, float[3,5,7] b> "
              "{ y = LayerNormalization<axis = 1>(x, g, b) }",
     .units = {"LayerNormalization"}},
    {.name = "repeated_scale",
     .model = "(float[2,3,5,7] x) => (float[2,3,5,7] y) <float[5,1] g, float[7] b> "
              "{ y = LayerNormalization<axis = -2>(x, g, b) }",
     .units = {"LayerNormalization"}},
    {.name = "batch_of_one_may_be_among_the_axes",
     .model = "(float[1,3,8] x) => (float[1,3,8] y) <float[1,3,8] g, float[1,3,8] b> "
              "{ y = LayerNormalization<axis = 0>(x, g, b) }",
     .units = {"LayerNormalization"}},
    {.name = "rank_five_last_axis",
     .model = "(float[2,3,2,5,48] x) => (float[2,3,2,5,48] y) <float[48] g, float[48] b> "
              "{ y = LayerNormalization(x, g, b) }",
     .units = {"LayerNormalization"}},
    {.name = "far_from_zero",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float[48] g, float[48] b> "
              "{ y = LayerNormalization(x, g, b) }",
     .units = {"LayerNormalization"},
     .tolerance = 2e-2,
     .low = 100,
     .high = 110},
    {.name = "over_the_batch",
     .model = "(float[2,3,8] x) => (float[2,3,8] y) <float[2,3,8] g, float[2,3,8] b> "
              "{ y = LayerNormalization<axis = 0>(x, g, b) }",
     .refused_by = "form-not-lowered"},
    {.name = "mean_is_read",
     .model = "(float[2,5,48] x) => (float[2,5,48] y, float[2,5,1] m) <float[48] g, float[48] b> "
              "{ y, m = LayerNormalization(x, g, b) }",
     .refused_by = "form-not-lowered"},
    {.name = "scale_at_run_time",
     .model = "(float[2,5,48] x, float[48] g) => (float[2,5,48] y) "
              "{ y = LayerNormalization(x, g) }",
     .refused_by = "form-not-lowered"},
    {.name = "rank_five_scale_along_channels_and_depth",
     .model = "(float[1,3,2,4,4] x) => (float[1,3,2,4,4] y) <float[3,2,4,4] g> "
              "{ y = LayerNormalization<axis = 1>(x, g) }",
     .refused_by = "form-not-lowered"},
    {.name = "before_a13",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float[48] g> "
              "{ y = LayerNormalization(x, g) }",
     .target = "h12",
     .refused_by = "layer-norm-family"},
    {.name = "pieces",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float[48] g, float[48] b, "
              "int64[1] last = {-1}, float two = {2.0}, float e = {0.00001}> "
              "{ m = ReduceMean(x, last) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last) "
              "a = Add(v, e) s = Sqrt(a) n = Div(d, s) w = Mul(n, g) y = Add(w, b) }",
     .units = {"LayerNormalization"}},
    {.name = "pieces_with_a_product_as_square_and_constants_first",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float[48] g, float[48] b, "
              "int64[1] last = {2}, float e = {0.00001}> "
              "{ m = ReduceMean(x, last) d = Sub(x, m) p = Mul(d, d) v = ReduceMean(p, last) "
              "a = Add(e, v) s = Sqrt(a) n = Div(d, s) w = Mul(g, n) y = Add(b, w) }",
     .units = {"LayerNormalization"}},
    {.name = "pieces_over_channels",
     .model = "(float[2,16,3,5] x) => (float[2,16,3,5] y) <float[16,1,1] g, float[16,1,1] b, "
              "int64[1] channels = {1}, float two = {2.0}, float e = {0.00001}> "
              "{ m = ReduceMean(x, channels) d = Sub(x, m) p = Pow(d, two) "
              "v = ReduceMean(p, channels) a = Add(v, e) s = Sqrt(a) n = Div(d, s) "
              "w = Mul(n, g) y = Add(w, b) }",
     .units = {"LayerNormalization"}},
    {.name = "pieces_without_scale_and_bias",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <int64[1] last = {-1}, float two = {2.0}, "
              "float e = {0.00001}> "
              "{ m = ReduceMean(x, last) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, last) "
              "a = Add(v, e) s = Sqrt(a) y = Div(d, s) }",
     .units = {"LayerNormalization"}},
};
INSTANTIATE_TEST_SUITE_P(LayerNormalization, KernelTest, testing::ValuesIn(kLayerNormCases),
                         CaseName);

const std::vector<Case> kGroupNormCases = {
    {.name = "two_groups",
     .model = "(float[2,6,5,7] x) => (float[2,6,5,7] y) <float[6] g, float[6] b> "
              "{ y = GroupNormalization<num_groups = 2>(x, g, b) }",
     .units = {"LayerNormalization"}},
    {.name = "one_group",
     .model = "(float[2,6,5,7] x) => (float[2,6,5,7] y) <float[6] g, float[6] b> "
              "{ y = GroupNormalization<num_groups = 1, epsilon = 0.001>(x, g, b) }",
     .target = "h16",
     .units = {"LayerNormalization"}},
    {.name = "rank_three",
     .model = "(float[2,6,35] x) => (float[2,6,35] y) <float[6] g, float[6] b> "
              "{ y = GroupNormalization<num_groups = 3>(x, g, b) }",
     .units = {"LayerNormalization"}},
    {.name = "one_group_of_rank_five",
     .model = "(float[2,6,3,5,7] x) => (float[2,6,3,5,7] y) <float[6] g, float[6] b> "
              "{ y = GroupNormalization<num_groups = 1>(x, g, b) }",
     .units = {"LayerNormalization"}},
    {.name = "groups_over_depth",
     .model = "(float[2,6,3,5,7] x) => (float[2,6,3,5,7] y) <float[6] g, float[6] b> "
              "{ y = GroupNormalization<num_groups = 2>(x, g, b) }",
     .refused_by = "layer-norm-depth"},
};
INSTANTIATE_TEST_SUITE_P(GroupNormalization, KernelTest, testing::ValuesIn(kGroupNormCases),
                         CaseName);

}  // namespace
}  // namespace anemone
