// LRN: as the unit, which normalizes the first KernelChannel channels, where the window covers all
// channels, and else as squares, a convolution whose matrix is a band, and a power. ONNX Runtime
// has only odd windows and rank 4.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

// Of Rsqrt and Sqrt, for a beta of 0.75.
const std::vector<std::string> kComposed =
    Units({{"GOC", 1}, {"ElementWise", 3}, {"Conv", 1}, {"Neuron", 2}});
// With a clamp before the squares.
const std::vector<std::string> kClamped =
    Units({{"GOC", 1}, {"ElementWise", 3}, {"Conv", 1}, {"Neuron", 3}});

const std::vector<Case> kLocalResponseNormalizationCases = {
    {.name = "odd_window_of_all_channels",
     .model = "(float[2,5,5,7] x) => (float[2,5,5,7] y) "
              "{ y = LRN<size = 5, alpha = 0.5, beta = 0.75, bias = 2.0>(x) }",
     .units = {"LocalResponseNormalization"}},
    {.name = "window_of_more_than_all_channels",
     .model = "(float[2,3,5,7] x) => (float[2,3,5,7] y) { y = LRN<size = 7, alpha = 0.5>(x) }",
     .units = {"LocalResponseNormalization"}},
    {.name = "fifteen_channels_on_a13",
     .model = "(float[1,15,3,3] x) => (float[1,15,3,3] y) { y = LRN<size = 15, alpha = 1.0>(x) }",
     .units = {"LocalResponseNormalization"}},
    {.name = "sixteen_channels_fail_on_a13",
     .model = "(float[1,16,3,3] x) => (float[1,16,3,3] y) { y = LRN<size = 17>(x) }",
     .rewrites = false,
     .refused_by = "lrn-channels-a13"},
    {.name = "sixteen_channels_are_composed_on_a13",
     .model = "(float[1,16,3,3] x) => (float[1,16,3,3] y) { y = LRN<size = 17, alpha = 1.0>(x) }",
     .units = kClamped},
    {.name = "sixteen_channels_on_a14",
     .model = "(float[1,16,3,3] x) => (float[1,16,3,3] y) { y = LRN<size = 17>(x) }",
     .target = "h14",
     .units = {"LocalResponseNormalization"}},
    {.name = "alex_net",
     .model = "(float[1,96,13,13] x) => (float[1,96,13,13] y) "
              "{ y = LRN<size = 5, alpha = 0.0001, beta = 0.75, bias = 1.0>(x) }",
     .units = kComposed,
     .low = 0,
     .high = 300},
    {.name = "alex_net_of_the_paper",
     .model = "(float[2,96,5,5] x) => (float[2,96,5,5] y) "
              "{ y = LRN<size = 5, alpha = 0.0005, beta = 0.75, bias = 2.0>(x) }",
     .target = "h14",
     .units = kComposed,
     .low = -50,
     .high = 100},
    {.name = "squares_above_fp16",
     .model = "(float[1,12,4,4] x) => (float[1,12,4,4] y) "
              "{ y = LRN<size = 5, alpha = 0.0001, beta = 0.75, bias = 1.0>(x) }",
     .units = kComposed,
     .low = -9000,
     .high = 9000},
    {.name = "small_values_count",
     .model = "(float[1,12,4,4] x) => (float[1,12,4,4] y) "
              "{ y = LRN<size = 5, alpha = 20.0, beta = 0.75, bias = 0.5>(x) }",
     .units = kClamped,
     .low = -0.1F,
     .high = 0.1F},
    {.name = "window_of_one",
     .model = "(float[1,12,4,4] x) => (float[1,12,4,4] y) "
              "{ y = LRN<size = 1, alpha = 2.0, beta = 0.75, bias = 1.0>(x) }",
     .units = kClamped,
     .low = -3,
     .high = 3},
    {.name = "power_of_a_half",
     .model = "(float[1,12,4,4] x) => (float[1,12,4,4] y) "
              "{ y = LRN<size = 3, alpha = 2.0, beta = 0.5, bias = 1.5>(x) }",
     .units = Units({{"GOC", 1}, {"ElementWise", 2}, {"Conv", 1}, {"Neuron", 2}}),
     .low = -3,
     .high = 3},
    {.name = "power_of_one",
     .model = "(float[1,12,4,4] x) => (float[1,12,4,4] y) "
              "{ y = LRN<size = 3, alpha = 2.0, beta = 1.0, bias = 1.5>(x) }",
     .units = Units({{"GOC", 1}, {"ElementWise", 2}, {"Conv", 1}, {"Neuron", 2}}),
     .low = -3,
     .high = 3},
    {.name = "any_power",
     .model = "(float[1,12,4,4] x) => (float[1,12,4,4] y) "
              "{ y = LRN<size = 3, alpha = 2.0, beta = 0.6, bias = 1.5>(x) }",
     .units = Units({{"GOC", 1}, {"ElementWise", 3}, {"Conv", 1}, {"Neuron", 1}}),
     .low = -3,
     .high = 3},
    {.name = "converted",
     .model = "(float[1,12,4,4] x) => (float[1,12,4,4] y) { y = LRN<size = 3, alpha = 1.0>(x) }",
     .route = "mil",
     .units = kClamped},
    {.name = "alpha_that_fp16_cannot_hold",
     .model = "(float[1,4,4,4] x) => (float[1,4,4,4] y) "
              "{ y = LRN<size = 5, alpha = 0.00000002, beta = 0.75, bias = 1.0>(x) }",
     .units = kComposed,
     .low = -40000,
     .high = 40000},
    {.name = "bias_that_fp16_cannot_hold",
     .model = "(float[1,12,4,4] x) => (float[1,12,4,4] y) "
              "{ y = LRN<size = 3, alpha = 1.0, bias = 0.00001>(x) }",
     .refused_by = "form-not-lowered"},
    {.name = "before_a13",
     .model = "(float[1,5,3,3] x) => (float[1,5,3,3] y) { y = LRN<size = 5>(x) }",
     .target = "h12",
     .rewrites = false,
     .refused_by = "lrn-arch"},
};

INSTANTIATE_TEST_SUITE_P(LocalResponseNormalization, KernelTest,
                         testing::ValuesIn(kLocalResponseNormalizationCases), CaseName);

}  // namespace
}  // namespace anemone
