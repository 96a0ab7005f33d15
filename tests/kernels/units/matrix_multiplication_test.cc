// MatMul and Einsum as MatrixMultiplication: every rank and every broadcast of a batch, the rules
// of the unit, every limit at N and N + 1.
#include "kernels/units/matrix_multiplication.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "engine/network.h"
#include "engine/unit_kind.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kMatMulCases = {
    {.name = "matrices",
     .model = "(float[5,7] a, float[7,6] b) => (float[5,6] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "rows_of_none",
     .model = "(float[1,1] b) => (float[1,0,1,1] y) <float[1,0,1,1] a> { y = MatMul(a, b) }",
     .refused_by = "empty-tensor"},
    {.name = "one_by_one",
     .model = "(float[1,1] a, float[1,1] b) => (float[1,1] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "vector_by_matrix",
     .model = "(float[7] a, float[7,6] b) => (float[6] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "matrix_by_vector",
     .model = "(float[5,7] a, float[7] b) => (float[5] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "vector_by_vector",
     .model = "(float[7] a, float[7] b) => (float y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "stack_by_vector",
     .model = "(float[2,3,5,7] a, float[7] b) => (float[2,3,5] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "vector_by_stack",
     .model = "(float[7] a, float[3,7,6] b) => (float[3,6] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "stacks_of_rank_three",
     .model = "(float[3,5,7] a, float[3,7,6] b) => (float[3,5,6] y) { y = MatMul(a, b) }",
     .target = "h16",
     .units = {"MatrixMultiplication"}},
    {.name = "stack_by_matrix",
     .model = "(float[3,5,7] a, float[7,6] b) => (float[3,5,6] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "matrix_by_stack",
     .model = "(float[5,7] a, float[2,3,7,6] b) => (float[2,3,5,6] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "heads_need_no_transpose",
     .model = "(float[2,3,5,7] a, float[2,3,7,6] b) => (float[2,3,5,6] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "batch_repeated_on_one_side",
     .model = "(float[1,1,5,7] a, float[2,3,7,6] b) => (float[2,3,5,6] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "heads_repeated_over_the_batch",
     .model = "(float[2,3,5,7] a, float[3,7,6] b) => (float[2,3,5,6] y) { y = MatMul(a, b) }",
     .units = {"Transpose", "Transpose", "MatrixMultiplication", "Transpose"}},
    {.name = "batches_repeated_across",
     .model = "(float[2,1,5,7] a, float[1,3,7,6] b) => (float[2,3,5,6] y) { y = MatMul(a, b) }",
     .units = {"Transpose", "MatrixMultiplication", "Transpose"}},
    {.name = "constant_right",
     .model = "(float[2,5,7] x) => (float[2,5,6] y) <float[7,6] w> { y = MatMul(x, w) }",
     .units = {"MatrixMultiplication"}},
    {.name = "constant_right_of_rank_four",
     .model = "(float[2,3,5,7] x) => (float[2,3,5,6] y) <float[1,1,7,6] w> { y = MatMul(x, w) }",
     .units = {"MatrixMultiplication"}},
    {.name = "constant_vector_right",
     .model = "(float[2,3,7] x) => (float[2,3] y) <float[7] w> { y = MatMul(x, w) }",
     .units = {"MatrixMultiplication"}},
    {.name = "constant_stack_right",
     .model = "(float[3,5,7] x) => (float[3,5,6] y) <float[3,7,6] w> { y = MatMul(x, w) }",
     .units = {"MatrixMultiplication"}},
    {.name = "constant_left",
     .model = "(float[3,7,6] x) => (float[3,5,6] y) <float[5,7] w> { y = MatMul(w, x) }",
     .units = {"MatrixMultiplication"}},
    {.name = "rank_five_by_a_constant",
     .model = "(float[2,3,2,5,7] x) => (float[2,3,2,5,6] y) <float[7,6] w> { y = MatMul(x, w) }",
     .units = {"Transpose", "MatrixMultiplication", "Transpose"}},
    {.name = "rank_five",
     .model = "(float[2,2,2,4,8] a, float[2,2,2,8,4] b) => (float[2,2,2,4,4] y) "
              "{ y = MatMul(a, b) }",
     .refused_by = "matmul-rank-5"},
    {.name = "rank_five_on_mil",
     .model = "(float[2,2,2,4,8] a, float[2,2,2,8,4] b) => (float[2,2,2,4,4] y) "
              "{ y = MatMul(a, b) }",
     .target = "h16",
     .route = "mil",
     .refused_by = "matmul-rank-5"},
    {.name = "rows_32768_fit_the_kernel_memory",
     .model = "(float[1,32768,2] a, float[1,2,3] b) => (float[1,32768,3] y) { y = MatMul(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "rows_32769_do_not",
     .model = "(float[1,32769,2] a, float[1,2,3] b) => (float[1,32769,3] y) { y = MatMul(a, b) }",
     .rewrites = false,
     .refused_by = "matmul-kernel-memory"},
    {.name = "columns_16384",
     .model = "(float[1,2] a, float[2,16384] b) => (float[1,16384] y) { y = MatMul(a, b) }",
     .route = "mil",
     .units = {"MatrixMultiplication"}},
    {.name = "columns_16385",
     .model = "(float[1,2] a, float[2,16385] b) => (float[1,16385] y) { y = MatMul(a, b) }",
     .route = "mil",
     .refused_by = "max-dimension-a13"},
    {.name = "columns_16385_from_a16",
     .model = "(float[1,2] a, float[2,16385] b) => (float[1,16385] y) { y = MatMul(a, b) }",
     .target = "h16",
     .route = "mil",
     .units = {"MatrixMultiplication"}},
    {.name = "integers",
     .model = "(int32[5,7] a, int32[7,6] b) => (int32[5,6] y) { y = MatMul(a, b) }",
     .refused_by = "port-format"},
};
INSTANTIATE_TEST_SUITE_P(MatMul, KernelTest, testing::ValuesIn(kMatMulCases), CaseName);

const std::vector<Case> kEinsumCases = {
    {.name = "matrices",
     .model = "(float[5,7] a, float[7,6] b) => (float[5,6] y) "
              "{ y = Einsum<equation = \"ij,jk->ik\">(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "inner_product",
     .model = "(float[5] a, float[5] b) => (float y) { y = Einsum<equation = \"i,i\">(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "scores_of_heads",
     .model = "(float[2,5,3,8] q, float[2,6,3,8] k) => (float[2,3,5,6] y) "
              "{ y = Einsum<equation = \"bqhd, bkhd -> bhqk\">(q, k) }",
     .units = {"Transpose", "Transpose", "MatrixMultiplication"}},
    {.name = "the_compilers_own_example",
     .model = "(float[4,5,8] a, float[8,5,6] b) => (float[4,5,6] y) "
              "{ y = Einsum<equation = \"chk,khq->chq\">(a, b) }",
     .units = {"Transpose", "Transpose", "MatrixMultiplication", "Transpose"}},
    {.name = "operands_in_the_other_order",
     .model = "(float[7,6] a, float[5,7] b) => (float[5,6] y) "
              "{ y = Einsum<equation = \"jk,ij->ik\">(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "result_transposed",
     .model = "(float[2,5,7] a, float[2,6,7] b) => (float[6,2,5] y) "
              "{ y = Einsum<equation = \"bij,bkj->kbi\">(a, b) }",
     .units = {"Transpose", "MatrixMultiplication", "Transpose"}},
    {.name = "weight",
     .model = "(float[2,5,7] x) => (float[2,5,6] y) <float[6,7] w> "
              "{ y = Einsum<equation = \"bsi,oi->bso\">(x, w) }",
     .units = {"MatrixMultiplication"}},
    {.name = "weight_of_several_axes",
     .model = "(float[2,5,7] x) => (float[2,5,3,4] y) <float[7,3,4] w> "
              "{ y = Einsum<equation = \"bsi,ihd->bshd\">(x, w) }",
     .units = {"MatrixMultiplication"}},
    {.name = "contracts_two_axes",
     .model = "(float[2,5,3,4] x) => (float[2,5,6] y) <float[3,4,6] w> "
              "{ y = Einsum<equation = \"bshd,hdo->bso\">(x, w) }",
     .units = {"MatrixMultiplication"}},
    {.name = "ellipsis",
     .model = "(float[2,3,5,7] a, float[2,3,7,6] b) => (float[2,3,5,6] y) "
              "{ y = Einsum<equation = \"...ij,...jk->...ik\">(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "implicit_result",
     .model = "(float[5,7] a, float[7,6] b) => (float[5,6] y) "
              "{ y = Einsum<equation = \"ij,jk\">(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "outer_product",
     .model = "(float[5] a, float[6] b) => (float[5,6] y) "
              "{ y = Einsum<equation = \"i,j->ij\">(a, b) }",
     .units = {"MatrixMultiplication"}},
    {.name = "diagonal",
     .model = "(float[5,5] a, float[5,6] b) => (float[5,6] y) "
              "{ y = Einsum<equation = \"ii,ij->ij\">(a, b) }",
     .refused_by = "form-not-lowered"},
    {.name = "sum_over_one_operand_as_one_unit",
     .model = "(float[5,7] a, float[6,4] b) => (float[5,6] y) "
              "{ y = Einsum<equation = \"ij,kl->ik\">(a, b) }",
     .rewrites = false,
     .refused_by = "form-not-lowered"},
    {.name = "sum_over_one_operand",
     .model = "(float[5,7] a, float[6,4] b) => (float[5,6] y) "
              "{ y = Einsum<equation = \"ij,kl->ik\">(a, b) }",
     .units = {"MatrixMultiplication", "Reduction", "Reduction"}},
    {.name = "one_operand",
     .model = "(float[5,7] a) => (float[7,5] y) { y = Einsum<equation = \"ij->ji\">(a) }",
     .units = {"Transpose"}},
    {.name = "sum_of_one_operand_on_a16",
     .model = "(float[2,5,7] a) => (float[7] y) { y = Einsum<equation = \"bij->j\">(a) }",
     .target = "h16",
     .units = {"Reduction"}},
    {.name = "three_operands",
     .model = "(float[5,7] a, float[7,6] b, float[6,4] c) => (float[4,5] y) "
              "{ y = Einsum<equation = \"ij,jk,kl->li\">(a, b, c) }",
     .units = {"MatrixMultiplication", "MatrixMultiplication", "Transpose"}},
    {.name = "bilinear_on_a16",
     .model = "(float[3,5] a, float[3,6] b) => (float[3,4] y) <float[4,5,6] w> "
              "{ y = Einsum<equation = \"ni,oij,nj->no\">(a, w, b) }",
     .target = "h16",
     .units = {"MatrixMultiplication", "MatrixMultiplication", "Transpose"}},
};
INSTANTIATE_TEST_SUITE_P(Einsum, KernelTest, testing::ValuesIn(kEinsumCases), CaseName);

// Forms that no ONNX node is lowered to.
class MatMulUnit : public testing::Test {
 protected:
  Verdict Judge(const Dims& a, const Dims& b, size_t bottoms = 2) {
    static const Graph& empty = *new Graph;
    GraphView view(empty);
    LowerContext c(view, **FindTarget("h13"), Route::kNetplist);
    auto constant = [&](const Dims& dims) {
      std::byte one{1};
      return c.AddConstant(
          Tensor::Fill(DataType::kBool, {dims.elements()}, absl::MakeConstSpan(&one, 1)), dims);
    };
    MatrixProduct(c, constant(a), constant(b));
    EXPECT_TRUE(c.ok()) << c.status();
    Lowered lowered = c.Take();
    std::vector<Bottom> all = lowered.network.BottomsOf(lowered.network.units[0]);
    all.resize(bottoms);
    const Unit& unit = lowered.network.units[0];
    return unit.kind->Validate(unit.params.get(), all, c.target(), c.route());
  }
};

TEST_F(MatMulUnit, TakesFittingMatrices) {
  EXPECT_TRUE(Judge(MakeDims(2, 4, 3, 8), MakeDims(1, 8, 3, 5)).accepted);
}

TEST_F(MatMulUnit, RefusesDepth) {
  Verdict verdict = Judge(Dims{{1, 2, 4, 1, 8}}, Dims{{1, 2, 8, 1, 4}});
  ASSERT_FALSE(verdict.accepted);
  EXPECT_EQ(verdict.message, "depth > 1 is not supported for MatMult");
}

TEST_F(MatMulUnit, RefusesAnotherContraction) {
  Verdict verdict = Judge(MakeDims(1, 4, 1, 8), MakeDims(1, 7, 1, 4));
  ASSERT_FALSE(verdict.accepted);
  EXPECT_TRUE(absl::StrContains(
      verdict.message, "input tensor A's width (8) + padding (0) != tensor B's channel (7)"))
      << verdict.message;
}

TEST_F(MatMulUnit, RefusesBatchesThatDiffer) {
  Verdict verdict = Judge(MakeDims(1, 4, 2, 8), MakeDims(1, 8, 3, 4));
  ASSERT_FALSE(verdict.accepted);
  EXPECT_TRUE(
      absl::StrContains(verdict.message, "invalid dim Height for input tensor A (2) and B (3)"))
      << verdict.message;
}

TEST_F(MatMulUnit, RefusesOneBottom) {
  Verdict verdict = Judge(MakeDims(1, 4, 1, 8), MakeDims(1, 8, 1, 4), 1);
  ASSERT_FALSE(verdict.accepted);
  EXPECT_EQ(verdict.message, "Matrix mult. layer can only have two bottoms");
}

}  // namespace
}  // namespace anemone
