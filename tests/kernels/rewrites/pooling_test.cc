// Pooling: every ONNX form that is lowered, the validator's rules at N and N + 1, and the rewrites
// of forms that it refuses.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kForms = {
    {.name = "max_3x3_stride_2",
     .model = "(float[1,8,15,17] x) => (float[1,8,8,9] y) "
              "{ y = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(x) }",
     .units = {"Pooling"}},
    {.name = "max_of_a_batch_on_h16",
     .model = "(float[3,5,12,9] x) => (float[3,5,6,4] y) "
              "{ y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }",
     .target = "h16",
     .units = {"Pooling"}},
    {.name = "max_before_a13",
     .model = "(float[1,8,15,17] x) => (float[1,8,7,8] y) "
              "{ y = MaxPool<kernel_shape = [3,3], strides = [2,2]>(x) }",
     .target = "h12",
     .units = {"Pooling"}},
    {.name = "max_asymmetric_pads",
     .model = "(float[1,4,12,12] x) => (float[1,4,6,6] y) "
              "{ y = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [0,0,1,1]>(x) }",
     .units = {"Pooling"},
     .low = -2,
     .high = -1},
    {.name = "max_one_dimensional",
     .model = "(float[2,6,33] x) => (float[2,6,16] y) "
              "{ y = MaxPool<kernel_shape = [3], strides = [2]>(x) }",
     .units = {"Pooling"}},
    {.name = "max_same_upper",
     .model =
         "(float[1,4,9,10] x) => (float[1,4,5,5] y) "
         "{ y = MaxPool<kernel_shape = [2,2], strides = [2,2], auto_pad = \"SAME_UPPER\">(x) }",
     .units = {"Pooling"},
     .low = -2,
     .high = -1},
    {.name = "max_same_lower",
     .model =
         "(float[1,4,9,10] x) => (float[1,4,5,5] y) "
         "{ y = MaxPool<kernel_shape = [2,2], strides = [2,2], auto_pad = \"SAME_LOWER\">(x) }",
     .units = {"Pooling"},
     .low = -2,
     .high = -1},
    {.name = "max_valid",
     .model = "(float[1,4,9,10] x) => (float[1,4,4,5] y) "
              "{ y = MaxPool<kernel_shape = [2,2], strides = [2,2], auto_pad = \"VALID\">(x) }",
     .units = {"Pooling"}},
    {.name = "max_ceil_mode",
     .model = "(float[1,4,8,8] x) => (float[1,4,4,4] y) "
              "{ y = MaxPool<kernel_shape = [3,3], strides = [2,2], ceil_mode = 1>(x) }",
     .units = {"Pooling"},
     .low = -2,
     .high = -1},
    {.name = "max_stride_without_a_window",
     .model = "(float[1,4,9,9] x) => (float[1,4,5,5] y) "
              "{ y = MaxPool<kernel_shape = [1,1], strides = [2,2]>(x) }",
     .units = {"Pooling"}},
    {.name = "average_pads_not_counted",
     .model = "(float[1,8,14,14] x) => (float[1,8,14,14] y) "
              "{ y = AveragePool<kernel_shape = [3,3], pads = [1,1,1,1]>(x) }",
     .units = {"Pooling"}},
    {.name = "average_pads_counted",
     .model = "(float[2,8,14,14] x) => (float[2,8,7,7] y) "
              "{ y = AveragePool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1], "
              "count_include_pad = 1>(x) }",
     .target = "h16",
     .units = {"Pooling"}},
    {.name = "average_same_upper",
     .model = "(float[1,4,9,9] x) => (float[1,4,5,5] y) "
              "{ y = AveragePool<kernel_shape = [3,3], strides = [2,2], "
              "auto_pad = \"SAME_UPPER\">(x) }",
     .units = {"Pooling"}},
    {.name = "average_ceil_mode",
     .model = "(float[1,4,8,8] x) => (float[1,4,4,4] y) "
              "{ y = AveragePool<kernel_shape = [3,3], strides = [2,2], ceil_mode = 1>(x) }",
     .units = {"Pooling"}},
    {.name = "average_ceil_mode_counted_but_unpadded",
     .model = "(float[1,4,8,8] x) => (float[1,4,4,4] y) "
              "{ y = AveragePool<kernel_shape = [3,3], strides = [2,2], ceil_mode = 1, "
              "count_include_pad = 1>(x) }",
     .units = {"Pooling"}},
    {.name = "average_ceil_mode_with_counted_pads",
     .model = "(float[1,4,7,7] x) => (float[1,4,4,4] y) "
              "{ y = AveragePool<kernel_shape = [4,4], strides = [2,2], pads = [1,1,1,1], "
              "ceil_mode = 1, count_include_pad = 1>(x) }",
     .units = {"Padding", "Pooling"}},
    {.name = "average_stride_3_is_allowed",
     .model = "(float[1,4,13,13] x) => (float[1,4,4,4] y) "
              "{ y = AveragePool<kernel_shape = [4,4], strides = [3,3]>(x) }",
     .units = {"Pooling"}},
    {.name = "average_one_dimensional",
     .model = "(float[2,6,33] x) => (float[2,6,11] y) "
              "{ y = AveragePool<kernel_shape = [3], strides = [3]>(x) }",
     .units = {"Pooling"}},
    {.name = "root_of_squares",
     .model = "(float[1,4,9,8] x) => (float[1,4,5,4] y) "
              "{ y = LpPool<kernel_shape = [3,2], strides = [2,2], pads = [1,0,1,0]>(x) }",
     .units = {"Pooling"}},
};

const std::vector<Case> kInParts = {
    {.name = "window_one_below_the_extent",
     .model =
         "(float[1,8,7,7] x) => (float[1,8,2,2] y) { y = AveragePool<kernel_shape = [6,6]>(x) }",
     .rewrites = false,
     .units = {"Pooling"}},
    {.name = "window_as_large_as_the_extent_is_refused",
     .model =
         "(float[1,8,7,7] x) => (float[1,8,1,1] y) { y = AveragePool<kernel_shape = [7,7]>(x) }",
     .rewrites = false,
     .refused_by = "pool-window"},
    {.name = "window_over_everything_is_a_reduction",
     .model =
         "(float[2,8,7,7] x) => (float[2,8,1,1] y) { y = AveragePool<kernel_shape = [7,7]>(x) }",
     .units = {"Reduction"},
     .low = 0},
    {.name = "window_past_everything_is_a_reduction",
     .model = "(float[1,8,6,6] x) => (float[1,8,1,1] y) "
              "{ y = AveragePool<kernel_shape = [7,7], pads = [0,0,1,1]>(x) }",
     .units = {"Reduction"},
     .low = 0},
    {.name = "window_past_everything_counting_pads",
     .model =
         "(float[1,8,6,6] x) => (float[1,8,1,1] y) "
         "{ y = AveragePool<kernel_shape = [7,7], pads = [0,0,1,1], count_include_pad = 1>(x) }",
     .units = {"Padding", "Reduction"},
     .low = 0},
    {.name = "max_over_everything",
     .model = "(float[1,8,6,9] x) => (float[1,8,1,1] y) { y = MaxPool<kernel_shape = [6,9]>(x) }",
     .target = "h16",
     .units = {"Reduction"}},
    {.name = "window_over_the_height_alone",  // PP-OCR recognition
     .model = "(float[1,16,3,40] x) => (float[1,16,1,20] y) "
              "{ y = AveragePool<kernel_shape = [3,2], strides = [3,2]>(x) }",
     .units = {"Pooling", "Reduction"}},
    {.name = "max_over_a_line",
     .model = "(float[2,6,12] x) => (float[2,6,1] y) { y = MaxPool<kernel_shape = [12]>(x) }",
     .units = {"Reduction"}},
    {.name = "max_window_wider_than_the_input",
     .model = "(float[1,8,4,4] x) => (float[1,8,4,4] y) "
              "{ y = MaxPool<kernel_shape = [5,5], pads = [2,2,2,2]>(x) }",
     .units = {"Padding", "Pooling"},
     .low = -2,
     .high = -1},
    {.name = "average_window_wider_than_the_input",
     .model = "(float[1,8,4,4] x) => (float[1,8,4,4] y) "
              "{ y = AveragePool<kernel_shape = [5,5], pads = [2,2,2,2]>(x) }",
     .rewrites = false,
     .refused_by = "pool-window"},
    {.name = "max_stride_3_is_refused",
     .model = "(float[1,4,12,13] x) => (float[1,4,4,4] y) "
              "{ y = MaxPool<kernel_shape = [3,3], strides = [3,3]>(x) }",
     .rewrites = false,
     .refused_by = "pool-stride-3"},
    {.name = "max_stride_3_in_parts",
     .model = "(float[1,4,12,13] x) => (float[1,4,4,4] y) "
              "{ y = MaxPool<kernel_shape = [3,3], strides = [3,3]>(x) }",
     .units = {"InputView", "InputView", "Pooling"}},
    {.name = "dilated_is_refused",
     .model = "(float[1,4,12,12] x) => (float[1,4,8,8] y) "
              "{ y = MaxPool<kernel_shape = [3,3], dilations = [2,2]>(x) }",
     .route = "mil",
     .rewrites = false,
     .refused_by = "pool-dilated"},
    {.name = "indices_are_not_lowered",
     .model = "(float[1,4,8,8] x) => (float[1,4,4,4] y, int64[1,4,4,4] i) "
              "{ y, i = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }",
     .refused_by = "form-not-lowered"},
    {.name = "three_dimensional_as_one_unit",
     .model = "(float[1,2,6,6,6] x) => (float[1,2,3,3,3] y) "
              "{ y = MaxPool<kernel_shape = [2,2,2], strides = [2,2,2]>(x) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "sum_of_magnitudes_as_one_unit",
     .model = "(float[1,2,6,6] x) => (float[1,2,3,3] y) "
              "{ y = LpPool<kernel_shape = [2,2], strides = [2,2], p = 1>(x) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
};

INSTANTIATE_TEST_SUITE_P(Pooling, KernelTest, testing::ValuesIn(kForms), CaseName);
INSTANTIATE_TEST_SUITE_P(PoolingInParts, KernelTest, testing::ValuesIn(kInParts), CaseName);

}  // namespace
}  // namespace anemone
