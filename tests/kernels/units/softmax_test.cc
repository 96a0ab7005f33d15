// Softmax and LogSoftmax over every axis, and the families without them.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kSoftmaxCases = {
    {.name = "last_axis",
     .model = "(float[2,8,4,16] x) => (float[2,8,4,16] y) { y = Softmax(x) }",
     .units = {"Softmax"},
     .low = -6,
     .high = 6},
    {.name = "channels",
     .model = "(float[2,8,4,16] x) => (float[2,8,4,16] y) { y = Softmax<axis = 1>(x) }",
     .target = "h16",
     .units = {"Softmax"},
     .low = -6,
     .high = 6},
    {.name = "height",
     .model = "(float[2,8,4,16] x) => (float[2,8,4,16] y) { y = Softmax<axis = -2>(x) }",
     .units = {"Softmax"}},
    {.name = "batch",
     .model = "(float[3,8,4,16] x) => (float[3,8,4,16] y) { y = Softmax<axis = 0>(x) }",
     .units = {"Softmax"}},
    {.name = "rank_1",
     .model = "(float[1000] x) => (float[1000] y) { y = Softmax(x) }",
     .units = {"Softmax"}},
    {.name = "rank_2",
     .model = "(float[3,1000] x) => (float[3,1000] y) { y = Softmax(x) }",
     .units = {"Softmax"}},
    {.name = "rank_3_middle",
     .model = "(float[3,10,7] x) => (float[3,10,7] y) { y = Softmax<axis = 1>(x) }",
     .units = {"Softmax"}},
    {.name = "rank_5_depth",
     .model = "(float[2,3,4,5,6] x) => (float[2,3,4,5,6] y) { y = Softmax<axis = 2>(x) }",
     .units = {"Softmax"}},
    {.name = "flattened_before_opset_13",
     .model = "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis = 1>(x) }",
     .opset = 11,
     .units = {"Softmax"}},
    {.name = "before_a13",
     .model = "(float[2,8] x) => (float[2,8] y) { y = Softmax(x) }",
     .target = "h12",
     .refused_by = "softmax-arch"},
    {.name = "logarithm",
     .model = "(float[2,8,40] x) => (float[2,8,40] y) { y = LogSoftmax(x) }",
     .units = {"Reduction", "ElementWise", "Neuron", "Reduction", "Neuron", "GOC", "ElementWise"},
     .low = -20,
     .high = 20},
    {.name = "logarithm_over_channels",
     .model = "(float[2,8,3,5] x) => (float[2,8,3,5] y) { y = LogSoftmax<axis = 1>(x) }",
     .target = "h16",
     .units = {"Reduction", "ElementWise", "Neuron", "Reduction", "Neuron", "GOC", "ElementWise"}},
    {.name = "logarithm_is_a_rewrite",
     .model = "(float[2,8] x) => (float[2,8] y) { y = LogSoftmax(x) }",
     .rewrites = false,
     .refused_by = "no-lowering"},
};

INSTANTIATE_TEST_SUITE_P(Softmax, KernelTest, testing::ValuesIn(kSoftmaxCases), CaseName);

}  // namespace
}  // namespace anemone
