// Sampling by matrix products: GridSample, RoiAlign, AffineGrid, Resize by weights, Col2Im; and
// other operators that become several units: DFT, STFT, Det, CenterCropPad.
#include "tests/kernels/on_targets.h"

namespace anemone {
namespace {

// On h13: the texture engine of later targets samples in one unit (resample_test.cc,
// crop_resize_test.cc).
const std::vector<Case> kGrids = {
    {.name = "grid_of_zeros_around",
     .model = "(float[2,3,7,9] x, float[2,4,5,2] g) => (float[2,3,4,5] y) "
              "{ y = GridSample<mode = \"linear\">(x, g) }",
     .units = Units({{"ElementWise", 5},
                     {"GOC", 4},
                     {"InputView", 2},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 2},
                     {"Reduction", 1},
                     {"Transpose", 2}}),
     .low = -1.4,
     .high = 1.4},
    {.name = "grid_aligned_to_the_border",
     .model = "(float[1,3,7,9] x, float[1,4,5,2] g) => (float[1,3,4,5] y) { y = GridSample<"
              "mode = \"linear\", padding_mode = \"border\", align_corners = 1>(x, g) }",
     .units = Units({{"ElementWise", 5},
                     {"GOC", 4},
                     {"InputView", 2},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 4},
                     {"Reduction", 1},
                     {"Transpose", 2}}),
     .low = -1.4,
     .high = 1.4},
    {.name = "grid_reflected",
     .model = "(float[1,2,6,6] x, float[1,4,5,2] g) => (float[1,2,4,5] y) "
              "{ y = GridSample<mode = \"linear\", padding_mode = \"reflection\">(x, g) }",
     .units = Units({{"ElementWise", 11},
                     {"GOC", 14},
                     {"InputView", 2},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 6},
                     {"Reduction", 1},
                     {"Transpose", 2}}),
     .tolerance = 1.5e-2,  // places are rounded as far out as they are
     .low = -2.7,
     .high = 2.7},
    {.name = "grid_reflected_aligned_of_one_row",
     .model = "(float[1,2,1,6] x, float[1,4,5,2] g) => (float[1,2,4,5] y) { y = GridSample<"
              "mode = \"linear\", padding_mode = \"reflection\", align_corners = 1>(x, g) }",
     .units = Units({{"ElementWise", 8},
                     {"GOC", 9},
                     {"InputView", 2},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 5},
                     {"Transpose", 1}}),
     .tolerance = 1.5e-2,  // places are rounded as far out as they are
     .low = -2.7,
     .high = 2.7},
    {.name = "boxes",  // within 0..8
     .model = "(float[1,3,9,8] x, float[4,4] b) => (float[4,3,2,3] y) <int64[4] i = {0,0,0,0}> "
              "{ y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = 2, "
              "spatial_scale = 0.5>(x, b, i) }",
     .units = Units({{"ElementWise", 18},
                     {"GOC", 6},
                     {"InputView", 4},
                     {"MatrixMultiplication", 2},
                     {"Neuron", 4},
                     {"Reduction", 2},
                     {"Transpose", 3}}),
     .low = 0,
     .high = 16},
    {.name = "boxes_of_whole_pixels",
     .model = "(float[1,3,9,8] x, float[4,4] b) => (float[4,3,2,2] y) <int64[4] i = {0,0,0,0}> "
              "{ y = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 3, "
              "coordinate_transformation_mode = \"output_half_pixel\">(x, b, i) }",
     .units = Units({{"ElementWise", 20},
                     {"GOC", 2},
                     {"InputView", 4},
                     {"MatrixMultiplication", 2},
                     {"Neuron", 4},
                     {"Reduction", 2},
                     {"Transpose", 3}}),
     .low = 0,
     .high = 7},
};

const std::vector<Case> kSampled = {
    {.name = "affine_grid",
     .model = "(float[2,2,3] t) => (float[2,5,6,2] y) <int64[4] s = {2,1,5,6}> "
              "{ y = AffineGrid(t, s) }",
     .units = Units({{"MatrixMultiplication", 1}, {"Transpose", 1}})},
    {.name = "affine_grid_of_volumes_aligned",
     .model = "(float[2,3,4] t) => (float[2,3,5,2,3] y) <int64[5] s = {2,1,3,5,2}> "
              "{ y = AffineGrid<align_corners = 1>(t, s) }",
     .units = Units({{"MatrixMultiplication", 1}, {"Transpose", 2}})},
};

const std::vector<Case> kResizes = {
    {.name = "cubic_enlarged",
     .model = "(float[1,3,5,7] x) => (float[1,3,10,9] y) <int64[4] s = {1,3,10,9}> "
              "{ y = Resize<mode = \"cubic\">(x, , , s) }",
     .units = Units({{"Conv", 2}, {"Transpose", 4}})},
    {.name = "cubic_shrunk_without_the_outside",
     .model = "(float[1,3,12,14] x) => (float[1,3,5,7] y) <int64[4] s = {1,3,5,7}> { y = Resize<"
              "mode = \"cubic\", cubic_coeff_a = -0.5, exclude_outside = 1>(x, , , s) }",
     .units = Units({{"Conv", 2}, {"Transpose", 4}})},
    {.name = "linear_antialiased",
     .model = "(float[1,3,12,14] x) => (float[1,3,5,7] y) <int64[4] s = {1,3,5,7}> "
              "{ y = Resize<mode = \"linear\", antialias = 1>(x, , , s) }",
     .units = Units({{"Conv", 2}, {"Transpose", 4}})},
    {.name = "cubic_antialiased",
     .model = "(float[1,3,12,14] x) => (float[1,3,5,7] y) <int64[4] s = {1,3,5,7}> "
              "{ y = Resize<mode = \"cubic\", antialias = 1>(x, , , s) }",
     .units = Units({{"Conv", 2}, {"Transpose", 4}})},
    {.name = "region_that_reaches_outside",
     .model = "(float[1,2,6,6] x) => (float[1,2,4,4] y) <int64[4] s = {1,2,4,4}, "
              "float[8] r = {0,0,0.2,-0.5, 1,1,0.9,1.25}> { y = Resize<mode = \"linear\", "
              "extrapolation_value = 3.5, coordinate_transformation_mode = "
              "\"tf_crop_and_resize\">(x, r, , s) }",
     .units = Units({{"Conv", 2}, {"ElementWise", 1}, {"Transpose", 4}})},
    {.name = "linear_of_channels",
     .model = "(float[1,4,3,5] x) => (float[1,6,3,5] y) <int64[4] s = {1,6,3,5}> "
              "{ y = Resize<mode = \"linear\">(x, , , s) }",
     .units = Units({{"Conv", 1}})},
};

const std::vector<Case> kWritten = {
    {.name = "fourier_of_real",
     .model = "(float[2,12,1] x) => (float[2,7,2] y) { y = DFT<onesided = 1>(x) }",
     .opset = 20,
     .units = Units({{"Conv", 1}})},
    {.name = "fourier_of_complex_inverse",
     .model = "(float[2,9,3,2] x) => (float[2,9,3,2] y) <int64 a = {1}> "
              "{ y = DFT<inverse = 1>(x, , a) }",
     .opset = 20,
     .units = Units({{"Conv", 1}, {"Transpose", 2}})},
    {.name = "fourier_padded",
     .model = "(float[2,9,2] x) => (float[2,16,2] y) <int64 n = {16}> { y = DFT(x, n) }",
     .opset = 20,
     .units = Units({{"Conv", 1}})},
    {.name = "fourier_cut",
     .model = "(float[2,9,1] x) => (float[2,6,2] y) <int64 n = {6}> { y = DFT(x, n) }",
     .opset = 20,
     .units = Units({{"Conv", 1}, {"InputView", 1}})},
    {.name = "frames",
     .model = "(float[2,200,1] x) => (float[2,18,16,2] y) <int64 s = {10}, float[30] w> "
              "{ y = STFT(x, s, w) }",
     .units = Units({{"Conv", 1}, {"Transpose", 2}})},
    {.name = "frames_of_complex_without_a_window",
     .model = "(float[1,64,2] x) => (float[1,7,16,2] y) <int64 s = {8}, int64 n = {16}> "
              "{ y = STFT<onesided = 0>(x, s, , n) }",
     .units = Units({{"Conv", 1}, {"Transpose", 2}})},
    {.name = "col2im",
     .model = "(float[2,18,25] x) => (float[2,3,9,6] y) <int64[2] i = {9,6}, int64[2] b = {2,3}> "
              "{ y = Col2Im<strides = [2,1], pads = [0,1,1,0]>(x, i, b) }",
     .units = Units({{"Conv", 2}, {"Transpose", 3}})},
    {.name = "col2im_of_a_row",
     .model = "(float[2,6,4] x) => (float[2,2,1,9] y) <int64[2] i = {1,9}, int64[2] b = {1,3}> "
              "{ y = Col2Im<dilations = [1,2], strides = [1,2], pads = [0,1,0,1]>(x, i, b) }",
     .units = Units({{"Conv", 2}})},
    {.name = "determinants",
     .model = "(float[2,5,3,3] x) => (float[2,5] y) { y = Det(x) }",
     .units = Units({{"ElementWise", 14}, {"InputView", 15}})},
    {.name = "determinant_of_two",
     .model = "(float[2,2] x) => (float y) { y = Det(x) }",
     .units = Units({{"ElementWise", 3}, {"InputView", 4}})},
    {.name = "center_cropped_and_padded",
     .model = "(float[2,8,5,7] x) => (float[2,3,8,6] y) <int64[3] s = {3,8,6}> "
              "{ y = CenterCropPad<axes = [1,2,3]>(x, s) }",
     .units = Units({{"Concat", 1}, {"InputView", 2}}),
     .tolerance = 5e-4},
};

INSTANTIATE_TEST_SUITE_P(Grids, KernelTest, testing::ValuesIn(kGrids), CaseName);
INSTANTIATE_TEST_SUITE_P(Sampled, KernelTest, testing::ValuesIn(OnBoth(kSampled)), CaseName);
INSTANTIATE_TEST_SUITE_P(Resizes, KernelTest, testing::ValuesIn(OnBoth(kResizes)), CaseName);
INSTANTIATE_TEST_SUITE_P(Written, KernelTest, testing::ValuesIn(OnBoth(kWritten)), CaseName);

}  // namespace
}  // namespace anemone
