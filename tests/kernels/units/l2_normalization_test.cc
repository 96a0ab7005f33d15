// LpNormalization with p = 2.
#include <gmock/gmock.h>

#include "importer/importer.h"
#include "partitioner/plan.h"
#include "tests/kernels/harness.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

const std::vector<Case> kL2NormalizationCases = {
    {.name = "last_axis",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) { y = LpNormalization<p = 2>(x) }",
     .units = {"L2Normalization"}},
    {.name = "channels",
     .model = "(float[2,16,3,5] x) => (float[2,16,3,5] y) { y = LpNormalization<axis = 1>(x) }",
     .target = "h16",
     .units = {"L2Normalization"}},
    {.name = "first_axis_of_a_matrix",
     .model = "(float[5,48] x) => (float[5,48] y) { y = LpNormalization<axis = 0>(x) }",
     .units = {"L2Normalization"}},
    {.name = "batch",
     .model = "(float[2,16,3,5] x) => (float[2,16,3,5] y) { y = LpNormalization<axis = 0>(x) }",
     .rewrites = false,
     .refused_by = "l2-norm-batch"},
    {.name = "sum_of_magnitudes",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) { y = LpNormalization<p = 1>(x) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
};

// L2 normalization as several nodes.
std::string Pieces(const std::string& constants, const std::string& nodes) {
  return "(float[2,5,48] x) => (float[2,5,48] y) <int64[1] last = {-1}, int64[3] all = {2, 5, 48}" +
         constants + "> { " + nodes + " }";
}

const std::vector<Case> kPieces = {
    {.name = "of_torch",  // F.normalize
     .model = Pieces(", float tiny = {1e-12}",
                     "n = ReduceL2(x, last) f = Clip(n, tiny) e = Expand(f, all) y = Div(x, e)"),
     .units = {"L2Normalization"}},
    {.name = "of_zeros",
     .model = Pieces(", float tiny = {1e-12}",
                     "n = ReduceL2(x, last) f = Clip(n, tiny) e = Expand(f, all) y = Div(x, e)"),
     .units = {"L2Normalization"},
     .low = 0,
     .high = 0},
    {.name = "with_a_maximum",
     .model =
         Pieces(", float tiny = {1e-8}", "n = ReduceL2(x, last) f = Max(tiny, n) y = Div(x, f)"),
     .units = {"L2Normalization"}},
    {.name = "root_of_sum_of_squares",
     .model =
         Pieces(", float e = {0.01}",
                "q = Mul(x, x) s = ReduceSum(q, last) t = Add(s, e) n = Sqrt(t) y = Div(x, n)"),
     .units = {"L2Normalization"}},
    {.name = "root_of_sum_of_powers",
     .model = Pieces(", float two = {2}",
                     "q = Pow(x, two) s = ReduceSum(q, last) n = Sqrt(s) y = Div(x, n)"),
     .units = {"L2Normalization"}},
    {.name = "reduced_sum_of_squares",
     .model = Pieces("", "s = ReduceSumSquare(x, last) n = Sqrt(s) y = Div(x, n)"),
     .units = {"L2Normalization"}},
    {.name = "floor_that_counts",
     .model =
         Pieces(", float half = {0.5}", "n = ReduceL2(x, last) f = Max(n, half) y = Div(x, f)"),
     .units = {"ElementWise", "Reduction", "Neuron", "ElementWise", "ElementWise"}},
    {.name = "norm_of_something_else",
     .model = Pieces("", "z = Relu(x) n = ReduceL2(z, last) y = Div(x, n)"),
     .units = {"Neuron", "ElementWise", "Reduction", "Neuron", "ElementWise"},
     .low = 0.5},
    {.name = "norm_is_read_elsewhere",
     .model = "(float[2,5,48] x) => (float[2,5,48] y, float[2,5,1] n) <int64[1] last = {-1}> "
              "{ n = ReduceL2(x, last) y = Div(x, n) }",
     .units = {"ElementWise", "Reduction", "Neuron", "ElementWise"}},
};
INSTANTIATE_TEST_SUITE_P(L2NormalizationInPieces, KernelTest, testing::ValuesIn(kPieces), CaseName);

INSTANTIATE_TEST_SUITE_P(L2Normalization, KernelTest, testing::ValuesIn(kL2NormalizationCases),
                         CaseName);

// A bug once computed the sum of squares for p = 3, without a root. ONNX Runtime does not load such
// a model.
TEST(L2Normalization, HasNoOtherPower) {
  const std::string graph =
      "(float[2,5,48] x) => (float[2,5,48] y) { y = LpNormalization<p = 3>(x) }";
  const auto model = ImportBytes(ModelOfText(graph, 21).SerializeAsString(), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = MakePlan(*model, {.target = *FindTarget("h13")});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->entries.size(), 1U);
  EXPECT_EQ(plan->entries[0].placement, Placement::kCpu);
  EXPECT_THAT(plan->entries[0].verdict.message, testing::HasSubstr("p = 3"));
}

}  // namespace
}  // namespace anemone
