// Add, Max and Min of two tensors, times a number, lowered to ScaledElementWise.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kScaledElementwiseCases = {
    {.name = "sum",
     .model = "(float[2,8,4,5] x, float[2,8,4,5] z) => (float[2,8,4,5] y) <float s = {0.25}> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .units = {"ScaledElementWise"}},
    {.name = "number_first",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y) <float[1] s = {-1.7}> "
              "{ t = Add(x, z) y = Mul(s, t) }",
     .target = "h16",
     .units = {"ScaledElementWise"}},
    {.name = "maximum",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y) <float s = {-3}> "
              "{ t = Max(x, z) y = Mul(t, s) }",
     .units = {"ScaledElementWise"}},
    {.name = "minimum_of_a_tensor_and_itself",
     .model = "(float[3,7] x) => (float[3,7] y) <float s = {3}> "
              "{ t = Min(x, x) y = Mul(t, s) }",
     .units = {"ScaledElementWise"}},
    {.name = "product_would_lose_the_number",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y) <float s = {3}> "
              "{ t = Mul(x, z) y = Mul(t, s) }",
     .units = {"ElementWise", "GOC"}},
    {.name = "difference",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y) <float s = {3}> "
              "{ t = Sub(x, z) y = Mul(t, s) }",
     .units = {"ElementWise", "GOC"}},
    {.name = "of_three",
     .model = "(float[3,7] x, float[3,7] z, float[3,7] u) => (float[3,7] y) <float s = {3}> "
              "{ t = Max(x, z, u) y = Mul(t, s) }",
     .units = {"ElementWise", "ElementWise", "GOC"}},
    {.name = "one_is_repeated",
     .model = "(float[3,7] x, float[7] z) => (float[3,7] y) <float s = {3}> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .units = {"ElementWise", "GOC"}},
    {.name = "one_is_constant",
     .model = "(float[3,7] x) => (float[3,7] y) <float[3,7] z, float s = {3}> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .units = {"ElementWise", "GOC"}},
    {.name = "number_for_each_channel",
     .model = "(float[1,2,3,7] x, float[1,2,3,7] z) => (float[1,2,3,7] y) <float[2,1,1] s> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .units = {"ElementWise", "ElementWise"}},
    {.name = "sum_is_read_elsewhere",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y, float[3,7] t) <float s = {3}> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .units = {"ElementWise", "GOC"}},
    {.name = "number_beyond_fp16",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y) <float s = {100000}> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .units = {"ElementWise", "GOC", "GOC"},  // two factors
     .low = -0.1,
     .high = 0.1},
    {.name = "conversion_route",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y) <float s = {3}> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .route = "mil",
     .units = {"ElementWise", "GOC"}},
    {.name = "is_a_rewrite",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y) <float s = {3}> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .rewrites = false,
     .units = {"ElementWise", "GOC"}},
    {.name = "before_a13",
     .model = "(float[3,7] x, float[3,7] z) => (float[3,7] y) <float s = {3}> "
              "{ t = Add(x, z) y = Mul(t, s) }",
     .target = "h12",
     .units = {"ElementWise", "GOC"}},
};

INSTANTIATE_TEST_SUITE_P(ScaledElementWise, KernelTest, testing::ValuesIn(kScaledElementwiseCases),
                         CaseName);

}  // namespace
}  // namespace anemone
