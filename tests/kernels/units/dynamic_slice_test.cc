// Slice whose starts are computed at run time, as DynamicSlice units: values against ONNX Runtime
// for every start, and the forms that stay on the CPU.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "tests/kernels/harness.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

// The start is the place of the largest of five elements, so it is known to be in 0..4.
std::string SliceOf(const std::string& x, const std::string& y, int axis, int size,
                    const std::string& more = "") {
  return absl::StrCat("(float[", x, "] x, float[1,5] s) => (float[", y, "] y) <int64[1] a = {",
                      axis, "}, int64[1] n = {", size, "}", more,
                      "> { i = ArgMax<axis = 1, keepdims = 0>(s) e = Add(i, n) ",
                      more.empty() ? "y = Slice(x, i, e, a) }" : "y = Slice(x, i, e, a, k) }");
}

const std::vector<Case> kDynamicSliceCases = {
    {.name = "columns",
     .model = SliceOf("1,2,3,12", "1,2,3,4", 3, 4),
     .target = "h14",
     .units = {"DynamicSlice", "ElementWise", "ArgMinMax"},
     .tolerance = 1e-3},
    {.name = "rows_from_the_end",
     .model = SliceOf("2,3,9,2", "2,3,5,2", -2, 5),
     .target = "h16",
     .units = {"DynamicSlice", "ElementWise", "ArgMinMax"},
     .tolerance = 1e-3},
    {.name = "channels_of_rank_5",
     .model = SliceOf("2,9,2,3,2", "2,1,2,3,2", 1, 1),
     .target = "h17",
     .units = {"DynamicSlice", "ElementWise", "ArgMinMax"},
     .tolerance = 1e-3},
    {.name = "start_of_two_axes",
     .model = "(float[6,8] x, float[2,3] s) => (float[4,5] y) <int64[2] n = {4,5}> "
              "{ i = ArgMax<axis = 1, keepdims = 0>(s) e = Add(i, n) y = Slice(x, i, e) }",
     .target = "h14",
     .units = {"DynamicSlice", "DynamicSlice", "ElementWise", "ArgMinMax", "InputView",
               "InputView"},
     .tolerance = 1e-3},
    {.name = "start_from_bytes",
     .model =
         "(float[300,8] x, uint8[1] s) => (float[45,8] y) <int64[1] n = {45}, int64[1] a = {0}> "
         "{ i = Cast<to = 7>(s) e = Add(i, n) y = Slice(x, i, e, a) }",
     .target = "h14",
     .units = {"DynamicSlice", "ElementWise", "GOC"},
     .tolerance = 1e-3},
    {.name = "the_m1_has_no_dynamic_slice",
     .model = SliceOf("1,2,3,12", "1,2,3,4", 3, 4),
     .refused_by = "dynamic-slice-family"},
    {.name = "a_start_that_is_clamped",
     .model = SliceOf("1,2,3,7", "1,2,3,4", 3, 4),
     .target = "h14",
     .refused_by = "form-not-lowered"},
    {.name = "a_start_that_may_be_any_number",
     .model = "(float[8] x, int64[1] i) => (float[4] y) <int64[1] n = {4}> "
              "{ e = Add(i, n) y = Slice(x, i, e) }",
     .target = "h14",
     .refused_by = "port-format"},
    {.name = "in_steps_of_two",
     .model = SliceOf("1,2,3,16", "1,2,3,2", 3, 4, ", int64[1] k = {2}"),
     .target = "h14",
     .refused_by = "form-not-lowered"},
};

INSTANTIATE_TEST_SUITE_P(DynamicSlice, KernelTest, testing::ValuesIn(kDynamicSliceCases), CaseName);

TEST(DynamicSlice, EveryStart) {
  const std::string model = ModelOfText(SliceOf("1,2,3,8", "1,2,3,4", 3, 4)).SerializeAsString();
  Tensor x = Tensor::Zeros(DataType::kFloat, {1, 2, 3, 8});
  for (int64_t i = 0; i < x.elements(); ++i) {
    x.mutable_data<float>()[i] = 6000.0f - 8 * static_cast<float>(i);  // beyond sat-wslice
  }
  for (const char* numerics : {"fast", "exact"}) {
    auto session = Session::LoadBytes(model, {.target = "h14", .numerics = numerics});
    ASSERT_TRUE(session.ok()) << session.status();
    for (int64_t start = 0; start < 5; ++start) {
      Tensor s = Tensor::Zeros(DataType::kFloat, {1, 5});
      s.mutable_data<float>()[start] = 1;
      const Tensors inputs = {{"x", x}, {"s", s}};
      auto got = session->Run(inputs);
      auto want = RunOnOnnxRuntime(model, inputs);
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_TRUE(want.ok()) << want.status();
      for (int64_t i = 0; i < want->at("y").elements(); ++i) {
        ASSERT_EQ(got->at("y").at<float>(i), want->at("y").at<float>(i)) << start << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace anemone
