// Gemm, and MatMul with a constant and its neighboring nodes: 1x1 convolutions on route netplist,
// Linear on route mil.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kLinearCases = {
    {.name = "classifier",
     .model = "(float[1,64] x) => (float[1,10] y) <float[10,64] w, float[10] b> "
              "{ y = Gemm<transB = 1>(x, w, b) }",
     .units = {"Conv"}},
    {.name = "rows",
     .model = "(float[5,64] x) => (float[5,10] y) <float[10,64] w, float[10] b> "
              "{ y = Gemm<transB = 1>(x, w, b) }",
     .target = "h16",
     .units = {"Conv"}},
    {.name = "weights_as_matmul_has_them",
     .model = "(float[3,7] x) => (float[3,6] y) <float[7,6] w, float[1,6] b> "
              "{ y = Gemm(x, w, b) }",
     .units = {"Conv"}},
    {.name = "no_bias",
     .model = "(float[3,7] x) => (float[3,6] y) <float[7,6] w> { y = Gemm(x, w) }",
     .units = {"Conv"}},
    {.name = "one_number_as_bias",
     .model = "(float[3,7] x) => (float[3,6] y) <float[7,6] w, float b = {0.5}> "
              "{ y = Gemm(x, w, b) }",
     .units = {"Conv"}},
    {.name = "alpha_and_beta",
     .model = "(float[3,7] x) => (float[3,6] y) <float[6,7] w, float[6] b> "
              "{ y = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(x, w, b) }",
     .units = {"Conv"}},
    {.name = "transposed_input",
     .model = "(float[7,3] x) => (float[3,6] y) <float[7,6] w> { y = Gemm<transA = 1>(x, w) }",
     .units = {"Transpose", "Conv"}},
    {.name = "bias_per_row",
     .model = "(float[3,7] x) => (float[3,6] y) <float[7,6] w, float[3,1] b> "
              "{ y = Gemm(x, w, b) }",
     .units = {"Conv", "ElementWise"}},
    {.name = "bias_per_element",
     .model = "(float[3,7] x) => (float[3,6] y) <float[7,6] w, float[3,6] b> "
              "{ y = Gemm(x, w, b) }",
     .units = {"Conv", "ElementWise"}},
    {.name = "bias_at_run_time",
     .model = "(float[3,7] x, float[6] b) => (float[3,6] y) <float[7,6] w> "
              "{ y = Gemm<beta = 0.5>(x, w, b) }",
     .units = {"Conv", "GOC", "ElementWise"}},
    {.name = "matrix_at_run_time",
     .model = "(float[3,7] x, float[7,6] w) => (float[3,6] y) <float[6] b> { y = Gemm(x, w, b) }",
     .units = {"MatrixMultiplication", "ElementWise"}},
    {.name = "both_transposed_at_run_time",
     .model = "(float[7,3] x, float[6,7] w) => (float[3,6] y) "
              "{ y = Gemm<transA = 1, transB = 1, alpha = 0.25>(x, w) }",
     .units = {"Transpose", "Transpose", "MatrixMultiplication", "GOC"}},
    {.name = "matmul_of_rank_two",
     .model = "(float[3,7] x) => (float[3,6] y) <float[7,6] w> { y = MatMul(x, w) }",
     .units = {"Conv"}},
    {.name = "matmul_of_a_vector",
     .model = "(float[7] x) => (float[6] y) <float[7,6] w> { y = MatMul(x, w) }",
     .units = {"Conv"}},
    {.name = "matmul_of_one_row",
     .model = "(float[1,1,7] x) => (float[1,1,6] y) <float[7,6] w> { y = MatMul(x, w) }",
     .units = {"Conv"}},
    {.name = "matmul_and_bias_are_one_unit",
     .model = "(float[3,7] x) => (float[3,6] y) <float[7,6] w, float[6] b> "
              "{ m = MatMul(x, w) y = Add(b, m) }",
     .units = {"Conv"}},
    {.name = "matmul_and_bias_of_a_sequence",
     .model = "(float[2,5,7] x) => (float[2,5,6] y) <float[7,6] w, float[6] b> "
              "{ m = MatMul(x, w) y = Add(m, b) }",
     .units = {"MatrixMultiplication", "ElementWise"}},
    {.name = "an_add_that_is_no_bias",
     .model = "(float[3,7] x) => (float[3,6] y) <float[7,6] w, float[3,1] b> "
              "{ m = MatMul(x, w) y = Add(m, b) }",
     .units = {"Conv", "ElementWise"}},
    {.name = "an_add_that_repeats_the_product",
     .model = "(float[1,7] x) => (float[2,1,6] y) <float[7,6] w, float[2,1,6] b> "
              "{ m = MatMul(x, w) y = Add(m, b) }",
     .units = {"Conv", "ElementWise"}},
    {.name = "product_read_twice",
     .model = "(float[3,7] x) => (float[3,6] y, float[3,6] m) <float[7,6] w, float[6] b> "
              "{ m = MatMul(x, w) y = Add(m, b) }",
     .units = {"Conv", "ElementWise"}},
    {.name = "wide_rows_after_flatten",
     .model = "(float[2,288,8,8] x) => (float[2,4] y) <float[4,18432] w, float[4] b> "
              "{ f = Flatten(x) y = Gemm<transB = 1>(f, w, b) }",
     .units = {"Conv"}},
    {.name = "wide_rows_after_reshape_and_matmul",
     .model = "(float[2,288,8,8] x) => (float[2,4] y) <float[18432,4] w, float[4] b, "
              "int64[2] s = {2, 18432}> { f = Reshape(x, s) m = MatMul(f, w) y = Add(m, b) }",
     .units = {"Conv"}},
    {.name = "wide_rows_16384_as_input",
     .model = "(float[1,16384] x) => (float[1,2] y) <float[2,16384] w> "
              "{ y = Gemm<transB = 1>(x, w) }",
     .units = {"Conv"}},
    {.name = "wide_rows_16385_as_input",
     .model = "(float[1,16385] x) => (float[1,2] y) <float[2,16385] w> "
              "{ y = Gemm<transB = 1>(x, w) }",
     .refused_by = "max-width"},
    {.name = "wide_rows_16385_as_input_from_a16",
     .model = "(float[1,16385] x) => (float[1,2] y) <float[2,16385] w> "
              "{ y = Gemm<transB = 1>(x, w) }",
     .target = "h16",
     .units = {"Conv"}},
    {.name = "linear_on_mil",
     .model = "(float[3,7] x) => (float[3,6] y) <float[6,7] w, float[6] b> "
              "{ y = Gemm<transB = 1>(x, w, b) }",
     .route = "mil",
     .units = {"Linear"}},
    {.name = "linear_of_rank_four_on_mil",
     .model = "(float[1,2,4,8] x) => (float[1,2,4,4] y) <float[8,4] w, float[4] b> "
              "{ m = MatMul(x, w) y = Add(m, b) }",
     .route = "mil",
     .units = {"Linear"}},
    {.name = "linear_of_rank_five_on_mil",
     .model = "(float[1,1,2,4,8] x) => (float[1,1,2,4,4] y) <float[8,4] w> { y = MatMul(x, w) }",
     .route = "mil",
     .refused_by = "linear-rank"},
    {.name = "wide_rows_16384_on_mil",
     .model = "(float[1,4] x) => (float[1,16384] y) <float[4,16384] w> { y = MatMul(x, w) }",
     .route = "mil",
     .units = {"Linear"}},
    {.name = "wide_rows_16385_on_mil",
     .model = "(float[1,4] x) => (float[1,16385] y) <float[4,16385] w> { y = MatMul(x, w) }",
     .route = "mil",
     .refused_by = "max-dimension-a13"},
    {.name = "integers",
     .model = "(int32[3,7] x) => (int32[3,6] y) <int32[7,6] w = {1,1,1,1,1,1, 1,1,1,1,1,1, "
              "1,1,1,1,1,1, 1,1,1,1,1,1, 1,1,1,1,1,1, 1,1,1,1,1,1, 1,1,1,1,1,1}> "
              "{ y = MatMul(x, w) }",
     .refused_by = "port-format"},
};
INSTANTIATE_TEST_SUITE_P(Linear, KernelTest, testing::ValuesIn(kLinearCases), CaseName);

}  // namespace
}  // namespace anemone
