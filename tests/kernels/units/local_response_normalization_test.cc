#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kCases = {
    {.name = "odd_window",
     .model = "(float[2,8,5,7] x) => (float[2,8,5,7] y) "
              "{ y = LRN<size = 5, alpha = 0.5, beta = 0.75, bias = 2.0>(x) }",
     .units = {"LocalResponseNormalization"}},
    {.name = "fifteen_channels_on_a13",
     .model = "(float[1,15,3,3] x) => (float[1,15,3,3] y) { y = LRN<size = 3>(x) }",
     .units = {"LocalResponseNormalization"}},
    {.name = "sixteen_channels_fail_on_a13",
     .model = "(float[1,16,3,3] x) => (float[1,16,3,3] y) { y = LRN<size = 3>(x) }",
     .refused_by = "lrn-channels-a13"},
    {.name = "sixteen_channels_on_a14",
     .model = "(float[1,16,3,3] x) => (float[1,16,3,3] y) { y = LRN<size = 3>(x) }",
     .target = "h14",
     .units = {"LocalResponseNormalization"}},
};

INSTANTIATE_TEST_SUITE_P(LocalResponseNormalization, KernelTest, testing::ValuesIn(kCases),
                         CaseName);

}  // namespace
}  // namespace anemone
