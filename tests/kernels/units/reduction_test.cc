// Reductions: every operator, sets of axes at every rank, kept and dropped axes, global pooling.
#include "absl/strings/str_cat.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

Case Of(const std::string& op, std::vector<std::string> units) {
  return {.name = op,
          .model = absl::StrCat("(float[2,3,4,5] x) => (float[2,3] y) <int64[2] axes = {2, -1}> "
                                "{ y = ",
                                op, "<keepdims = 0>(x, axes) }"),
          .units = std::move(units),
          .low = 0.25f,
          .high = 2};
}

const std::vector<Case> kOperators = {
    Of("ReduceSum", {"Reduction"}),
    Of("ReduceMean", {"Reduction"}),
    Of("ReduceMax", {"Reduction"}),
    Of("ReduceMin", {"Reduction"}),
    Of("ReduceL1", {"ElementWise", "Reduction"}),
    Of("ReduceL2", {"ElementWise", "Reduction", "Neuron"}),
    Of("ReduceSumSquare", {"ElementWise", "Reduction"}),
    Of("ReduceLogSum", {"Reduction", "Neuron", "GOC"}),
    Of("ReduceLogSumExp",
       {"Reduction", "ElementWise", "Neuron", "Reduction", "Neuron", "GOC", "ElementWise"}),
};

INSTANTIATE_TEST_SUITE_P(Operators, KernelTest, testing::ValuesIn(kOperators), CaseName);

const std::vector<Case> kForms = {
    {.name = "all_axes",
     .model = "(float[2,3,4,5] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }",
     .units = {"Reduction"},
     .low = 0},
    {.name = "all_axes_kept",
     .model = "(float[2,3,4] x) => (float[1,1,1] y) { y = ReduceMean(x) }",
     .target = "h16",
     .units = {"Reduction"},
     .low = 0},
    {.name = "no_axes_is_nothing",
     .model = "(float[2,3,4] x) => (float[2,3,4] y) "
              "{ a = Relu(x) y = ReduceSum<noop_with_empty_axes = 1>(a) }",
     .units = {"Neuron"}},
    {.name = "batch_axis",
     .model = "(float[4,3,5,6] x) => (float[3,5,6] y) <int64[1] axes = {0}> "
              "{ y = ReduceMax<keepdims = 0>(x, axes) }",
     .units = {"Reduction"}},
    {.name = "channels_kept",
     .model = "(float[4,3,5,6] x) => (float[4,1,5,6] y) <int64[1] axes = {1}> "
              "{ y = ReduceMean(x, axes) }",
     .units = {"Reduction"}},
    {.name = "outer_axes",
     .model = "(float[4,3,5,6] x) => (float[3,5] y) <int64[2] axes = {0, 3}> "
              "{ y = ReduceMin<keepdims = 0>(x, axes) }",
     .units = {"Reduction"}},
    {.name = "rank_1",
     .model = "(float[100] x) => (float y) { y = ReduceMax<keepdims = 0>(x) }",
     .units = {"Reduction"}},
    {.name = "rank_2",
     .model = "(float[6,100] x) => (float[6] y) <int64[1] axes = {1}> "
              "{ y = ReduceMean<keepdims = 0>(x, axes) }",
     .units = {"Reduction"},
     .low = 0},
    {.name = "rank_3_middle",
     .model = "(float[2,6,10] x) => (float[2,10] y) <int64[1] axes = {1}> "
              "{ y = ReduceSum<keepdims = 0>(x, axes) }",
     .units = {"Reduction"},
     .low = 0},
    {.name = "rank_5_depth",
     .model = "(float[2,3,4,5,6] x) => (float[2,3,5,6] y) <int64[1] axes = {2}> "
              "{ y = ReduceSum<keepdims = 0>(x, axes) }",
     .units = {"Reduction"},
     .low = 0},
    {.name = "rank_5_width",
     .model = "(float[2,3,4,5,6] x) => (float[2,3,4,5] y) <int64[1] axes = {-1}> "
              "{ y = ReduceSum<keepdims = 0>(x, axes) }",
     .units = {"Reduction", "Transpose"},
     .low = 0},
    {.name = "rank_5_kept",
     .model = "(float[2,3,4,5,6] x) => (float[2,1,4,5,1] y) <int64[2] axes = {1, 4}> "
              "{ y = ReduceMax(x, axes) }",
     .units = {"Reduction"}},
    {.name = "axis_of_one",
     .model = "(float[2,1,4] x) => (float[2,4] y) <int64[1] axes = {1}> "
              "{ a = Relu(x) y = ReduceMean<keepdims = 0>(a, axes) }",
     .units = {"Neuron"}},
    {.name = "long_axis",
     .model = "(float[2,5000] x) => (float[2,1] y) <int64[1] axes = {1}> "
              "{ y = ReduceMean(x, axes) }",
     .units = {"Reduction"},
     .low = 0},
    {.name = "before_a13",
     .model = "(float[2,8] x) => (float[2,1] y) <int64[1] axes = {1}> "
              "{ y = ReduceMean(x, axes) }",
     .target = "h12",
     .refused_by = "unit-family"},
    {.name = "integers",
     .model = "(int64[2,8] x) => (int64[2,1] y) <int64[1] axes = {1}> "
              "{ y = ReduceSum(x, axes) }",
     .refused_by = "integer-range"},
    {.name = "global_average",
     .model = "(float[2,8,7,7] x) => (float[2,8,1,1] y) { y = GlobalAveragePool(x) }",
     .units = {"Reduction"},
     .low = 0},
    {.name = "global_average_of_points",
     .model = "(float[2,8,1,1] x) => (float[2,8,1,1] y) { a = Relu(x) y = GlobalAveragePool(a) }",
     .units = {"Neuron"}},
    {.name = "global_max",
     .model = "(float[2,8,9] x) => (float[2,8,1] y) { y = GlobalMaxPool(x) }",
     .target = "h16",
     .units = {"Reduction"}},
    {.name = "global_max_3d",
     .model = "(float[2,3,4,5,6] x) => (float[2,3,1,1,1] y) { y = GlobalMaxPool(x) }",
     .units = {"Reduction"}},
};

INSTANTIATE_TEST_SUITE_P(Forms, KernelTest, testing::ValuesIn(kForms), CaseName);

}  // namespace
}  // namespace anemone
