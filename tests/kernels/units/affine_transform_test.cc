// AffineGrid and GridSample as one AffineTransform unit of the texture engine, against ONNX
// Runtime.
#include <cmath>
#include <string>
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

std::string ModelOf(const std::string& mode, const std::string& padding, int of_grid,
                    int of_image) {
  return absl::StrCat(
      "(float[2,3,6,8] x, float[2,2,3] t) => (float[2,3,5,7] y) <int64[4] s = {2,3,5,7}> "
      "{ g = AffineGrid<align_corners = ",
      of_grid, ">(t, s) y = GridSample<mode = \"", mode, "\", padding_mode = \"", padding,
      "\", align_corners = ", of_image, ">(x, g) }");
}

// A rotation by 30 degrees with a shift, and a matrix that enlarges and mirrors.
Tensors Inputs() {
  Tensor x = Tensor::Zeros(DataType::kFloat, {2, 3, 6, 8});
  for (int64_t i = 0; i < x.elements(); ++i) {
    x.mutable_data<float>()[i] = static_cast<float>(i * 37 % 128) / 64 - 1;
  }
  const std::vector<float> matrices = {0.866f, -0.5f, 0.25f, 0.5f, 0.866f, -0.125f,
                                       -1.5f,  0,     0.5f,  0,    2.25f,  0.0625f};
  return {{"x", x}, {"t", Tensor::Floats({2, 2, 3}, matrices)}};
}

TEST(AffineTransform, AgreesWithOnnxRuntime) {
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (int aligned : {0, 1}) {
      const std::string model =
          ModelOfText(ModelOf("linear", padding, aligned, aligned)).SerializeAsString();
      for (const char* numerics : {"fast", "exact"}) {
        SCOPED_TRACE(absl::StrCat(padding, " ", aligned, " ", numerics));
        auto session = Session::LoadBytes(model, {.target = "h14", .numerics = numerics});
        ASSERT_TRUE(session.ok()) << session.status();
        const auto nodes = nlohmann::json::parse(session->PlanJson())["nodes"];
        EXPECT_NE(nodes.dump().find("AffineTransform"), std::string::npos) << nodes.dump(1);
        EXPECT_EQ(nodes.back()["status"], "unknown");
        auto got = session->Run(Inputs());
        ASSERT_TRUE(got.ok()) << got.status();
        auto want = RunOnOnnxRuntime(model, Inputs());
        ASSERT_TRUE(want.ok()) << want.status();
        for (int64_t i = 0; i < want->at("y").elements(); ++i) {
          ASSERT_NEAR(got->at("y").at<float>(i), want->at("y").at<float>(i), 1.5e-2) << i;
        }
      }
    }
  }
}

TEST(AffineTransform, OneMatrixForAllImagesByKeys) {
  const Input images{At(2, 1, 1, 1, 4), {1, 2, 3, 4, 10, 20, 30, 40}};
  const Input mirror{At(1, 1, 6, 1, 1), {-1, 0, 0, 0, 1, 0}};
  Json keys = {{"coordinates_mode", "normalized_minus_one_to_one"}, {"padding_mode", "Zero"}};
  ExpectNear({{"AffineTransform", keys, {images, mirror}},
              At(2, 1, 1, 1, 4),
              {4, 3, 2, 1, 40, 30, 20, 10}});
  keys.erase("coordinates_mode");
  EXPECT_THAT(RunUnit({"AffineTransform", keys, {images, mirror}}).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("can be checked")));
}

const std::vector<Case> kAffineTransformCases = {
    {.name = "nearest",
     .model = ModelOf("nearest", "border", 0, 0),
     .target = "h16",
     .units = {"AffineTransform"},
     .tolerance = 2},  // the element next to the nearest one where the position is halfway
    {.name = "corners_aligned_in_the_grid_only",
     .model = ModelOf("linear", "zeros", 1, 0),
     .target = "h14",
     .units = {"GOC", "MatrixMultiplication", "Resample", "Transpose", "Transpose"},
     .tolerance = 1.5e-2},
    {.name = "without_a_texture_engine",
     .model = ModelOf("linear", "zeros", 0, 0),
     .units = Units({{"ElementWise", 5},
                     {"GOC", 4},
                     {"InputView", 2},
                     {"MatrixMultiplication", 2},
                     {"Neuron", 2},
                     {"Reduction", 1},
                     {"Transpose", 3}}),
     .tolerance = 1.5e-2},
};

INSTANTIATE_TEST_SUITE_P(AffineTransform, KernelTest, testing::ValuesIn(kAffineTransformCases),
                         CaseName);

}  // namespace
}  // namespace anemone
