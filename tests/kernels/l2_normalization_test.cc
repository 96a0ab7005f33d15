// LpNormalization with p = 2.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kCases = {
    {.name = "last_axis",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) { y = LpNormalization<p = 2>(x) }",
     .units = {"L2Normalization"}},
    {.name = "channels",
     .model = "(float[2,16,3,5] x) => (float[2,16,3,5] y) { y = LpNormalization<axis = 1>(x) }",
     .target = "h16",
     .units = {"L2Normalization"}},
    {.name = "first_axis_of_a_matrix",
     .model = "(float[5,48] x) => (float[5,48] y) { y = LpNormalization<axis = 0>(x) }",
     .units = {"L2Normalization"}},
    {.name = "batch",
     .model = "(float[2,16,3,5] x) => (float[2,16,3,5] y) { y = LpNormalization<axis = 0>(x) }",
     .refused_by = "l2-norm-batch"},
    {.name = "sum_of_magnitudes",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) { y = LpNormalization<p = 1>(x) }",
     .refused_by = "form-not-lowered"},
};
INSTANTIATE_TEST_SUITE_P(L2Normalization, KernelTest, testing::ValuesIn(kCases), CaseName);

}  // namespace
}  // namespace anemone
