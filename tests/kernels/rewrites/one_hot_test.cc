// OneHot of float indices: axes, ranks, indices outside of the range, and forms that stay on the
// CPU.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

// Each index is 0 or an element of `w`, depending on the input. All are integers, because ONNX
// Runtime does not drop fractions.
const std::vector<Case> kOneHotCases = {
    {.name = "last_axis",
     .model = "(bool[2,6] b) => (float[2,6,5] y) <float[6] w = {0, 4, 5, -1, -5, -6}, "
              "float d = {5}, float[2] v = {0, 1}> "
              "{ f = Cast<to = 1>(b) x = Mul(f, w) y = OneHot(x, d, v) }",
     .units = {"ElementWise", "ElementWise", "ElementWise", "ElementWise", "ElementWise",
               "ElementWise", "GOC", "Neuron", "Neuron"},
     .tolerance = 0},
    {.name = "first_axis_other_values",
     .model = "(bool[2,3,4] b) => (float[6,2,3,4] y) <float[4] w = {1, 2, 5, 7}, "
              "float d = {6}, float[2] v = {-1.5, 2}> "
              "{ f = Cast<to = 1>(b) x = Mul(f, w) y = OneHot<axis = 0>(x, d, v) }",
     .units = {"ElementWise", "ElementWise", "ElementWise", "ElementWise", "ElementWise",
               "ElementWise", "GOC", "GOC", "Neuron", "Neuron"},
     .tolerance = 0},
    {.name = "2048_classes",
     .model = "(bool[8] b) => (float[8,2048] y) "
              "<float[8] w = {1, 2046, 2047, -1, -2, -2048, -2047, 1025}, "
              "float d = {2048}, float[2] v = {0, 1}> "
              "{ f = Cast<to = 1>(b) x = Mul(f, w) y = OneHot(x, d, v) }",
     .target = "h12",
     .units = {"ElementWise", "ElementWise", "ElementWise", "ElementWise", "ElementWise",
               "ElementWise", "GOC", "Neuron", "Neuron"},
     .tolerance = 0},
    {.name = "rank_5",
     .model = "(bool[2,2,3,4] x) => (float[2,2,2,3,4] y) <float d = {2}, float[2] v = {0, 1}> "
              "{ f = Cast<to = 1>(x) y = OneHot<axis = 2>(f, d, v) }",
     .units = {"ElementWise", "ElementWise", "ElementWise", "ElementWise", "ElementWise", "GOC",
               "Neuron", "Neuron"},
     .tolerance = 0},
    {.name = "integers_have_no_port",
     .model = "(int64[7] x) => (float[7,10] y) <float d = {10}, float[2] v = {0, 1}> "
              "{ y = OneHot(x, d, v) }",
     .refused_by = "port-format"},
    {.name = "integer_values_have_no_port",
     .model = "(float[7] x) => (int64[7,10] y) <int64 d = {10}, int64[2] v = {0, 1}> "
              "{ y = OneHot(x, d, v) }",
     .refused_by = "port-format"},
    {.name = "more_classes_than_fp16_counts",
     .model = "(float[2] x) => (float[2,2049] y) <float d = {2049}, float[2] v = {0, 1}> "
              "{ y = OneHot(x, d, v) }",
     .refused_by = "form-not-lowered"},
    {.name = "without_rewrites",
     .model = "(float[7] x) => (float[7,10] y) <float d = {10}, float[2] v = {0, 1}> "
              "{ y = OneHot(x, d, v) }",
     .rewrites = false,
     .refused_by = "no-lowering"},
};

INSTANTIATE_TEST_SUITE_P(OneHot, KernelTest, testing::ValuesIn(kOneHotCases), CaseName);

}  // namespace
}  // namespace anemone
