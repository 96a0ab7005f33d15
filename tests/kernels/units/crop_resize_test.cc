// RoiAlign as a CropResize unit of the texture engine, against ONNX Runtime; and the unit by its
// keys.
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "engine/formats/json.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/hidden/authored.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

constexpr int kHeight = 9, kCropWidth = 8, kBoxes = 6;

std::string ModelOf(int bins_h, int bins_w, int samples, bool half_pixel) {
  return ModelOfText(absl::StrCat("(float[1,3,9,8] x, float[6,4] b) => (float[6,3,", bins_h, ",",
                                  bins_w, "] y) <int64[6] i = {0,0,0,0,0,0}> { y = RoiAlign<",
                                  "output_height = ", bins_h, ", output_width = ", bins_w,
                                  ", sampling_ratio = ", samples, ", spatial_scale = 0.5, ",
                                  "coordinate_transformation_mode = \"",
                                  half_pixel ? "half_pixel" : "output_half_pixel",
                                  "\">(x, b, i) }"))
      .SerializeAsString();
}

// Boxes inside, across each border, far outside, of no size, and of a corner that is past the
// other.
Tensors InputsOf(int seed) {
  std::mt19937 random(seed);
  Tensor x = Tensor::Zeros(DataType::kFloat, {1, 3, kHeight, kCropWidth});
  for (int64_t i = 0; i < x.elements(); ++i) {
    x.mutable_data<float>()[i] = static_cast<float>(static_cast<int>(random() % 513) - 256) / 128;
  }
  const std::vector<float> boxes = {2,  1,  11, 13, -6, -5, 9, 8, 10, 12, 25, 24,
                                    40, 40, 50, 50, 5,  6,  5, 6, 12, 12, 3,  2};
  return {{"x", x}, {"b", Tensor::Floats({kBoxes, 4}, boxes)}};
}

TEST(CropResize, RoiAlignAgreesWithOnnxRuntime) {
  for (bool half_pixel : {true, false}) {
    for (const auto& [bins_h, bins_w, samples] :
         {std::tuple(2, 3, 2), std::tuple(1, 1, 3), std::tuple(4, 1, 1), std::tuple(7, 7, 2)}) {
      const std::string model = ModelOf(bins_h, bins_w, samples, half_pixel);
      for (const char* numerics : {"fast", "exact"}) {
        SCOPED_TRACE(absl::StrCat(half_pixel, " ", bins_h, "x", bins_w, " ", samples, numerics));
        const Tensors inputs = InputsOf(bins_h);
        auto session = Session::LoadBytes(model, {.target = "h14", .numerics = numerics});
        ASSERT_TRUE(session.ok()) << session.status();
        const auto node = nlohmann::json::parse(session->PlanJson())["nodes"][0];
        EXPECT_NE(node["units"].dump().find("CropResize"), std::string::npos) << node.dump(1);
        EXPECT_EQ(node["status"], "unknown");
        auto got = session->Run(inputs);
        ASSERT_TRUE(got.ok()) << got.status();
        auto want = RunOnOnnxRuntime(model, inputs);
        ASSERT_TRUE(want.ok()) << want.status();
        for (int64_t i = 0; i < want->at("y").elements(); ++i) {
          ASSERT_NEAR(got->at("y").at<float>(i), want->at("y").at<float>(i), 1e-2) << i;
        }
      }
    }
  }
}

Json Keys() {
  Json keys = {{"OutputWidth", 2}, {"OutputHeight", 1}};
  for (const char* axis : {"Width", "Height"}) {
    keys["CoordinateInfo"].push_back({{"Coordinate", axis}, {"CoordinateMode", "NonNormalized"}});
    keys["SamplingMethodInfo"].push_back({{"Coordinate", axis}, {"SamplingMethod", "Linear"}});
    keys["PaddingInfo"].push_back({{"Coordinate", axis}, {"PaddingMode", "Replication"}});
    keys["SamplingGridInfo"].push_back(
        {{"Coordinate", axis}, {"SamplingGridMode", "UnalignedCorners"}});
  }
  return keys;
}

TEST(CropResize, OneBoxOfEachImage) {
  const Input images{At(2, 1, 1, 1, 4), {1, 2, 3, 4, 10, 20, 30, 40}};
  const Input boxes{At(2, 1, 4, 1, 1), {0, 0, 4, 1, 1, 0, 2, 1}};
  ExpectNear({{"CropResize", Keys(), {images, boxes}}, At(2, 1, 1, 1, 2), {1.5, 3.5, 17.5, 22.5}});
}

TEST(CropResize, CornersThatAreNotFinite) {
  const Input image{At(1, 1, 1, 1, 4), {1, 2, 3, 4}};
  const Input boxes{At(2, 1, 4, 1, 1), {INFINITY, 0, INFINITY, 1, 0, 0, INFINITY, 1}};
  auto got = RunUnit({"CropResize", Keys(), {image, boxes}});
  ASSERT_TRUE(got.ok()) << got.status();
  for (math::Half value : got->values) EXPECT_TRUE(std::isfinite(math::ToDouble(value)));
}

TEST(CropResize, FormsThatAreOnlyChecked) {
  const Input image{At(1, 1, 1, 1, 4), {1, 2, 3, 4}}, box{At(1, 1, 4, 1, 1), {0, 0, 1, 1}};
  const auto refused = [&](const char* key, const Json& value) {
    Json keys = Keys();
    keys[key] = value;
    EXPECT_THAT(RunUnit({"CropResize", keys, {image, box}}).status(),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("can be checked")));
  };
  refused("CoordinateMode", "Corners");
  refused("SamplingGridInfo", Json::array());
  refused("CoordinateInfo", Json::array());
}

const std::vector<Case> kCropResizeCases = {
    {.name = "boxes_known_to_be_inside",
     .model = "(float[1,3,9,9] x, float[4,4] b) => (float[4,3,2,3] y) <int64[4] i = {0,0,0,0}> "
              "{ s = Sigmoid(b) y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = "
              "2, spatial_scale = 9.0>(x, s, i) }",
     .target = "h14",
     .units = {"CropResize", "GOC", "Neuron", "Pooling"},
     .tolerance = 1e-2},
    {.name = "boxes",
     .model = "(float[1,3,9,8] x, float[4,4] b) => (float[4,3,2,3] y) <int64[4] i = {0,0,0,0}> "
              "{ y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = 2, "
              "spatial_scale = 0.5>(x, b, i) }",
     .target = "h16",
     .units = Units(
         {{"CropResize", 1}, {"ElementWise", 14}, {"GOC", 1}, {"InputView", 4}, {"Pooling", 1}}),
     .low = 0,
     .high = 16},
    {.name = "the_maximum",
     .model = "(float[1,3,9,8] x, float[4,4] b) => (float[4,3,2,3] y) <int64[4] i = {0,0,0,0}> "
              "{ y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = 2, "
              "mode = \"max\">(x, b, i) }",
     .target = "h16",
     .refused_by = "form-not-lowered"},
};

INSTANTIATE_TEST_SUITE_P(CropResize, KernelTest, testing::ValuesIn(kCropResizeCases), CaseName);

}  // namespace
}  // namespace anemone
