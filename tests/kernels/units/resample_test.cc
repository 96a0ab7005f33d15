// GridSample as a Resample unit of the texture engine: all modes, padding modes and alignments
// against ONNX Runtime, positions at and beyond the border, positions that are not numbers, and the
// forms of the unit that no lowering writes.
#include <cmath>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/hidden/authored.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 2, kChannels = 3, kHeight = 6, kWidth = 8, kPoints = 40;

struct Form {
  std::string mode, padding;
  int aligned;
};

std::string ModelOf(const Form& form) {
  onnx::ModelProto model =
      ModelOfText(absl::StrCat("(float[2,3,6,8] x, float[2,40,1,2] g) => (float[2,3,40,1] y) "
                               "{ y = GridSample<mode = \"",
                               form.mode, "\", padding_mode = \"", form.padding,
                               "\", align_corners = ", form.aligned, ">(x, g) }"));
  return model.SerializeAsString();
}

// Coordinates that are exact in fp16, as are their positions in pixels. The first ones are borders,
// places halfway between elements, and places outside.
Tensors InputsOf(int seed) {
  std::mt19937 random(seed);
  const float edges[] = {-1, 1, 0, -1.25f, 1.25f, 2, -2, 3, -3, 0.125f, 0.375f, -0.875f};
  Tensor x = Tensor::Zeros(DataType::kFloat, {kBatch, kChannels, kHeight, kWidth});
  Tensor g = Tensor::Zeros(DataType::kFloat, {kBatch, kPoints, 1, 2});
  for (int64_t i = 0; i < x.elements(); ++i) {
    x.mutable_data<float>()[i] = static_cast<float>(static_cast<int>(random() % 2049) - 1024) / 512;
  }
  for (int64_t i = 0; i < g.elements(); ++i) {
    g.mutable_data<float>()[i] = i % 3 == 0 ? edges[random() % std::size(edges)]
                                            : static_cast<float>(random() % 193) / 64 - 1.5f;
  }
  return {{"x", x}, {"g", g}};
}

std::vector<Form> Forms() {
  std::vector<Form> forms;
  for (const char* mode : {"linear", "nearest"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (int aligned : {0, 1}) forms.push_back({mode, padding, aligned});
    }
  }
  return forms;
}

absl::StatusOr<Tensor> RunOn(const std::string& model, const std::string& numerics,
                             const Tensors& inputs) {
  ANEMONE_ASSIGN_OR_RETURN(Session session,
                           Session::LoadBytes(model, {.target = "h14", .numerics = numerics}));
  ANEMONE_ASSIGN_OR_RETURN(Tensors outputs, session.Run(inputs));
  return outputs.at("y");
}

TEST(Resample, AgreesWithOnnxRuntimeInEveryForm) {
  for (const Form& form : Forms()) {
    const std::string model = ModelOf(form);
    for (const char* numerics : {"fast", "exact"}) {
      SCOPED_TRACE(absl::StrCat(form.mode, " ", form.padding, " ", form.aligned, " ", numerics));
      const Tensors inputs = InputsOf(form.aligned + 1);
      auto got = RunOn(model, numerics, inputs);
      ASSERT_TRUE(got.ok()) << got.status();
      auto want = RunOnOnnxRuntime(model, inputs);
      ASSERT_TRUE(want.ok()) << want.status();
      // A nearest element is copied. Aligned positions are multiples of half an odd number.
      const double tolerance = form.mode == "nearest" ? 0 : 2e-3;
      for (int64_t i = 0; i < got->elements(); ++i) {
        ASSERT_NEAR(got->at<float>(i), want->at("y").at<float>(i), tolerance) << i;
      }
    }
  }
}

TEST(Resample, IsOneUnitWhoseVerdictIsNotCertain) {
  for (const Form& form : Forms()) {
    auto session = Session::LoadBytes(ModelOf(form), {.target = "h14"});
    ASSERT_TRUE(session.ok()) << session.status();
    const auto plan = nlohmann::json::parse(session->PlanJson());
    const auto& node = plan["nodes"][0];
    EXPECT_EQ(node["units"], (nlohmann::json{"Transpose", "GOC", "Resample"}));
    EXPECT_EQ(node["status"], "unknown") << node.dump(1);
  }
}

// A port of the engine makes infinity of a NaN (numerics.json st-nan-in), so it is past the last
// element. ONNX Runtime, for which NaN is -1, reads the first one.
TEST(Resample, CoordinatesThatAreNotNumbers) {
  for (const Form& form : Forms()) {
    SCOPED_TRACE(absl::StrCat(form.mode, " ", form.padding, " ", form.aligned));
    Tensors inputs = InputsOf(7);
    for (int64_t i = 0; i < 2 * kPoints; ++i) inputs.at("g").mutable_data<float>()[i] = NAN;
    for (const char* numerics : {"fast", "exact"}) {
      auto got = RunOn(ModelOf(form), numerics, inputs);
      ASSERT_TRUE(got.ok()) << got.status();
      for (int64_t i = 0; i < kChannels * kPoints; ++i) {
        ASSERT_TRUE(std::isfinite(got->at<float>(i))) << i;
        if (form.padding == "reflection") continue;
        const float last = inputs.at("x").at<float>((i / kPoints + 1) * kHeight * kWidth - 1);
        ASSERT_EQ(got->at<float>(i), form.padding == "zeros" ? 0 : last) << i;
      }
    }
  }
}

// An infinite element with a weight of 0 does not spoil its neighbor in exact mode.
TEST(Resample, InfiniteElements) {
  Tensors inputs = InputsOf(3);
  for (int64_t i = 0; i < inputs.at("x").elements(); i += 2) {
    inputs.at("x").mutable_data<float>()[i] = INFINITY;
  }
  for (int64_t i = 0; i < inputs.at("g").elements(); ++i) {
    inputs.at("g").mutable_data<float>()[i] = i % 2 == 0 ? -5.0f / 8 : -0.5f;  // column 1, row 1
  }
  auto got = RunOn(ModelOf({"linear", "zeros", 0}), "exact", inputs);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_FALSE(std::isnan(got->at<float>(0)));
}

Json Keys(const char* method, const char* padding) {
  Json keys;
  for (const char* axis : {"Width", "Height"}) {
    keys["CoordinateInfo"].push_back({{"Coordinate", axis}, {"CoordinateMode", "NonNormalized"}});
    keys["SamplingMethodInfo"].push_back({{"Coordinate", axis}, {"SamplingMethod", method}});
    keys["PaddingInfo"].push_back({{"Coordinate", axis}, {"PaddingMode", padding}});
    keys["CoordinateTypeInfo"].push_back({{"Coordinate", axis}, {"CoordinateType", "Absolute"}});
  }
  return keys;
}

const Input kImage = {At(2, 1, 1, 2, 3), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};

TEST(Resample, OneSetOfPositionsForAllImages) {
  const Input places{At(1, 1, 2, 1, 3), {0, 1.5, 2, 0, 0.5, 1}};
  ExpectNear({{"Resample", Keys("Linear", "Zero"), {kImage, places}},
              At(2, 1, 1, 1, 3),
              {1, 4, 6, 7, 10, 12}});
}

TEST(Resample, RowsMayComeFirst) {
  Json keys = Keys("Linear", "Zero");
  keys["CoordinateMode"] = "YX";
  const Input places{At(1, 1, 2, 1, 3), {0, 0.5, 1, 0, 1.5, 2}};
  ExpectNear({{"Resample", keys, {kImage, places}}, At(2, 1, 1, 1, 3), {1, 4, 6, 7, 10, 12}});
}

TEST(Resample, BackgroundAndMirrors) {
  const Input x{At(1, 1, 1, 1, 3), {1, 2, 3}};
  const Input places{At(1, 1, 2, 1, 6), {-1, -0.5, 3, 4, 2.5, INFINITY, 0, 0, 0, 0, 0, 0}};
  const auto expect = [&](const char* padding, const std::vector<double>& want) {
    Json keys = Keys("Linear", padding);
    keys["BackgroundValue"] = math::ToHalf(8.0f).bits;
    ExpectNear({{"Resample", keys, {x, places}}, At(1, 1, 1, 1, 6), want});
  };
  expect("Background", {8, 4.5, 8, 8, 5.5, 8});
  expect("Zero", {0, 0.5, 0, 0, 1.5, 0});
  expect("Replication", {1, 1, 3, 3, 3, 3});
  const Input inside{At(1, 1, 2, 1, 5), {-1, -0.5, 3, 4, 2.5, 0, 0, 0, 0, 0}};
  ExpectNear(
      {{"Resample", Keys("Linear", "Symmetric"), {x, inside}}, At(1, 1, 1, 1, 5), {1, 1, 3, 2, 3}});
  ExpectNear({{"Resample", Keys("Linear", "Reflective"), {x, inside}},
              At(1, 1, 1, 1, 5),
              {2, 1.5, 2, 1, 2.5}});
}

TEST(Resample, FormsThatAreOnlyChecked) {
  const Input places{At(1, 1, 2, 1, 1), {0, 0}};
  const auto refused = [&](const Json& keys) {
    EXPECT_THAT(RunUnit({"Resample", keys, {kImage, places}}).status(),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("can be checked")))
        << keys;
  };
  refused(Json::object());
  refused(Keys("Linear", "DontCare"));
  Json keys = Keys("Linear", "Zero");
  keys.erase("CoordinateTypeInfo");
  refused(keys);
  keys = Keys("Linear", "Zero");
  keys["CoordinateInfo"][1] = {{"Coordinate", "Height"},
                               {"CoordinateMode", "NormalizedReflect"},
                               {"CoordinateRange", "RangeZeroToOne"}};
  refused(keys);
}

const std::vector<Case> kResampleCases = {
    {.name = "images_of_bytes",
     .model = "(uint8[1,3,8,8] x, float[1,4,5,2] g) => (float[1,3,4,5] y) "
              "{ a = Cast<to = 1>(x) y = GridSample<mode = \"linear\">(a, g) }",
     .target = "h14",
     .units = {"GOC", "GOC", "Resample", "Transpose"}},
    {.name = "too_wide_for_positions_in_fp16",
     .model = "(float[1,1,1,65] x, float[1,1,5,2] g) => (float[1,1,1,5] y) "
              "{ y = GridSample<mode = \"nearest\">(x, g) }",
     .target = "h14",
     .refused_by = "form-not-lowered"},
    {.name = "cubic",
     .model = "(float[1,1,8,8] x, float[1,1,5,2] g) => (float[1,1,1,5] y) "
              "{ y = GridSample<mode = \"cubic\">(x, g) }",
     .target = "h16",
     .refused_by = "form-not-lowered"},
    {.name = "nearest_without_a_texture_engine",
     .model = "(float[1,1,8,8] x, float[1,1,5,2] g) => (float[1,1,1,5] y) "
              "{ y = GridSample<mode = \"nearest\">(x, g) }",
     .refused_by = "resample-texture"},
    {.name = "as_products_on_route_mil",
     .model = "(float[1,3,8,8] x, float[1,4,5,2] g) => (float[1,3,4,5] y) "
              "{ y = GridSample<mode = \"linear\">(x, g) }",
     .target = "h16",
     .route = "mil",
     .units = Units({{"ElementWise", 5},
                     {"GOC", 4},
                     {"InputView", 2},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 2},
                     {"Reduction", 1},
                     {"Transpose", 2}}),
     .tolerance = 1e-2},
};

INSTANTIATE_TEST_SUITE_P(Resample, KernelTest, testing::ValuesIn(kResampleCases), CaseName);

}  // namespace
}  // namespace anemone
