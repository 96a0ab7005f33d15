// LayerNormalization, the nodes that exporters write for it, and GroupNormalization.
#include "absl/strings/str_cat.h"
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
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "mean_is_read",
     .model = "(float[2,5,48] x) => (float[2,5,48] y, float[2,5,1] m) <float[48] g, float[48] b> "
              "{ y, m = LayerNormalization(x, g, b) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "scale_at_run_time",
     .model = "(float[2,5,48] x, float[48] g) => (float[2,5,48] y) "
              "{ y = LayerNormalization(x, g) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "rank_five_scale_along_channels_and_depth",
     .model = "(float[1,3,2,4,4] x) => (float[1,3,2,4,4] y) <float[3,2,4,4] g> "
              "{ y = LayerNormalization<axis = 1>(x, g) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "before_a13",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float[48] g> "
              "{ y = LayerNormalization(x, g) }",
     .target = "h12",
     .refused_by = "unit-family"},
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

// As exported from Flax. The sum of squares overflows fp16, and the mean is much larger than the
// deviation.
const char kOnePassHead[] =
    "(float[2,512,6] x) => (float[2,512,6] y) <float[1,512,1] g, float[1,512,1] b, "
    "int64[1] axis = {1}, int64[3] shape = {2, 1, 6}, float n = {0.001953125}, float zero = {0.0}, "
    "float e = {0.000001}> { s1 = ReduceSum<keepdims = 0>(x, axis) m = Mul(s1, n) sq = Mul(x, x) "
    "s2 = ReduceSum<keepdims = 0>(sq, axis) m2 = Mul(s2, n) mm = Mul(m, m) v = Sub(m2, mm) ";

const std::vector<Case> kOnePassCases = {
    {.name = "as_flax_writes_it",
     .model = absl::StrCat(kOnePassHead,
                           "f = Max(zero, v) vk = Reshape(f, shape) a = Add(vk, e) r = Sqrt(a) "
                           "i = Reciprocal(r) w = Mul(i, g) mk = Reshape(m, shape) d = Sub(x, mk) "
                           "p = Mul(d, w) y = Add(p, b) }"),
     .units = {"LayerNormalization"},
     .tolerance = 2e-2,
     .low = 20,
     .high = 24},
    {.name = "without_scale_and_bias",
     .model = absl::StrCat(kOnePassHead,
                           "vk = Reshape(v, shape) a = Add(e, vk) r = Sqrt(a) i = Reciprocal(r) "
                           "mk = Reshape(m, shape) d = Sub(x, mk) y = Mul(i, d) }"),
     .target = "h16",
     .units = {"LayerNormalization"}},
    {.name = "by_means_that_keep_their_axes",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float[48] g, int64[1] last = {-1}, "
              "float e = {0.001}> { m = ReduceMean(x, last) sq = Mul(x, x) "
              "m2 = ReduceMean(sq, last) mm = Mul(m, m) v = Sub(m2, mm) a = Add(v, e) r = Sqrt(a) "
              "i = Reciprocal(r) w = Mul(i, g) d = Sub(x, m) y = Mul(d, w) }",
     .units = {"LayerNormalization"}},
    {.name = "another_mean_stays_as_it_is",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <int64[1] last = {-1}, int64[1] mid = {1}, "
              "float e = {1.0}> { m = ReduceMean(x, last) o = ReduceMean(x, mid) sq = Mul(x, x) "
              "m2 = ReduceMean(sq, last) mm = Mul(m, m) v = Sub(m2, mm) a = Add(v, e) r = Sqrt(a) "
              "i = Reciprocal(r) d = Sub(x, o) y = Mul(d, i) }",
     .units = {"Reduction", "Reduction", "ElementWise", "Reduction", "ElementWise", "ElementWise",
               "GOC", "Neuron", "Neuron", "ElementWise", "ElementWise"}},
};
INSTANTIATE_TEST_SUITE_P(OnePassNormalization, KernelTest, testing::ValuesIn(kOnePassCases),
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
