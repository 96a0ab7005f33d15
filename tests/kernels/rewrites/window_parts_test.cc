// Pooling over three axes, with dilations, with powers other than 2, and over whole axes.
#include "tests/kernels/on_targets.h"

namespace anemone {
namespace {

const std::vector<Case> kWindowPartsCases = {
    {.name = "maximum_of_three_axes",
     .model = "(float[1,2,5,6,7] x) => (float[1,2,2,3,3] y) "
              "{ y = MaxPool<kernel_shape = [2,2,3], strides = [2,2,2]>(x) }",
     .units = Units({{"ElementWise", 4}, {"InputView", 7}})},
    {.name = "padded_maximum_of_three_axes",
     .model = "(float[1,2,4,4,4] x) => (float[1,2,4,4,4] y) "
              "{ y = MaxPool<kernel_shape = [3,3,3], pads = [1,1,1,1,1,1]>(x) }",
     .units = Units({{"Concat", 3}, {"ElementWise", 6}, {"InputView", 9}}),
     .low = -5,
     .high = -1},
    {.name = "dilated_maximum",
     .model = "(float[1,2,8,9] x) => (float[1,2,4,5] y) "
              "{ y = MaxPool<kernel_shape = [3,3], dilations = [2,2]>(x) }",
     .units = Units({{"ElementWise", 4}, {"InputView", 6}})},
    {.name = "maximum_that_reaches_past",  // ceil_mode
     .model = "(float[1,1,6,6,6] x) => (float[1,1,3,3,3] y) "
              "{ y = MaxPool<kernel_shape = [3,3,3], strides = [2,2,2], ceil_mode = 1>(x) }",
     .units = Units({{"Concat", 3}, {"ElementWise", 6}, {"InputView", 9}}),
     .low = -5,
     .high = -1},
    {.name = "average_of_three_axes",
     .model = "(float[1,2,4,6,6] x) => (float[1,2,2,3,3] y) "
              "{ y = AveragePool<kernel_shape = [2,2,2], strides = [2,2,2]>(x) }",
     .units = Units({{"Conv", 3}, {"Transpose", 6}})},
    {.name = "padded_average",
     .model = "(float[1,2,4,4,4] x) => (float[1,2,4,4,4] y) "
              "{ y = AveragePool<kernel_shape = [3,3,3], pads = [1,1,1,1,1,1]>(x) }",
     .units = Units({{"Conv", 3}, {"Transpose", 6}})},
    {.name = "average_of_pads_too",
     .model = "(float[1,2,4,4,4] x) => (float[1,2,4,4,4] y) { y = AveragePool<"
              "kernel_shape = [3,3,3], pads = [1,1,1,1,1,1], count_include_pad = 1>(x) }",
     .units = Units({{"Conv", 3}, {"Transpose", 6}})},
    {.name = "dilated_average",
     .model = "(float[1,2,8,9] x) => (float[1,2,6,7] y) "
              "{ y = AveragePool<kernel_shape = [2,2], dilations = [2,2]>(x) }",
     .units = Units({{"Conv", 2}, {"Transpose", 4}})},
    {.name = "average_same_lower",
     .model = "(float[1,2,5,5,5] x) => (float[1,2,3,3,3] y) { y = AveragePool<"
              "kernel_shape = [2,2,2], strides = [2,2,2], auto_pad = \"SAME_LOWER\">(x) }",
     .units = Units({{"Conv", 3}, {"Transpose", 6}})},
    {.name = "sum_of_sizes",
     .model = "(float[1,3,8] x) => (float[1,3,7] y) { y = LpPool<kernel_shape = [2], p = 1>(x) }",
     .units = Units({{"Conv", 1}, {"ElementWise", 1}, {"Transpose", 2}})},
    {.name = "third_power",
     .model = "(float[1,3,8,8] x) => (float[1,3,7,7] y) "
              "{ y = LpPool<kernel_shape = [2,2], p = 3>(x) }",
     .units = Units({{"Conv", 2}, {"ElementWise", 3}, {"Transpose", 4}})},
    {.name = "squares_of_three_axes",
     .model = "(float[1,2,4,4,4] x) => (float[1,2,3,3,3] y) "
              "{ y = LpPool<kernel_shape = [2,2,2]>(x) }",
     .units = Units({{"Conv", 3}, {"ElementWise", 1}, {"Neuron", 1}, {"Transpose", 6}})},
    {.name = "all_squares",
     .model = "(float[2,3,4,5] x) => (float[2,3,1,1] y) { y = GlobalLpPool(x) }",
     .units = Units({{"ElementWise", 1}, {"Neuron", 1}, {"Reduction", 1}})},
    {.name = "all_cubes",
     .model = "(float[2,3,4] x) => (float[2,3,1] y) { y = GlobalLpPool<p = 3>(x) }",
     .units = Units({{"ElementWise", 3}, {"Reduction", 1}})},
};

INSTANTIATE_TEST_SUITE_P(WindowParts, KernelTest, testing::ValuesIn(OnBoth(kWindowPartsCases)),
                         CaseName);

}  // namespace
}  // namespace anemone
