// Compares the plain nodes for operators of com.microsoft with ONNX Runtime's kernels for them.
#include "tests/importer/against_ort.h"
#include "tests/importer/contrib/contrib_models.h"

namespace anemone {
namespace {

struct ContribForm {
  const char* name;
  std::string graph;
  std::string meaning;  // the reference, if ONNX Runtime's CPU has no kernel for the form
  int opset = 21;
};

std::ostream& operator<<(std::ostream& out, const ContribForm& form) { return out << form.name; }

class ContribTest : public testing::TestWithParam<ContribForm> {};

TEST_P(ContribTest, MeansWhatOnnxRuntimeMeans) {
  const ContribForm& form = GetParam();
  const onnx::ModelProto model = ContribModel(form.graph, form.opset);
  const onnx::ModelProto meaning =
      form.meaning.empty() ? model : ContribModel(form.meaning, form.opset);
  const Model ours = ExpectSameOnOrt(model, meaning);
  EXPECT_EQ(ContribNodes(ours.graph), 0) << NodesText(ours.graph);
  for (const ImportWarning& warning : ours.warnings) {
    ADD_FAILURE() << warning.rule << ": " << warning.message;
  }
}

const ContribForm kActivations[] = {
    {"Gelu", "(float[2,3,8] x) => (float[2,3,8] y) { y = ms.Gelu(x) }"},
    {"GeluOfUnknownRank", "(float[N,M] x) => (float[N,M] y) { y = ms.Gelu(x) }"},
    {"BiasGelu", "(float[2,3,8] x, float[8] b) => (float[2,3,8] y) { y = ms.BiasGelu(x, b) }"},
    {"FastGelu", "(float[2,3,8] x) => (float[2,3,8] y) { y = ms.FastGelu(x) }"},
    {"FastGeluWithBias",
     "(float[2,3,8] x, float[8] b) => (float[2,3,8] y) { y = ms.FastGelu(x, b) }"},
    {"QuickGelu", "(float[2,3,8] x) => (float[2,3,8] y) { y = ms.QuickGelu(x) }"},
    {"QuickGeluAsSilu",
     "(float[2,3,8] x) => (float[2,3,8] y) { y = ms.QuickGelu<alpha = 1.0>(x) }"},
    {"GeluInABranch",
     "(bool c, float[2,3,8] x) => (float[2,3,8] y) { y = If(c) <"
     "  then_branch = t () => (float[2,3,8] a) { a = ms.Gelu(x) },"
     "  else_branch = e () => (float[2,3,8] b) { b = ms.FastGelu(x) }> }"},
    // An old form is converted by the types behind the operator.
    {"GeluBeforeAnOldReduction",
     "(float[2,3,8] x) => (float[2,3,1] y) { g = ms.Gelu(x) y = ReduceMean<axes = [-1]>(g) }", "",
     11},
};
INSTANTIATE_TEST_SUITE_P(Activations, ContribTest, testing::ValuesIn(kActivations),
                         testing::PrintToStringParamName());

const ContribForm kNorms[] = {
    {"Skip",
     "(float[2,3,8] x, float[2,3,8] s, float[8] g, float[8] b) => (float[2,3,8] y) {"
     "  y = ms.SkipLayerNormalization(x, s, g, b) }"},
    {"SkipWithoutBeta",
     "(float[2,3,8] x, float[2,3,8] s, float[8] g) => (float[2,3,8] y) {"
     "  y = ms.SkipLayerNormalization<epsilon = 1e-5>(x, s, g) }"},
    {"SkipWithBiasAndSum",
     "(float[2,3,8] x, float[2,3,8] s, float[8] g, float[8] b, float[8] c) =>"
     "  (float[2,3,8] y, float[2,3,8] z) {"
     "  y, , , z = ms.SkipLayerNormalization(x, s, g, b, c) }"},
    {"SkipRepeated",
     "(float[2,3,8] x, float[1,3,8] s, float[8] g, float[8] b) => (float[2,3,8] y) {"
     "  y = ms.SkipLayerNormalization(x, s, g, b) }"},
    {"SkipRepeatedOfRank2",
     "(float[2,3,8] x, float[3,8] s, float[8] g, float[8] b) => (float[2,3,8] y) {"
     "  y = ms.SkipLayerNormalization(x, s, g, b) }"},
    {"SkipSimplified",
     "(float[2,3,8] x, float[2,3,8] s, float[8] g) => (float[2,3,8] y) {"
     "  y = ms.SkipSimplifiedLayerNormalization(x, s, g) }"},
    {"SkipSimplifiedWithBiasAndSum",
     "(float[2,3,8] x, float[2,3,8] s, float[8] g, float[8] c) =>"
     "  (float[2,3,8] y, float[2,3,8] z) {"
     "  y, , , z = ms.SkipSimplifiedLayerNormalization<epsilon = 1e-3>(x, s, g, c) }"},
    {"SkipSimplifiedOfRank2",
     "(float[3,8] x, float[3,8] s, float[8] g) => (float[3,8] y) {"
     "  y = ms.SkipSimplifiedLayerNormalization(x, s, g) }"},
    {"Simplified",
     "(float[2,3,8] x, float[8] g) => (float[2,3,8] y) {"
     "  y = SimplifiedLayerNormalization<epsilon = 1e-3, stash_type = 1>(x, g) }"},
    {"SimplifiedOverTwoAxes",
     "(float[2,3,8] x, float[3,8] g) => (float[2,3,8] y) {"
     "  y = SimplifiedLayerNormalization<axis = 1>(x, g) }"},
    {"SimplifiedInAnOldOpset",
     "(float[2,3,8] x, float[8] g) => (float[2,8] y) {"
     "  n = SimplifiedLayerNormalization<axis = -1>(x, g)"
     "  y = ReduceSum<axes = [1], keepdims = 0>(n) }",
     "", 12},
};
INSTANTIATE_TEST_SUITE_P(Norms, ContribTest, testing::ValuesIn(kNorms),
                         testing::PrintToStringParamName());

// Identifiers are 0, 1 or 2.
const char kTables[] = "float[3,8] w, float[4,8] p, float[3,8] t, float[8] g, float[8] b";
std::string Embedding(const std::string& more, const std::string& outputs,
                      const std::string& node) {
  return absl::StrCat("(int32[2,3] i, int32[2,3] s, ", kTables, more, ") => (", outputs, ") { ",
                      node, " }");
}

const ContribForm kEmbeddings[] = {
    {"Embed", Embedding("", "float[2,3,8] y, int32[2] m",
                        "y, m = ms.EmbedLayerNormalization(i, s, w, p, t, g, b)")},
    {"EmbedWithoutSegments",
     Embedding("", "float[2,3,8] y, int32[2] m",
               "y, m = ms.EmbedLayerNormalization<epsilon = 1e-5>(i, , w, p, , g, b)")},
    {"EmbedWithMaskAndSum",
     Embedding(", int32[2,3] k", "float[2,3,8] y, int32[2] m, float[2,3,8] z",
               "y, m, z = ms.EmbedLayerNormalization(i, s, w, p, t, g, b, k)")},
    {"EmbedAtPositions", Embedding(", int32[2,3] n", "float[2,3,8] y, int32[2] m",
                                   "y, m = ms.EmbedLayerNormalization(i, s, w, p, t, g, b, , n)")},
    {"EmbedAtOnePosition",
     Embedding(", int32[1,3] n", "float[2,3,8] y, int32[2] m",
               "y, m = ms.EmbedLayerNormalization(i, s, w, p, t, g, b, , n)")},
};
INSTANTIATE_TEST_SUITE_P(Embeddings, ContribTest, testing::ValuesIn(kEmbeddings),
                         testing::PrintToStringParamName());

const ContribForm kProducts[] = {
    {"MatMul", "(float[2,3,4] a, float[2,4,5] b) => (float[2,3,5] y) { y = ms.FusedMatMul(a, b) }"},
    {"MatMulTransposed",
     "(float[2,4,3] a, float[2,5,4] b) => (float[2,3,5] y) {"
     "  y = ms.FusedMatMul<transA = 1, transB = 1, alpha = 0.25>(a, b) }"},
    {"MatMulOfTransposedBatches",
     "(float[3,2,6,4] a, float[2,6,4,5] b) => (float[2,6,3,5] y) {"
     "  y = ms.FusedMatMul<transBatchA = 1>(a, b) }"},
    {"MatMulAllTransposed",
     "(float[4,2,3] a, float[5,2,4] b) => (float[2,3,5] y) {"
     "  y = ms.FusedMatMul<transA = 1, transBatchA = 1, transB = 1, transBatchB = 1>(a, b) }"},
    {"MatMulOfOtherRanks",
     "(float[3,4] a, float[2,5,4] b) => (float[2,3,5] y) {"
     "  y = ms.FusedMatMul<transB = 1>(a, b) }"},
    {"ConvRelu",
     "(float[1,3,6,6] x, float[4,3,3,3] w, float[4] b) => (float[1,4,4,4] y) {"
     "  y = ms.FusedConv<activation = \"Relu\">(x, w, b) }"},
    {"ConvSumRelu",
     "(float[1,3,6,6] x, float[4,3,3,3] w, float[4] b, float[1,4,6,6] z) => (float[1,4,6,6] y) {"
     "  y = ms.FusedConv<activation = \"Relu\", pads = [1,1,1,1], kernel_shape = [3,3]>"
     "(x, w, b, z) }"},
    {"ConvLeakyRelu",
     "(float[1,4,6,6] x, float[4,2,3,3] w) => (float[1,4,2,2] y) {"
     "  y = ms.FusedConv<activation = \"LeakyRelu\", activation_params = [0.2], group = 2,"
     "  strides = [2,2]>(x, w) }"},
    {"ConvClip",
     "(float[1,3,6,6] x, float[4,3,3,3] w) => (float[1,4,4,4] y) {"
     "  y = ms.FusedConv<activation = \"Clip\", activation_params = [-0.5, 0.5]>(x, w) }"},
    {"ConvHardSigmoid",
     "(float[1,3,6,6] x, float[4,3,3,3] w) => (float[1,4,4,4] y) {"
     "  y = ms.FusedConv<activation = \"HardSigmoid\", activation_params = [0.2, 0.5]>(x, w) }"},
    {"ConvTanh",
     "(float[1,3,6,6] x, float[4,3,3,3] w) => (float[1,4,4,4] y) {"
     "  y = ms.FusedConv<activation = \"Tanh\", dilations = [1,1]>(x, w) }"},
    {"ConvAlone",
     "(float[1,3,6,6] x, float[4,3,3,3] w) => (float[1,4,4,4] y) { y = ms.FusedConv(x, w) }"},
};
INSTANTIATE_TEST_SUITE_P(Products, ContribTest, testing::ValuesIn(kProducts),
                         testing::PrintToStringParamName());

// Two images, five positions, two heads of four.
std::string Packed(const std::string& attributes, const std::string& more_inputs,
                   const std::string& more_outputs, const std::string& arguments,
                   const std::string& outputs = "y", const std::string& before = "") {
  return absl::StrCat("(float[2,5,8] x, float[8,24] w, float[24] b", more_inputs,
                      ") => (float[2,5,8] y", more_outputs, ") { ", before, " ", outputs,
                      " = ms.Attention<num_heads = 2", attributes, ">(x, w, b", arguments, ") }");
}
// In a mask row of zeros no query has a key, so the results would be only rounding errors; these
// masks avoid such rows.
const char kFirstKey[] = "f = Constant<value = int32[1,5] {1, 0, 0, 0, 0}>() m = Max(r, f)";
const char kEnds[] = "c = Constant<value = int32[2] {3, 4}>() m = Sub(c, r)";

const ContribForm kAttentions[] = {
    {"Attention", Packed("", "", "", "")},
    {"AttentionScaled", Packed(", scale = 0.2", "", "", "")},
    {"AttentionDefaultScale", Packed(", scale = 0.0", "", "", "")},
    {"AttentionWithoutBias",
     "(float[2,5,8] x, float[8,24] w) => (float[2,5,8] y) {"
     "  y = ms.Attention<num_heads = 2>(x, w) }",
     "(float[2,5,8] x, float[8,24] w) => (float[2,5,8] y) {"
     "  z = Constant<value = float[1] {0}>() n = Constant<value = int64[1] {24}>()"
     "  b = Expand(z, n) y = ms.Attention<num_heads = 2>(x, w, b) }"},
    {"AttentionUnidirectional", Packed(", unidirectional = 1", "", "", "")},
    {"AttentionOfWidths",
     "(float[2,5,8] x, float[8,20] w, float[20] b) => (float[2,5,4] y) {"
     "  y = ms.Attention<num_heads = 2, qkv_hidden_sizes = [8,8,4]>(x, w, b) }"},
    {"AttentionKeyMask", Packed("", ", int32[2,5] r", "", ", m", "y", kFirstKey)},
    {"AttentionKeyMaskUnidirectional",
     Packed(", unidirectional = 1", ", int32[2,5] r", "", ", m", "y", kFirstKey)},
    {"AttentionKeyMaskOfOwnDepth",
     Packed(", mask_filter_value = -3.0", ", int32[2,5] m", "", ", m")},
    {"AttentionScoreMask", Packed(", mask_filter_value = -3.0", ", int32[2,5,5] m", "", ", m")},
    {"AttentionScoreMaskUnidirectional",
     Packed(", mask_filter_value = -3.0, unidirectional = 1", ", int32[2,5,5] m", "", ", m")},
    {"AttentionLengths", Packed("", ", int32[2] r", "", ", m", "y", kEnds)},
    {"AttentionConstantLengths",
     Packed("", "", "", ", m", "y", "m = Constant<value = int32[2] {3, 5}>()")},
    {"AttentionRanges",
     Packed("", ", int32[4] r", "", ", m", "y",
            "c = Constant<value = int32[4] {5, 4, 0, 1}>() z = Sub(r, r) m = Add(c, z)")},
    {"AttentionCumulatedLengths",
     Packed("", "", "", ", m", "y", "m = Constant<value = int32[8] {2, 4, 0, 2, 6, 0, 2, 6}>()")},
    {"AttentionMaskOfOneElement", Packed("", ", int32[2,1] m", "", ", m")},
    {"AttentionBias", Packed("", ", float[2,2,5,5] a", "", ", , , a")},
    {"AttentionBiasRepeated", Packed("", ", float[1,1,5,5] a", "", ", , , a")},
    {"AttentionBiasAndMask",
     Packed("", ", int32[2,5] r, float[1,2,5,5] a", "", ", m, , a", "y", kFirstKey)},
    {"AttentionPresent", Packed("", "", ", float[2,2,2,5,4] n", "", "y, n")},
    {"AttentionPast", Packed(", unidirectional = 1", ", float[2,2,2,3,4] p", ", float[2,2,2,8,4] n",
                             ", , p", "y, n")},
    {"AttentionEmptyPast", Packed("", "", ", float[2,2,2,5,4] n", ", , p", "y, n",
                                  "p = Constant<value = float[2,2,2,0,4] {}>()")},
    {"AttentionPastAndMask",
     Packed(", unidirectional = 1", ", float[2,2,2,3,4] p, int32[2,8] r", ", float[2,2,2,8,4] n",
            ", m, p", "y, n",
            "f = Constant<value = int32[1,8] {1, 0, 0, 0, 0, 0, 0, 0}>() m = Max(r, f)")},
    {"AttentionInABranch",
     "(bool c, float[2,5,8] x, float[8,24] w, float[24] b, int32[2] m) => (float[2,5,8] y) {"
     "  y = If(c) <then_branch = t () => (float[2,5,8] a) { one = Constant<value_int = 1>()"
     "    i = Cast<to = 6>(one) n = Add(m, i) a = ms.Attention<num_heads = 2>(x, w, b, n) },"
     "  else_branch = e () => (float[2,5,8] z) { z = Identity(x) }> }"},
    {"AttentionOfOnePosition",
     "(float[1,1,8] x, float[8,24] w, float[24] b, float[2,1,2,6,4] p) =>"
     "  (float[1,1,8] y, float[2,1,2,7,4] n) {"
     "  y, n = ms.Attention<num_heads = 2, unidirectional = 1>(x, w, b, , p) }"},
};
INSTANTIATE_TEST_SUITE_P(Attentions, ContribTest, testing::ValuesIn(kAttentions),
                         testing::PrintToStringParamName());

// Three queries and five keys of two images, two heads of four.
std::string Multi(const std::string& attributes, const std::string& more_inputs,
                  const std::string& more_outputs, const std::string& arguments,
                  const std::string& outputs = "y", const std::string& before = "") {
  return absl::StrCat("(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v", more_inputs,
                      ") => (float[2,3,8] y", more_outputs, ") { ", before, " ", outputs,
                      " = ms.MultiHeadAttention<num_heads = 2", attributes, ">(q, k, v", arguments,
                      ") }");
}
const char kPasts[] = ", float[2,2,4,4] pk, float[2,2,4,4] pv";
const char kPresents[] = ", float[2,2,9,4] nk, float[2,2,9,4] nv";

const ContribForm kMultiHeads[] = {
    {"Multi", Multi("", "", "", "")},
    {"MultiScaled", Multi(", scale = 0.3", "", "", "")},
    {"MultiBias", Multi("", ", float[24] b", "", ", b")},
    {"MultiWiderValue",
     "(float[2,3,8] q, float[2,5,8] k, float[2,5,12] v, float[28] b) => (float[2,3,12] y) {"
     "  y = ms.MultiHeadAttention<num_heads = 2>(q, k, v, b) }"},
    {"MultiByHead",
     "(float[2,3,8] q, float[2,2,5,4] k, float[2,2,5,4] v) => (float[2,3,8] y) {"
     "  y = ms.MultiHeadAttention<num_heads = 2>(q, k, v) }"},
    {"MultiByHeadWithBias",
     "(float[2,3,8] q, float[2,2,5,4] k, float[2,2,5,4] v, float[24] b) => (float[2,3,8] y) {"
     "  y = ms.MultiHeadAttention<num_heads = 2>(q, k, v, b) }"},
    {"MultiPackedKv",
     "(float[2,3,8] q, float[2,5,2,2,4] kv) => (float[2,3,8] y) {"
     "  y = ms.MultiHeadAttention<num_heads = 2>(q, kv) }",
     "(float[2,3,8] q, float[2,5,2,2,4] kv) => (float[2,3,8] y) {"
     "  k5, v5 = Split<axis = 3, num_outputs = 2>(kv) s = Constant<value = int64[3] {2, 5, 8}>()"
     "  k = Reshape(k5, s) v = Reshape(v5, s)"
     "  y = ms.MultiHeadAttention<num_heads = 2>(q, k, v) }"},
    {"MultiPackedQkv",
     "(float[2,3,2,3,4] p, float[24] b) => (float[2,3,8] y) {"
     "  y = ms.MultiHeadAttention<num_heads = 2>(p, , , b) }",
     "(float[2,3,2,3,4] p, float[24] b) => (float[2,3,8] y) {"
     "  q5, k5, v5 = Split<axis = 3, num_outputs = 3>(p)"
     "  s = Constant<value = int64[3] {2, 3, 8}>()"
     "  q = Reshape(q5, s) k = Reshape(k5, s) v = Reshape(v5, s)"
     "  y = ms.MultiHeadAttention<num_heads = 2>(q, k, v, b) }"},
    {"MultiUnidirectional",
     "(float[2,5,8] q, float[2,5,8] k, float[2,5,8] v) => (float[2,5,8] y) {"
     "  y = ms.MultiHeadAttention<num_heads = 2, unidirectional = 1>(q, k, v) }"},
    {"MultiKeyMask", Multi("", ", int32[2,5] r", "", ", , m", "y", kFirstKey)},
    {"MultiScoreMask", Multi(", mask_filter_value = -4.0", ", int32[2,3,5] m", "", ", , m")},
    {"MultiLengths", Multi("", ", int32[2] r", "", ", , m", "y", kEnds)},
    {"MultiCumulatedLengths",
     Multi("", "", "", ", , m", "y", "m = Constant<value = int32[8] {2, 4, 0, 3, 6, 0, 5, 10}>()")},
    {"MultiAdded", Multi("", ", float[2,2,3,5] a", "", ", , , a")},
    {"MultiAddedToAllHeads", Multi("", ", float[2,1,3,5] a", "", ", , , a")},
    {"MultiAddedToAll", Multi("", ", float[1,1,3,5] a, float[24] b", "", ", b, , a")},
    {"MultiPresent", Multi("", "", ", float[2,2,5,4] nk, float[2,2,5,4] nv", "", "y, nk, nv")},
    {"MultiPast", Multi("", kPasts, kPresents, ", , , , pk, pv", "y, nk, nv")},
    {"MultiPastBiasAndAdded", Multi("", absl::StrCat(kPasts, ", float[24] b, float[1,2,3,9] a"),
                                    kPresents, ", b, , a, pk, pv", "y, nk, nv")},
    {"MultiPastAndLengths", Multi("", absl::StrCat(kPasts, ", int32[2] r"), kPresents,
                                  ", , m, , pk, pv", "y, nk, nv", kEnds)},
    {"MultiPastUnidirectional",
     "(float[2,3,8] q, float[2,3,8] k, float[2,3,8] v, float[2,2,4,4] pk, float[2,2,4,4] pv) =>"
     "  (float[2,3,8] y, float[2,2,7,4] nk, float[2,2,7,4] nv) {"
     "  y, nk, nv = ms.MultiHeadAttention<num_heads = 2, unidirectional = 1>"
     "(q, k, v, , , , pk, pv) }"},
};
INSTANTIATE_TEST_SUITE_P(MultiHeads, ContribTest, testing::ValuesIn(kMultiHeads),
                         testing::PrintToStringParamName());

// Four query heads and two key heads of 16 elements; `before` is written before the node, whose
// first inputs are q, k, v.
std::string Group(int batch, int queries, const std::string& attributes,
                  const std::string& more_inputs, int present, const std::string& before,
                  const std::string& arguments) {
  const std::string rows = absl::StrCat(batch, ",", queries, ",");
  const std::string cache = absl::StrCat("float[", batch, ",2,", present, ",16] ");
  return absl::StrCat("(float[", rows, "64] q, float[", rows, "32] k, float[", rows, "32] v",
                      more_inputs, ") => (float[", rows, "64] y, ", cache, "nk, ", cache, "nv) { ",
                      before, " y, nk, nv = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2",
                      attributes, ">(q, k, v, ", arguments, ") }");
}
std::string Past(int batch, int length) {
  const std::string cache = absl::StrCat("float[", batch, ",2,", length, ",16] ");
  return absl::StrCat(", ", cache, "pk, ", cache, "pv");
}
const char kPrompt[] = "n = Constant<value = int32[1] {3}>() t = Constant<value = int32 {4}>()";
const char kStep[] = "n = Constant<value = int32[1] {5}>() t = Constant<value = int32 {6}>()";
const char kTurn[] = ", do_rotary = 1";
const char kCaches[] = ", float[16,8] c, float[16,8] s";

// Two prompts of different lengths; output rows of padding are undefined and multiplied by 0.
std::string PaddedPrompt(const std::string& attributes, const std::string& more_inputs,
                         const std::string& more) {
  return absl::StrCat("(float[2,4,64] q, float[2,4,32] k, float[2,4,32] v, int32[2] r", more_inputs,
                      ") => (float[2,4,64] y, float[2,2,4,16] nk, float[2,2,4,16] nv) {"
                      "  z = Sub(r, r) c2 = Constant<value = int32[2] {3, 1}>() n = Add(c2, z)"
                      "  t = Constant<value = int32 {4}>()"
                      "  kept = Constant<value = float[2,4,1] {1, 1, 1, 1, 1, 1, 0, 0}>()"
                      "  u, nk, nv = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2",
                      attributes, ">(q, k, v, , , n, t", more, ") y = Mul(u, kept) }");
}

const ContribForm kGroups[] = {
    {"GroupPrompt", Group(1, 4, "", "", 4, kPrompt, ", , n, t")},
    {"GroupPromptScaled", Group(1, 4, ", scale = 0.1", "", 4, kPrompt, ", , n, t")},
    {"GroupPromptEmptyPast",
     Group(1, 4, "", "", 4, absl::StrCat(kPrompt, " p = Constant<value = float[1,2,0,16] {}>()"),
           "p, p, n, t")},
    {"GroupPromptIntoCache", Group(1, 4, "", Past(1, 7), 7, kPrompt, "pk, pv, n, t")},
    {"GroupPromptRotary", Group(1, 4, kTurn, kCaches, 4, kPrompt, ", , n, t, c, s")},
    {"GroupPromptRotaryInterleaved",
     Group(1, 4, ", do_rotary = 1, rotary_interleaved = 1", kCaches, 4, kPrompt, ", , n, t, c, s")},
    {"GroupPromptAtPositions",
     Group(1, 4, kTurn, absl::StrCat(kCaches, ", int64[1,4] i"), 4, kPrompt, ", , n, t, c, s, i")},
    {"GroupPromptTablesUnused", Group(1, 4, "", kCaches, 4, kPrompt, ", , n, t, c, s")},
    {"GroupPromptWindow", Group(1, 4, ", local_window_size = 2", "", 4, kPrompt, ", , n, t")},
    {"GroupPromptSoftcap", Group(1, 4, ", softcap = 1.5", "", 4, kPrompt, ", , n, t")},
    {"GroupPromptAdded", Group(1, 4, "", ", float[1,4,4,4] a", 4, kPrompt, ", , n, t, , , , a")},
    {"GroupPromptPacked",
     "(float[1,4,128] p, float[16,8] c, float[16,8] s) =>"
     "  (float[1,4,64] y, float[1,2,4,16] nk, float[1,2,4,16] nv) {"
     "  n = Constant<value = int32[1] {3}>() t = Constant<value = int32 {4}>()"
     "  y, nk, nv = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = 1>"
     "(p, , , , , n, t, c, s) }"},
    {"GroupPromptPadded", PaddedPrompt("", "", "")},
    {"GroupPromptPaddedRotary", PaddedPrompt(kTurn, kCaches, ", c, s")},
    {"GroupStep", Group(1, 1, "", Past(1, 5), 6, kStep, "pk, pv, n, t")},
    {"GroupStepRotary",
     Group(1, 1, kTurn, absl::StrCat(Past(1, 5), kCaches), 6, kStep, "pk, pv, n, t, c, s")},
    {"GroupStepWindow",
     Group(1, 1, ", local_window_size = 3", Past(1, 5), 6, kStep, "pk, pv, n, t")},
    {"GroupStepAtPosition", Group(1, 1, kTurn, absl::StrCat(Past(1, 5), kCaches, ", int64[1,1] i"),
                                  6, kStep, "pk, pv, n, t, c, s, i")},
    // Two images whose lengths are known only at run time: the cache holds 0, 1 or 2 keys.
    {"GroupStepOfTwo", Group(2, 1, "", absl::StrCat(Past(2, 5), ", int32[2] n"), 6,
                             "t = Constant<value = int32 {6}>()", "pk, pv, n, t")},
    {"GroupStepOfTwoRotary", Group(2, 1, kTurn, absl::StrCat(Past(2, 5), kCaches, ", int32[2] n"),
                                   6, "t = Constant<value = int32 {6}>()", "pk, pv, n, t, c, s")},
    {"GroupStepOfTwoWindow",
     Group(2, 1, ", local_window_size = 2", absl::StrCat(Past(2, 5), ", int32[2] n"), 6,
           "t = Constant<value = int32 {6}>()", "pk, pv, n, t")},
    // A cache of fixed length, filled up to seqlens_k.
    {"GroupStepInCache",
     Group(1, 1, kTurn, absl::StrCat(Past(1, 8), kCaches, ", int32[1] r"), 8,
           "t = Constant<value = int32 {4}>() one = Constant<value = int32 {1}>() n = Add(r, one)",
           "pk, pv, n, t, c, s")},
    {"GroupStepInCacheOfUnknownTotal",
     Group(1, 1, "", absl::StrCat(Past(1, 8), ", int32[1] r"), 8,
           "two = Constant<value = int32 {2}>() three = Constant<value = int32 {3}>()"
           " n = Add(r, two) t = Add(r, three)",
           "pk, pv, n, t")},
    {"GroupChunk", Group(1, 3, kTurn, absl::StrCat(Past(1, 5), kCaches, ", float[1,1,3,8] a"), 8,
                         "n = Constant<value = int32[1] {7}>() t = Constant<value = int32 {8}>()",
                         "pk, pv, n, t, c, s, , a")},
    {"GroupChunkInCache",
     Group(1, 3, kTurn, absl::StrCat(Past(1, 9), kCaches, ", int32[1] r"), 9,
           "t = Constant<value = int32 {6}>() c4 = Constant<value = int32 {4}>() n = Add(r, c4)",
           "pk, pv, n, t, c, s")},
};
INSTANTIATE_TEST_SUITE_P(Groups, ContribTest, testing::ValuesIn(kGroups),
                         testing::PrintToStringParamName());

const ContribForm kRotations[] = {
    {"Rotary",
     "(float[2,3,16] x, int64[2,3] i, float[10,4] c, float[10,4] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding(x, i, c, s) }"},
    {"RotaryInterleaved",
     "(float[2,3,16] x, int64[2,3] i, float[10,4] c, float[10,4] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding<interleaved = 1>(x, i, c, s) }"},
    {"RotaryFromOnePosition",
     "(float[2,3,16] x, int64[1] i, float[10,4] c, float[10,4] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding(x, i, c, s) }"},
    {"RotaryByHead",
     "(float[2,2,3,8] x, int64[2,3] i, float[10,4] c, float[10,4] s) => (float[2,2,3,8] y) {"
     "  y = ms.RotaryEmbedding<num_heads = 2>(x, i, c, s) }"},
    {"RotaryByHeadInterleaved",
     "(float[2,2,3,8] x, int64[1] i, float[10,4] c, float[10,4] s) => (float[2,2,3,8] y) {"
     "  y = ms.RotaryEmbedding<interleaved = 1>(x, i, c, s) }"},
    {"RotaryInPart",
     "(float[2,3,16] x, int64[2,3] i, float[10,2] c, float[10,2] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding<num_heads = 2, rotary_embedding_dim = 4>(x, i, c, s) }"},
    {"RotaryInPartByHeadInterleaved",
     "(float[2,2,3,8] x, int64[2,3] i, float[10,2] c, float[10,2] s) => (float[2,2,3,8] y) {"
     "  y = ms.RotaryEmbedding<num_heads = 2, rotary_embedding_dim = 4, interleaved = 1>"
     "(x, i, c, s) }"},
};
INSTANTIATE_TEST_SUITE_P(Rotations, ContribTest, testing::ValuesIn(kRotations),
                         testing::PrintToStringParamName());

size_t CountOf(const Graph& graph, absl::string_view op_type) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.op_type == op_type; });
}

TEST(ContribAside, LayersShareTheirMask) {
  const Model ours = ExpectSameOnOrt(ContribModel(
      "(float[2,5,8] q, float[2,5,8] k, float[2,5,8] v, int32[2] r) => (float[2,5,8] y) {"
      "  e = Constant<value = int32 {4}>() m = Min(r, e)"
      "  a = ms.MultiHeadAttention<num_heads = 2>(q, k, v, , m)"
      "  b = ms.MultiHeadAttention<num_heads = 2>(a, k, v, , m)"
      "  y = ms.MultiHeadAttention<num_heads = 2, mask_filter_value = -5.0>(b, k, v, , m) }"));
  EXPECT_EQ(CountOf(ours.graph, "Less"), 1);
  EXPECT_EQ(CountOf(ours.graph, "Where"), 2);  // one for each value that fills it
}

TEST(ContribAside, LayersShareTheirPositions) {
  const Model ours = ExpectSameOnOrt(
      ContribModel("(float[2,3,16] x, float[2,3,16] z, float[10,4] c, float[10,4] s, float[10,4] d)"
                   " => (float[2,3,16] y, float[2,3,16] w, float[2,3,16] v) {"
                   "  i = Constant<value = int64[1] {2}>()"
                   "  y = ms.RotaryEmbedding<num_heads = 2>(x, i, c, s)"
                   "  w = ms.RotaryEmbedding<num_heads = 2>(z, i, c, s)"
                   "  v = ms.RotaryEmbedding<num_heads = 2>(z, i, d, s) }"));
  EXPECT_EQ(CountOf(ours.graph, "Gather"), 3);  // of c, s and d
}

}  // namespace
}  // namespace anemone
