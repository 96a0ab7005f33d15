// ArgMax and ArgMin over every axis, operators that read their integers, and windows of the unit
// itself. Cases with a seed have it because the harness's default seed gives two largest elements
// that are equal in fp16.
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/substitute.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/hidden/authored.h"

namespace anemone {
namespace {

const std::vector<Case> kArgMinMaxCases = {
    {.name = "channels",
     .model = "(float[2,21,9,13] x) => (int64[2,1,9,13] y) { y = ArgMax<axis = 1>(x) }",
     .units = {"ArgMinMax"}},
    {.name = "channels_dropped",
     .model = "(float[1,21,9,13] x) => (int64[1,9,13] y) "
              "{ y = ArgMax<axis = 1, keepdims = 0>(x) }",
     .target = "h14",
     .units = {"ArgMinMax"}},
    {.name = "smallest_channel",
     .model = "(float[2,21,9,13] x) => (int64[2,1,9,13] y) { y = ArgMin<axis = 1>(x) }",
     .target = "h16",
     .units = {"ArgMinMax"}},
    {.name = "classes",
     .model = "(float[5,100] x) => (int64[5] y) { y = ArgMax<axis = -1, keepdims = 0>(x) }",
     .units = {"ArgMinMax"}},
    {.name = "a_vocabulary_per_position",
     .model = "(float[1,7,100] x) => (int64[1,7] y) { y = ArgMax<axis = -1, keepdims = 0>(x) }",
     .target = "h16",
     .units = {"ArgMinMax"}},
    {.name = "width",
     .model = "(float[2,3,5,30] x) => (int64[2,3,5,1] y) { y = ArgMin<axis = 3>(x) }",
     .target = "h14",
     .units = {"ArgMinMax"}},
    {.name = "width_of_more_rows_than_channels",  // zeros and ones: rounding to fp16 adds no ties
     .model = "(bool[1,300,300,4] x) => (int64[1,300,300,1] y) "
              "{ f = Cast<to = 1>(x) y = ArgMax<axis = 3>(f) }",
     .units = {"Transpose", "ArgMinMax", "Transpose"}},
    {.name = "height",
     .model = "(float[2,3,30,5] x) => (int64[2,3,5] y) { y = ArgMax<axis = 2, keepdims = 0>(x) }",
     .units = {"Transpose", "ArgMinMax"}},
    {.name = "batch",
     .model = "(float[9,3,4,5] x) => (int64[1,3,4,5] y) { y = ArgMax<axis = 0>(x) }",
     .units = {"Transpose", "ArgMinMax"}},
    {.name = "a_batch_that_cannot_move",
     .model = "(float[9,3,4,2,5] x) => (int64[1,3,4,2,5] y) { y = ArgMax<axis = 0>(x) }",
     .units = {"GlobalArgMinMax"}},
    {.name = "smallest_of_a_batch_that_cannot_move",
     .model =
         "(float[9,3,4,2,5] x) => (int64[3,4,2,5] y) { y = ArgMin<axis = 0, keepdims = 0>(x) }",
     .target = "h16",
     .units = {"GlobalArgMinMax", "Transpose"}},
    {.name = "rank_1_to_a_number",
     .model = "(float[50] x) => (int64 y) { y = ArgMax<keepdims = 0>(x) }",
     .units = {"ArgMinMax"}},
    {.name = "rank_5_depth",
     .model = "(float[2,3,10,4,5] x) => (int64[2,3,1,4,5] y) { y = ArgMax<axis = 2>(x) }",
     .units = {"Transpose", "ArgMinMax"}},
    {.name = "one_element",
     .model = "(float[2,1,4] x) => (int64[2,1,4] y) { y = ArgMax<axis = 1>(x) }",
     .units = {"ArgMinMax"}},
    {.name = "of_equals_the_first",
     .model = "(float[1,20,6,7] x) => (int64[1,1,6,7] y) { f = Floor(x) y = ArgMax<axis = 1>(f) }",
     .units = {"Neuron", "ArgMinMax"},
     .low = -3,
     .high = 3},
    {.name = "of_equals_the_last",
     .model = "(float[1,20,6,7] x) => (int64[1,1,6,7] y) "
              "{ f = Floor(x) y = ArgMax<axis = 1, select_last_index = 1>(f) }",
     .units = {"Neuron", "InputView", "ArgMinMax", "GOC"},
     .low = -3,
     .high = 3},
    {.name = "of_equal_smallest_the_last",
     .model = "(float[6,40] x) => (int64[6] y) "
              "{ f = Floor(x) y = ArgMin<axis = 1, keepdims = 0, select_last_index = 1>(f) }",
     .target = "h16",
     .units = {"Neuron", "InputView", "ArgMinMax", "GOC"},
     .low = -3,
     .high = 3},
    {.name = "the_last_is_a_rewrite",
     .model = "(float[6,40] x) => (int64[6,1] y) "
              "{ y = ArgMax<axis = 1, select_last_index = 1>(x) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "the_most_indices",
     .model = "(float[1,2048,1,2] x) => (int64[1,1,1,2] y) { y = ArgMax<axis = 1>(x) }",
     .units = {"ArgMinMax"},
     .tolerance = 1e-6},
    {.name = "too_many_channels",
     .model = "(float[1,2049,1,2] x) => (int64[1,1,1,2] y) { y = ArgMax<axis = 1>(x) }",
     .refused_by = "arg-min-max-channels"},
    {.name = "too_wide",
     .model = "(float[1,2049] x) => (int64[1,1] y) { y = ArgMax<axis = 1>(x) }",
     .target = "h16",
     .refused_by = "arg-min-max-plane"},
    {.name = "before_a13",
     .model = "(float[1,8,4,4] x) => (int64[1,1,4,4] y) { y = ArgMax<axis = 1>(x) }",
     .target = "h12",
     .refused_by = "unit-family"},
    {.name = "converted",
     .model = "(float[4,64] x) => (int64[4,1] y) { y = ArgMax<axis = 1>(x) }",
     .route = "mil",
     .units = {"ArgMinMax"}},
    {.name = "smallest_converted_from_a15",
     .model = "(float[4,64] x) => (int64[4,1] y) { y = ArgMin<axis = 1>(x) }",
     .target = "h14",
     .route = "mil",
     .refused_by = "operation-family"},
    {.name = "read_by_the_cpu_and_the_caller",
     .model = "(float[4,64] x) => (int64[4] y, int64[4] m, float[4] r) <int64 n = {3}> "
              "{ y = ArgMax<axis = 1, keepdims = 0>(x) m = Mod(y, n) f = Cast<to = 1>(m) "
              "r = Relu(f) }",
     .refused_by = "integer-form"},
    {.name = "read_by_a_gather_and_the_caller",
     .model = "(float[4,64] x, float[64,3] table) => (int64[4] y, float[4,3] rows, float[4,3] r) "
              "{ y = ArgMax<axis = 1, keepdims = 0>(x) rows = Gather(table, y) r = Relu(rows) }",
     .units = {"ArgMinMax", "Concat", "Gather", "Neuron", "Transpose", "Transpose"}},
    {.name = "cast_to_int32",
     .model = "(float[1,19,6,7] x) => (int32[1,1,6,7] y) "
              "{ i = ArgMax<axis = 1>(x) y = Cast<to = 6>(i) }",
     .units = {"ArgMinMax"},
     .tolerance = 0,
     .seed = 2},
    {.name = "integers",
     .model = "(int32[4,64] x) => (int64[4,1] y) { y = ArgMax<axis = 1>(x) }",
     .refused_by = "port-format"},
};

INSTANTIATE_TEST_SUITE_P(ArgMinMax, KernelTest, testing::ValuesIn(kArgMinMaxCases), CaseName);

struct WindowCase {
  std::string name;
  int64_t c, h, w;
  int64_t kernel_h, kernel_w, pad_h = 0, pad_w = 0, step_h = 1, step_w = 1;
};

class ArgWindowTest : public testing::TestWithParam<WindowCase> {};

// The position in the window, including padding, of the first of the largest (or smallest)
// elements.
float PlaceAt(const WindowCase& c, const Tensor& x, int64_t channel, int64_t top, int64_t left,
              bool largest) {
  float best = 0;
  int64_t found = -1;
  for (int64_t i = 0; i < c.kernel_h; ++i) {
    for (int64_t j = 0; j < c.kernel_w; ++j) {
      const int64_t h = top + i, w = left + j;
      if (h < 0 || w < 0 || h >= c.h || w >= c.w) continue;
      const float value = x.at<float>((channel * c.h + h) * c.w + w) * (largest ? 1 : -1);
      if (found >= 0 && value <= best) continue;
      best = value;
      found = i * c.kernel_w + j;
    }
  }
  return static_cast<float>(found);
}

TEST_P(ArgWindowTest, IsThePlaceInTheWindow) {
  const WindowCase& c = GetParam();
  Tensor x = Tensor::Zeros(DataType::kFloat, {1, c.c, c.h, c.w});
  std::mt19937 random(3);
  for (int64_t i = 0; i < x.elements(); ++i) {
    // Few different values. Padding must not win against infinities.
    x.mutable_data<float>()[i] =
        random() % 5 == 0 ? (random() % 2 ? 1 : -1) * INFINITY : static_cast<float>(random() % 4);
  }
  const int64_t out_h = (c.h + 2 * c.pad_h - c.kernel_h) / c.step_h + 1;
  const int64_t out_w = (c.w + 2 * c.pad_w - c.kernel_w) / c.step_w + 1;
  for (bool largest : {true, false}) {
    const std::string keys = absl::Substitute(
        R"({"Mode": "SpatialArg$0", "KernelHeight": $1, "KernelWidth": $2, "PadTop": $3,
            "PadBot": $3, "PadLeft": $4, "PadRight": $4, "Step": [$5, $6]})",
        largest ? "Max" : "Min", c.kernel_h, c.kernel_w, c.pad_h, c.pad_w, c.step_w, c.step_h);
    auto y = RunUnit({"ArgMinMax", Json::parse(keys), {InputOf(x)}, {}, "h13"});
    ASSERT_TRUE(y.ok()) << y.status();
    ASSERT_EQ(y->dims, MakeDims(1, c.c, out_h, out_w));
    for (int64_t i = 0; i < y->dims.elements(); ++i) {
      const int64_t top = i / out_w % out_h * c.step_h - c.pad_h;
      const int64_t left = i % out_w * c.step_w - c.pad_w;
      ASSERT_EQ(math::ToFloat(y->values[i]), PlaceAt(c, x, i / out_w / out_h, top, left, largest))
          << i;
    }
  }
}

const WindowCase kWindows[] = {
    {.name = "whole_plane", .c = 5, .h = 6, .w = 7, .kernel_h = 6, .kernel_w = 7},
    {.name = "two_by_two",
     .c = 3,
     .h = 8,
     .w = 8,
     .kernel_h = 2,
     .kernel_w = 2,
     .step_h = 2,
     .step_w = 2},
    {.name = "overlapping", .c = 3, .h = 9, .w = 7, .kernel_h = 3, .kernel_w = 2},
    {.name = "padded",
     .c = 2,
     .h = 9,
     .w = 10,
     .kernel_h = 3,
     .kernel_w = 5,
     .pad_h = 1,
     .pad_w = 4,
     .step_h = 2,
     .step_w = 1},
    {.name = "steps_of_four",
     .c = 2,
     .h = 20,
     .w = 17,
     .kernel_h = 2,
     .kernel_w = 3,
     .pad_w = 1,
     .step_h = 4,
     .step_w = 4},
    {.name = "larger_than_the_plane",
     .c = 2,
     .h = 3,
     .w = 2,
     .kernel_h = 5,
     .kernel_w = 4,
     .pad_h = 1,
     .pad_w = 1},
};

INSTANTIATE_TEST_SUITE_P(ArgMinMax, ArgWindowTest, testing::ValuesIn(kWindows),
                         [](const auto& info) { return info.param.name; });

// NaN becomes +infinity, -0 equals 0, and among equal elements the first wins.
TEST(ArgMinMaxValues, SpecialNumbers) {
  Tensor x = Tensor::Zeros(DataType::kFloat, {1, 4, 1, 3});
  const float columns[3][4] = {
      {1, NAN, 65504, INFINITY}, {-0.0f, 0, -0.0f, 0}, {-INFINITY, -1, 0, 1}};
  for (int i = 0; i < 12; ++i) x.mutable_data<float>()[i] = columns[i % 3][i / 3];
  const std::pair<const char*, std::vector<float>> wanted[] = {
      {R"({"Mode": "ChannelArgMax"})", {1, 0, 3}}, {R"({"Mode": "ChannelArgMin"})", {0, 0, 0}}};
  for (const auto& [keys, want] : wanted) {
    auto y = RunUnit({"ArgMinMax", Json::parse(keys), {InputOf(x)}, {}, "h13"});
    ASSERT_TRUE(y.ok()) << y.status();
    ASSERT_EQ(y->dims, MakeDims(1, 1, 1, 3));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(math::ToFloat(y->values[i]), want[i]) << keys << i;
  }
}

TEST(ArgMinMaxValues, GlobalAlongEveryAxis) {
  Tensor x = Tensor::Zeros(DataType::kFloat, {3, 4, 5, 6});
  for (int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data<float>()[i] = static_cast<float>(i * 7 % 360);
  const char* axes[] = {"Batch", "Channel", "Height", "Width"};
  int64_t inner = x.elements();
  for (int axis = 0; axis < 4; ++axis) {
    std::vector<int64_t> shape = x.dims();
    const int64_t extent = shape[axis];
    inner /= extent;
    shape[axis] = 1;
    auto y = RunUnit(
        {"GlobalArgMinMax", {{"Type", "Min"}, {"Dimension", axes[axis]}}, {InputOf(x)}, {}, "h13"});
    ASSERT_TRUE(y.ok()) << y.status();
    ASSERT_EQ(y->dims, PlaceShape(shape));
    for (int64_t i = 0; i < y->dims.elements(); ++i) {
      const int64_t at = i / inner * extent * inner + i % inner;
      int64_t best = 0;
      for (int64_t k = 1; k < extent; ++k) {
        if (x.at<float>(at + k * inner) < x.at<float>(at + best * inner)) best = k;
      }
      ASSERT_EQ(math::ToFloat(y->values[i]), static_cast<float>(best)) << axes[axis] << " " << i;
    }
  }
}

}  // namespace
}  // namespace anemone
