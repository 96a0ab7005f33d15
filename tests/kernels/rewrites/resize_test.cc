// Resize: every coordinate and rounding mode, with the Resize unit from A14 on, and by the software
// route on earlier targets.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kNative = {
    {.name = "nearest_times_2",  // PP-OCR detection, YOLO
     .model = "(float[1,8,6,7] x) => (float[1,8,12,14] y) <float[4] s = {1.0,1.0,2.0,2.0}> "
              "{ y = Resize<mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", "
              "nearest_mode = \"floor\">(x, , s) }",
     .target = "h16",
     .units = {"Resize"},
     .tolerance = 1e-3},
    {.name = "nearest_with_onnx_defaults",
     .model = "(float[2,3,5,4] x) => (float[2,3,15,8] y) <int64[4] s = {2,3,15,8}> "
              "{ y = Resize(x, , , s) }",
     .target = "h14",
     .units = {"Resize"},
     .tolerance = 1e-3},
    {.name = "nearest_to_a_third",
     .model =
         "(float[1,3,9,12] x) => (float[1,3,3,4] y) <float[4] s = {1,1,0.33333334,0.33333334}> "
         "{ y = Resize<coordinate_transformation_mode = \"asymmetric\", "
         "nearest_mode = \"floor\">(x, , s) }",
     .target = "h16",
     .units = {"Resize"},
     .tolerance = 1e-3},
    {.name = "linear_half_pixel",
     .model = "(float[1,3,6,7] x) => (float[1,3,12,21] y) <int64[4] s = {1,3,12,21}> "
              "{ y = Resize<mode = \"linear\">(x, , , s) }",
     .target = "h16",
     .units = {"Resize"}},
    {.name = "linear_align_corners",
     .model = "(float[2,3,6,7] x) => (float[2,3,11,4] y) <int64[2] s = {11,4}> "
              "{ y = Resize<mode = \"linear\", coordinate_transformation_mode = \"align_corners\", "
              "axes = [2,3]>(x, , , s) }",
     .target = "h16",
     .units = {"Resize"}},
    {.name = "linear_asymmetric",
     .model = "(float[1,3,6,8] x) => (float[1,3,9,4] y) <float[4] s = {1,1,1.5,0.5}> "
              "{ y = Resize<mode = \"linear\", "
              "coordinate_transformation_mode = \"asymmetric\">(x, , s) }",
     .target = "h16",
     .units = {"Resize"}},
    {.name = "linear_pytorch_half_pixel",
     .model = "(float[1,3,6,8] x) => (float[1,3,3,16] y) <int64[4] s = {1,3,3,16}> "
              "{ y = Resize<mode = \"linear\", "
              "coordinate_transformation_mode = \"pytorch_half_pixel\">(x, , , s) }",
     .target = "h16",
     .units = {"Resize"}},
    {.name = "linear_half_pixel_symmetric",
     .model = "(float[1,3,6,8] x) => (float[1,3,3,16] y) <int64[4] s = {1,3,3,16}> "
              "{ y = Resize<mode = \"linear\", "
              "coordinate_transformation_mode = \"half_pixel_symmetric\">(x, , , s) }",
     .target = "h16",
     .units = {"Resize"}},
    {.name = "nothing_to_do",
     .model = "(float[1,3,6,8] x) => (float[1,3,6,8] y) <float[4] s = {1,1,1,1}> "
              "{ z = Relu(x) y = Resize<mode = \"linear\">(z, , s) }",
     .units = {"Neuron"}},
    {.name = "channels_are_refused",
     .model = "(float[1,3,4,4] x) => (float[1,6,4,4] y) <float[4] s = {1,2,1,1}> "
              "{ y = Resize<mode = \"nearest\">(x, , s) }",
     .target = "h16",
     .rewrites = false,
     .refused_by = "resize-axes"},
    {.name = "cubic_as_one_unit",
     .model = "(float[1,3,4,4] x) => (float[1,3,8,8] y) <float[4] s = {1,1,2,2}> "
              "{ y = Resize<mode = \"cubic\">(x, , s) }",
     .target = "h16",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "antialiasing_as_one_unit",
     .model = "(float[1,3,8,8] x) => (float[1,3,4,4] y) <float[4] s = {1,1,0.5,0.5}> "
              "{ y = Resize<mode = \"linear\", antialias = 1>(x, , s) }",
     .target = "h16",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "a_region_as_one_unit",
     .model = "(float[1,3,8,8] x) => (float[1,3,4,4] y) "
              "<float[8] r = {0,0,0.25,0.25,1,1,0.75,0.75}, int64[4] s = {1,3,4,4}> "
              "{ y = Resize<mode = \"linear\", "
              "coordinate_transformation_mode = \"tf_crop_and_resize\">(x, r, , s) }",
     .target = "h16",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
};

const std::vector<Case> kSoftware = {
    {.name = "refused_on_a13_without_rewrites",
     .model = "(float[1,8,6,7] x) => (float[1,8,12,14] y) <float[4] s = {1.0,1.0,2.0,2.0}> "
              "{ y = Resize<coordinate_transformation_mode = \"asymmetric\", "
              "nearest_mode = \"floor\">(x, , s) }",
     .rewrites = false,
     .refused_by = "resize-texture"},
    {.name = "nearest_times_2",
     .model = "(float[1,8,6,7] x) => (float[1,8,12,14] y) <float[4] s = {1.0,1.0,2.0,2.0}> "
              "{ y = Resize<coordinate_transformation_mode = \"asymmetric\", "
              "nearest_mode = \"floor\">(x, , s) }",
     .units = {"Conv"},
     .tolerance = 1e-3},
    {.name = "nearest_times_8_and_2",
     .model = "(float[2,3,4,5] x) => (float[2,3,32,10] y) <float[4] s = {1.0,1.0,8.0,2.0}> "
              "{ y = Resize<coordinate_transformation_mode = \"asymmetric\", "
              "nearest_mode = \"floor\">(x, , s) }",
     .units = {"Conv", "Conv", "Conv"},
     .tolerance = 1e-3},
    {.name = "nearest_times_6_and_3",
     .model = "(float[2,3,4,5] x) => (float[2,3,24,15] y) <float[4] s = {1.0,1.0,6.0,3.0}> "
              "{ y = Resize(x, , s) }",
     .units = {"Broadcast", "Broadcast", "Conv"},
     .tolerance = 1e-3},
    {.name = "nearest_of_a_line",
     .model = "(float[2,3,5] x) => (float[2,3,10] y) <float[3] s = {1.0,1.0,2.0}> "
              "{ y = Resize<coordinate_transformation_mode = \"asymmetric\", "
              "nearest_mode = \"floor\">(x, , s) }",
     .units = {"Conv"},
     .tolerance = 1e-3},
    {.name = "nearest_to_other_sizes",
     .model = "(float[1,3,7,6] x) => (float[1,3,4,9] y) <int64[4] s = {1,3,4,9}> "
              "{ y = Resize<nearest_mode = \"ceil\">(x, , , s) }",
     .units = {"Conv", "Conv", "Transpose", "Transpose", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "linear_half_pixel",
     .model = "(float[2,3,6,7] x) => (float[2,3,12,14] y) <float[4] s = {1.0,1.0,2.0,2.0}> "
              "{ y = Resize<mode = \"linear\">(x, , s) }",
     .units = {"Conv", "Conv", "Transpose", "Transpose", "Transpose", "Transpose"}},
    {.name = "linear_align_corners",
     .model = "(float[1,3,6,7] x) => (float[1,3,6,13] y) <int64[4] s = {1,3,6,13}> "
              "{ y = Resize<mode = \"linear\", "
              "coordinate_transformation_mode = \"align_corners\">(x, , , s) }",
     .units = {"Conv", "Transpose", "Transpose"}},
    // The sampler's rounding on other grids is not published, so from A14 too this is a product.
    {.name = "nearest_on_aligned_corners_from_a14",
     .model = "(float[1,3,5,5] x) => (float[1,3,8,8] y) <int64[4] s = {1,3,8,8}> "
              "{ y = Resize<coordinate_transformation_mode = \"align_corners\">(x, , , s) }",
     .target = "h16",
     .units = {"Conv", "Conv", "Transpose", "Transpose", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "nothing",
     .model = "(float[1,3,4,8] x) => (float[1,3,0,16] y) <int64[1] z = {0}, int64[1] at = {2}, "
              "float[1] f = {2.0}> { n = Slice(x, z, z, at) y = Resize<axes = [3]>(n, , f) }",
     .refused_by = "empty-tensor"},
    {.name = "keeping_the_aspect",
     .model = "(float[1,3,4,8] x) => (float[1,3,3,6] y) <int64[2] s = {3,9}> "
              "{ y = Resize<mode = \"linear\", axes = [2,3], "
              "keep_aspect_ratio_policy = \"not_larger\">(x, , , s) }",
     .target = "h16",
     .units = {"Resize"}},
};

INSTANTIATE_TEST_SUITE_P(Resize, KernelTest, testing::ValuesIn(kNative), CaseName);
INSTANTIATE_TEST_SUITE_P(ResizeInSoftware, KernelTest, testing::ValuesIn(kSoftware), CaseName);

}  // namespace
}  // namespace anemone
