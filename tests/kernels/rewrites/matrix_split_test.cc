// Matrix products that exceed a limit: of rows, and of the channels of a flattened plane.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kMatrixSplitCases = {
    {.name = "rows_32769",
     .model = "(float[1,32769,4] x) => (float[1,32769,3] y) <float[4,3] w> { y = MatMul(x, w) }",
     .units = {"Concat", "InputView", "InputView", "MatrixMultiplication", "MatrixMultiplication"}},
    {.name = "rows_times_a_matrix_made_at_run_time",
     .model = "(float[2,40000,2] x, float[2,2,3] w) => (float[2,40000,3] y) { y = MatMul(x, w) }",
     .target = "h16",
     .units = {"Concat", "InputView", "InputView", "MatrixMultiplication", "MatrixMultiplication"}},
    {.name = "a_plane_of_too_many_channels",
     .model = "(float[2,460,12,12] x) => (float[2,3] y) <float[3,66240] w, float[3] b> "
              "{ f = Flatten(x) y = Gemm<transB = 1>(f, w, b) }",
     .units = {"Conv"}},
    {.name = "a_plane_of_just_enough_channels",
     .model = "(float[1,64,32,32] x) => (float[1,3] y) <float[3,65536] w> "
              "{ f = Flatten(x) y = Gemm<transB = 1>(f, w) }",
     .units = {"Conv"}},
    {.name = "a_plane_of_too_many_channels_without_rewrites",
     .model = "(float[1,460,12,12] x) => (float[1,3] y) <float[3,66240] w> "
              "{ f = Flatten(x) y = Gemm<transB = 1>(f, w) }",
     .rewrites = false,
     .refused_by = "max-width"},
};

INSTANTIATE_TEST_SUITE_P(MatrixSplit, KernelTest, testing::ValuesIn(kMatrixSplitCases), CaseName);

}  // namespace
}  // namespace anemone
