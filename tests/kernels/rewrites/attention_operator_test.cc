// ONNX's operator Attention, which the importer expands to its function body: it becomes one SDPA
// unit and agrees with ONNX Runtime.
#include <gtest/gtest.h>

#include "absl/strings/substitute.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

// Query, key and value are transposed from (heads, sequence) to (sequence, heads), and the result
// back.
const std::vector<std::string> kOperatorUnits = {"Transpose", "Transpose", "Transpose", "SDPA",
                                                 "Transpose"};

std::vector<std::string> AndUnits(std::vector<std::string> more) {
  more.insert(more.begin(), kOperatorUnits.begin(), kOperatorUnits.end());
  return more;
}

// A model of one node.
std::string Operator(const std::string& attributes, int heads, int groups, int queries, int keys,
                     const std::string& more_inputs, const std::string& more_arguments) {
  return absl::Substitute(
      "(float[1,$1,$3,8] q, float[1,$2,$4,8] k, float[1,$2,$4,8] v$5) => (float[1,$1,$3,8] y) "
      "{ y = Attention<$0>(q, k, v$6) }",
      attributes, heads, groups, queries, keys, more_inputs, more_arguments);
}

const std::vector<Case> kOperatorCases = {
    {.name = "plain",
     .model = "(float[1,4,10,8] q, float[1,4,12,8] k, float[1,4,12,8] v) => (float[1,4,10,8] y) "
              "{ y = Attention(q, k, v) }",
     .opset = 23,
     .units = kOperatorUnits},
    {.name = "causal",
     .model = Operator("is_causal = 1", 4, 4, 10, 10, "", ""),
     .opset = 23,
     .units = kOperatorUnits},
    {.name = "scale",
     .model = Operator("scale = 0.5", 4, 4, 10, 12, "", ""),
     .opset = 23,
     .units = kOperatorUnits},
    {.name = "float_mask",
     .model = Operator("scale = 0.5", 4, 4, 10, 12, ", float[10,12] m", ", m"),
     .opset = 23,
     .units = AndUnits({"ElementWise", "Reduction", "ElementWise", "ElementWise"})},
    {.name = "bool_mask",
     .model = Operator("scale = 0.5", 4, 4, 10, 12, ", bool[1,1,10,12] m", ", m"),
     .opset = 23,
     .units = AndUnits({"GOC", "Reduction", "ElementWise", "ElementWise"})},
    {.name = "bool_mask_and_causal",
     .model = Operator("is_causal = 1", 4, 4, 3, 3, ", bool[3,3] m", ", m"),
     .opset = 23,
     .units = AndUnits({"ElementWise", "GOC", "Reduction", "ElementWise", "ElementWise"})},
    {.name = "bool_mask_of_two_keys",
     .model = Operator("scale = 0.5", 4, 4, 10, 2, ", bool[10,2] m", ", m"),
     .opset = 23,
     .units = AndUnits({"GOC", "Reduction", "ElementWise", "ElementWise"})},
    {.name = "grouped_heads",
     .model = Operator("scale = 0.5", 4, 2, 10, 12, "", ""),
     .opset = 23,
     .units = AndUnits({"Broadcast", "Broadcast", "Transpose", "Transpose"})},
    {.name = "three_dimensions",
     .model = "(float[1,10,32] q, float[1,12,32] k, float[1,12,32] v) => (float[1,10,32] y) "
              "{ y = Attention<q_num_heads = 4, kv_num_heads = 4>(q, k, v) }",
     .opset = 23,
     .units = AndUnits({"Transpose", "Transpose", "Transpose", "Transpose"})},
    {.name = "past",
     .model = "(float[1,4,1,8] q, float[1,4,1,8] k, float[1,4,1,8] v, float[1,4,11,8] pk, "
              "float[1,4,11,8] pv) => (float[1,4,1,8] y, float[1,4,12,8] nk, float[1,4,12,8] nv) "
              "{ y, nk, nv = Attention<scale = 0.5>(q, k, v, , pk, pv) }",
     .opset = 23,
     .units = {"Concat", "Concat", "Transpose", "Transpose", "SDPA"}},
};
INSTANTIATE_TEST_SUITE_P(AttentionOperator, KernelTest, testing::ValuesIn(kOperatorCases),
                         CaseName);

// Its scores are read or capped in between, so it is not one unit.
const char kOperatorMatMul[] = "MatrixMultiplication";
const std::vector<Case> kSeparateUnits = {
    {.name = "operator_that_shows_its_scores",
     .model = "(float[1,1,10,8] q, float[1,1,12,8] k, float[1,1,12,8] v) => (float[1,1,10,8] y, "
              "float[1,1,10,12] s) { y, , , s = Attention<scale = 0.5>(q, k, v) }",
     .opset = 23,
     .units = {"Transpose", "GOC", "GOC", kOperatorMatMul, "ElementWise", "Softmax", "ElementWise",
               kOperatorMatMul}},
    {.name = "operator_with_softcap",
     .model = Operator("softcap = 2.0", 1, 1, 10, 12, "", ""),
     .opset = 23,
     .units = {"Transpose", "GOC", "GOC", kOperatorMatMul, "GOC", "Neuron", "GOC", "ElementWise",
               "Softmax", "ElementWise", kOperatorMatMul}},
};
INSTANTIATE_TEST_SUITE_P(AttentionOperatorInUnits, KernelTest, testing::ValuesIn(kSeparateUnits),
                         CaseName);

}  // namespace
}  // namespace anemone
