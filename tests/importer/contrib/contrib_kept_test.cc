// Forms of com.microsoft operators that plain nodes cannot express: they are kept, with the reason,
// and shapes after them are still inferred. Malicious attributes and shapes give such forms, or
// errors that name the node.
#include "absl/strings/str_join.h"
#include "tests/importer/against_ort.h"
#include "tests/importer/contrib/contrib_models.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

struct KeptNode {
  const char* name;
  std::string graph;
  const char* why;
};

std::ostream& operator<<(std::ostream& out, const KeptNode& kept) { return out << kept.name; }

class ContribKeptTest : public testing::TestWithParam<KeptNode> {};

TEST_P(ContribKeptTest, StaysAndSaysWhy) {
  const auto model =
      ImportBytes(ContribModel(GetParam().graph).SerializeAsString(), "", WithEvaluator());
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->graph.nodes.size(), 1) << NodesText(model->graph);
  EXPECT_TRUE(IsContrib(model->graph.nodes[0]));
  ASSERT_FALSE(model->warnings.empty());
  EXPECT_EQ(model->warnings[0].rule, "not-expanded");
  EXPECT_THAT(model->warnings[0].where, HasSubstr("/#0"));
  EXPECT_THAT(model->warnings[0].message, HasSubstr(GetParam().why));
  EXPECT_EQ(model->origins.size(), 1);  // no origins remain from a discarded body
}

std::string OneAttention(const std::string& attributes, const std::string& inputs = "",
                         const std::string& arguments = "") {
  return absl::StrCat("(float[2,5,8] x, float[8,24] w, float[24] b", inputs,
                      ") => (float[2,5,8] y) { y = ms.Attention<", attributes, ">(x, w, b",
                      arguments, ") }");
}

std::string MultiHeads(const std::string& attributes, const std::string& inputs = "",
                       const std::string& arguments = "") {
  return absl::StrCat("(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v", inputs,
                      ") => (float[2,3,8] y) { y = ms.MultiHeadAttention<", attributes, ">(q, k, v",
                      arguments, ") }");
}

std::string GroupQuery(const std::string& attributes, const std::string& inputs = "",
                       const std::string& arguments = ", , n, t") {
  return absl::StrCat("(float[1,4,64] q, float[1,4,32] k, float[1,4,32] v, int32[1] n, int32 t",
                      inputs, ") => (float[1,4,64] y) { y = ms.GroupQueryAttention<", attributes,
                      ">(q, k, v, ", arguments, ") }");
}

// Four rows of two blocks of sixteen.
std::string Bits(const std::string& attributes, const std::string& constants = "",
                 const std::string& arguments = "w, s",
                 const std::string& scales = "float[4,2] s = {1,2,3,4,5,6,7,8}") {
  std::vector<int> bytes(64, 7);
  return absl::StrCat("(float[2,32] a) => (float[2,4] y) <uint8[4,2,8] w = {",
                      absl::StrJoin(bytes, ","), "}, ", scales, constants,
                      "> { y = ms.MatMulNBits<", attributes, ">(a, ", arguments, ") }");
}

const KeptNode kKeptNodes[] = {
    {"NoHeads", OneAttention("num_heads = 0"), "num_heads"},
    {"NegativeHeads", OneAttention("num_heads = -1"), "num_heads"},
    {"HugeHeads", OneAttention("num_heads = 9223372036854775807"), "num_heads"},
    {"HeadsThatDoNotDivide", OneAttention("num_heads = 3"), "num_heads"},
    {"HeadsMissing", OneAttention("unidirectional = 1"), "num_heads"},
    {"HeadsAsText", OneAttention("num_heads = \"2\""), "num_heads"},
    {"LaterAttribute", OneAttention("num_heads = 2, newer = 1"), "'newer'"},
    {"AttributeOfOtherType", OneAttention("num_heads = 2, scale = 1"), "'scale'"},
    {"RotaryInside", OneAttention("num_heads = 2, do_rotary = 1"), "do_rotary"},
    {"SharedBuffer", OneAttention("num_heads = 2, past_present_share_buffer = 1"), "buffer"},
    {"WidthsTooMany", OneAttention("num_heads = 2, qkv_hidden_sizes = [8,8,4,4]"), "three"},
    {"WidthsNegative", OneAttention("num_heads = 2, qkv_hidden_sizes = [-8,-8,40]"), "hidden"},
    {"WidthsTooWide",
     OneAttention("num_heads = 2, qkv_hidden_sizes = [9223372036854775806,9223372036854775806,2]"),
     "hidden"},
    {"WidthsTooNarrow", OneAttention("num_heads = 2, qkv_hidden_sizes = [8,8,4]"), "wider"},
    {"MaskOfRank4", OneAttention("num_heads = 2", ", int32[2,1,8,8] m", ", m"), "rank 4"},
    {"MaskOfOtherLength", OneAttention("num_heads = 2", ", int32[2,6] m", ", m"), "mask"},
    {"MaskOfFloats", OneAttention("num_heads = 2", ", float[2,5] m", ", m"), "int32"},
    {"PastWithoutPresent", OneAttention("num_heads = 2", ", float[2,2,2,3,4] p", ", , p"),
     "present"},
    {"AddedOfOtherShape", OneAttention("num_heads = 2", ", float[1,1,1,5] a", ", , , a"),
     "attention"},
    {"WrongRank",
     "(float[5,8] x, float[8,24] w, float[24] b) => (float[5,8] y) {"
     "  y = ms.Attention<num_heads = 2>(x, w, b) }",
     "rank 2"},
    {"WeightsThatDoNotFit",
     "(float[2,5,8] x, float[7,24] w, float[24] b) => (float[2,5,8] y) {"
     "  y = ms.Attention<num_heads = 2>(x, w, b) }",
     "weights"},
    {"BiasThatDoesNotFit",
     "(float[2,5,8] x, float[8,24] w, float[23] b) => (float[2,5,8] y) {"
     "  y = ms.Attention<num_heads = 2>(x, w, b) }",
     "bias"},
    {"UnknownBatch",
     "(float[N,5,8] x, float[8,24] w, float[24] b) => (float[N,5,8] y) {"
     "  y = ms.Attention<num_heads = 2>(x, w, b) }",
     "shape of 'x'"},
    {"HugeCausalMask",
     "(float[1,100000000,8] x, float[8,24] w) => (float[1,100000000,8] y) {"
     "  y = ms.Attention<num_heads = 2, unidirectional = 1>(x, w) }",
     "large"},
    {"TooLargeToCount",
     "(float[4611686018427387904,4611686018427387904,8] x, float[8,24] w) => (float y) {"
     "  y = ms.Attention<num_heads = 2>(x, w) }",
     "too large"},
    {"DoublesStay",
     "(double[2,5,8] x, double[8,24] w) => (double[2,5,8] y) {"
     "  y = ms.Attention<num_heads = 2>(x, w) }",
     "float64"},
    {"InputMissing", "(float[2,5,8] x) => (float y) { y = ms.Attention<num_heads = 2>(x) }",
     "input 1"},

    {"MultiNoHeads", MultiHeads("num_heads = 0"), "num_heads"},
    {"MultiNegativeHeads", MultiHeads("num_heads = -4"), "num_heads"},
    {"MultiHeadsThatDoNotDivide", MultiHeads("num_heads = 3"), "num_heads"},
    // ONNX Runtime's kernel does not mask the last query.
    {"MultiUnidirectional", MultiHeads("num_heads = 2, unidirectional = 1"), "unidirectional"},
    {"MultiPastAlone", MultiHeads("num_heads = 2", ", float[2,2,4,4] p", ", , , , p"),
     "only one of"},
    {"MultiPastWithoutPresent",
     MultiHeads("num_heads = 2", ", float[2,2,4,4] p, float[2,2,4,4] r", ", , , , p, r"),
     "present"},
    {"MultiCacheIndirection", MultiHeads("num_heads = 2", ", int32[1,1,5] c", ", , , , , , , c"),
     "cache_indirection"},
    {"MultiBiasOfOtherWidth", MultiHeads("num_heads = 2", ", float[16] b", ", b"), "bias"},
    {"MultiRanges", MultiHeads("num_heads = 2", ", int32[4] m", ", , m"), "mask"},
    {"MultiKeyAlone",
     "(float[2,3,8] q, float[2,5,8] k) => (float[2,3,8] y) {"
     "  y = ms.MultiHeadAttention<num_heads = 2>(q, k) }",
     "input 2"},
    {"MultiPackedOfOtherHeads",
     "(float[2,3,4,3,4] p) => (float[2,3,8] y) {"
     "  y = ms.MultiHeadAttention<num_heads = 2>(p) }",
     "packed"},

    {"GroupNoHeads", GroupQuery("num_heads = 4, kv_num_heads = 0"), "kv_num_heads"},
    {"GroupHugeHeads",
     GroupQuery("num_heads = 9223372036854775807, kv_num_heads = 9223372036854775807"),
     "num_heads"},
    {"GroupHeadsThatDoNotDivide", GroupQuery("num_heads = 4, kv_num_heads = 3"), "multiple"},
    {"GroupUnknownTotal",
     "(float[1,1,64] q, float[1,1,32] k, float[1,2,5,16] p, int32[1] n, int32 t) =>"
     "  (float[1,1,64] y, float[1,2,T,16] nk, float[1,2,T,16] nv) {"
     "  y, nk, nv = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2>"
     "(q, k, k, p, p, n, t) }",
     "total_sequence_length"},
    {"GroupPastWithoutPresent",
     "(float[1,1,64] q, float[1,1,32] k, float[1,1,32] v, float[1,2,5,16] p, int32[1] n) =>"
     "  (float[1,1,64] y) <int32 t = {6}> {"
     "  y = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2>(q, k, v, p, p, n, t) }",
     "present"},
    {"GroupSmoothSoftmax", GroupQuery("num_heads = 4, kv_num_heads = 2, smooth_softmax = 1"),
     "smooth"},
    {"GroupWindowOfNothing", GroupQuery("num_heads = 4, kv_num_heads = 2, local_window_size = 0"),
     "window"},
    {"GroupNotCausal", GroupQuery("num_heads = 4, kv_num_heads = 2, causal = 0"), "causal"},
    {"GroupSlidingCache", GroupQuery("num_heads = 4, kv_num_heads = 2, sliding_window_cache = 1"),
     "sliding"},
    {"GroupHeadSink",
     GroupQuery("num_heads = 4, kv_num_heads = 2", ", float[4] h", ", , n, t, , , , , h"),
     "head_sink"},
    {"GroupQuantizedCache",
     GroupQuery("num_heads = 4, kv_num_heads = 2, k_quant_type = \"PER_TENSOR\""), "quantized"},
    {"GroupRotaryWithoutTables", GroupQuery("num_heads = 4, kv_num_heads = 2, do_rotary = 1"),
     "input 7"},
    {"GroupTablesTooShort",
     GroupQuery("num_heads = 4, kv_num_heads = 2, do_rotary = 1", ", float[3,8] c, float[3,8] s",
                ", , n, t, c, s"),
     "short"},
    {"GroupLengthsOfOtherBatch",
     "(float[1,4,64] q, float[1,4,32] k, float[1,4,32] v, int32[2] n, int32 t) =>"
     "  (float[1,4,64] y) {"
     "  y = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2>(q, k, v, , , n, t) }",
     "seqlens_k"},
    {"GroupBatchOfChunks",
     "(float[2,3,64] q, float[2,3,32] k, float[2,3,32] v, float[2,2,5,16] p, int32[2] n) =>"
     "  (float[2,3,64] y, float[2,2,8,16] nk, float[2,2,8,16] nv) <int32 t = {8}> {"
     "  y, nk, nv = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2>(q, k, v, p, p, n, t) }",
     "more than one new token"},
    {"GroupTotalOfNothing",
     "(float[1,4,64] q, float[1,4,32] k, float[1,4,32] v, int32[1] n) => (float[1,4,64] y)"
     "  <int32 t = {-3}> {"
     "  y = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2>(q, k, v, , , n, t) }",
     "total_sequence_length"},

    {"RotaryScale",
     "(float[2,3,16] x, int64[2,3] i, float[9,4] c, float[9,4] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding<scale = 2.0>(x, i, c, s) }",
     "scale"},
    {"RotaryNegativeWidth",
     "(float[2,3,16] x, int64[2,3] i, float[9,4] c, float[9,4] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding<rotary_embedding_dim = -8>(x, i, c, s) }",
     "tables"},
    {"RotaryPartWithoutHeads",
     "(float[2,3,16] x, int64[2,3] i, float[9,4] c, float[9,4] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding<rotary_embedding_dim = 8>(x, i, c, s) }",
     "num_heads"},
    {"RotaryTablesThatDoNotFit",
     "(float[2,3,16] x, int64[2,3] i, float[9,5] c, float[9,5] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding(x, i, c, s) }",
     "tables"},
    {"RotaryPackedBatches",
     "(float[2,3,16] x, int64[2,3] i, float[9,4] c, float[9,4] s) => (float[2,3,16] y) {"
     "  y = ms.RotaryEmbedding<is_packed_batching = 1>(x, i, c, s) }",
     "packed"},

    {"SkipWithMean",
     "(float[2,3,8] x, float[8] g) => (float[2,3,8] y, float[2,3,1] m) {"
     "  y, m = ms.SkipLayerNormalization(x, x, g) }",
     "mean"},
    {"SkipOfOtherShape",
     "(float[2,3,8] x, float[2,1,8] s, float[8] g) => (float[2,3,8] y) {"
     "  y = ms.SkipLayerNormalization(x, s, g) }",
     "skip"},
    {"SkipWeightOfOtherSize",
     "(float[2,3,8] x, float[7] g) => (float[2,3,8] y) {"
     "  y = ms.SkipSimplifiedLayerNormalization(x, x, g) }",
     "weight"},
    {"SimplifiedAxis",
     "(float[2,3,8] x, float[8] g) => (float[2,3,8] y) {"
     "  y = SimplifiedLayerNormalization<axis = 9223372036854775807>(x, g) }",
     "axis"},
    {"SimplifiedScaleOfOtherShape",
     "(float[2,3,8] x, float[1] g) => (float[2,3,8] y) {"
     "  y = SimplifiedLayerNormalization(x, g) }",
     "scale"},
    {"EmbedTableTooShort",
     "(int32[2,3] i, float[9,8] w, float[2,8] p, float[8] g) => (float[2,3,8] y, int32[2] m) {"
     "  y, m = ms.EmbedLayerNormalization(i, , w, p, , g, g) }",
     "positions"},

    {"BiasOfAnotherType",
     "(float[2,3,8] x, float16[8] b) => (float[2,3,8] y) { y = ms.BiasGelu(x, b) }",
     "input 1 has a different type"},
    {"GroupWindowTooLarge",
     GroupQuery("num_heads = 4, kv_num_heads = 2, local_window_size = 4611686018427387904"),
     "window"},
    {"WeightsOfAnotherType",
     "(float[2,5,8] x, float16[8,24] w) => (float[2,5,8] y) {"
     "  y = ms.Attention<num_heads = 2>(x, w) }",
     "input 1 has a different type"},
    {"GeluOfDoubles", "(double[2,3] x) => (double[2,3] y) { y = ms.Gelu(x) }", "float64"},
    {"ProductOfMatricesWithoutBatches",
     "(float[3,4] a, float[4,5] b) => (float[3,5] y) { y = ms.FusedMatMul<transBatchA = 1>(a, b) }",
     "unknown rank"},
    {"ProductOfVectors",
     "(float[4] a, float[4,5] b) => (float[5] y) { y = ms.FusedMatMul<transA = 1>(a, b) }",
     "vector"},
    {"ConvGelu",
     "(float[1,3,6,6] x, float[4,3,3,3] w) => (float[1,4,4,4] y) {"
     "  y = ms.FusedConv<activation = \"Gelu\">(x, w) }",
     "Gelu"},
    {"ConvParametersMissing",
     "(float[1,3,6,6] x, float[4,3,3,3] w) => (float[1,4,4,4] y) {"
     "  y = ms.FusedConv<activation = \"Clip\", activation_params = [0.5]>(x, w) }",
     "activation_params"},

    {"BitsBlock0", Bits("K = 32, N = 4, block_size = 0"), "block_size 0"},
    {"BitsBlock3", Bits("K = 32, N = 4, block_size = 3"), "block_size 3"},
    {"BitsBlockHuge", Bits("K = 32, N = 4, block_size = 4611686018427387904"), "block_size"},
    {"BitsThree", Bits("K = 32, N = 4, bits = 3, block_size = 16"), "3 bits"},
    {"BitsHugeN", Bits("K = 32, N = 4611686018427387904, block_size = 16"), "large"},
    {"BitsHugeK", Bits("K = 9223372036854775807, N = 4, block_size = 16"), "large"},
    {"BitsNegativeN", Bits("K = 32, N = -4, block_size = 16"), "N and K"},
    {"BitsOtherK", Bits("K = 16, N = 4, block_size = 16"), "input 1"},
    {"BitsScalesOfOtherSize",
     Bits("K = 32, N = 4, block_size = 16", "", "w, s", "float[3] s = {1,2,3}"), "input 2"},
    {"BitsZerosOfOtherSize",
     Bits("K = 32, N = 4, block_size = 16", ", uint8[3] z = {1,2,3}", "w, s, z"), "input 3"},
    {"BitsGroupIndex", Bits("K = 32, N = 4, block_size = 16", ", int32[2] g = {0, 1}", "w, s, , g"),
     "g_idx"},
    {"BitsWeightsAtRunTime",
     "(float[2,32] a, uint8[4,2,8] w, float[4,2] s) => (float[2,4] y) {"
     "  y = ms.MatMulNBits<K = 32, N = 4, block_size = 16>(a, w, s) }",
     "not constant"},
    {"LstmWeightsAtRunTime",
     "(float[5,2,8] x, int8[1,8,16] w, int8[1,4,16] r, float[1] s, int8[1] z) => (float y) {"
     "  y = ms.DynamicQuantizeLSTM<hidden_size = 4>(x, w, r, , , , , , s, z, s, z) }",
     "input 1 is not constant"},
    {"LstmScalesThatDoNotFit",
     "(float[5,2,8] x, int8[1,8,16] w, int8[1,4,16] r, float[3] s, int8[3] z) => (float y) {"
     "  y = ms.DynamicQuantizeLSTM<hidden_size = 4>(x, w, r, , , , , , s, z, s, z) }",
     "one scale for each direction"},
    {"QuantizedWeightsAtRunTime",
     "(uint8[2,5,8] x, uint8[8,24] w, float[24] b, float s) => (float[2,5,8] y) {"
     "  y = ms.QAttention<num_heads = 2>(x, w, b, s, s) }",
     "constant"},
};
INSTANTIATE_TEST_SUITE_P(Contrib, ContribKeptTest, testing::ValuesIn(kKeptNodes),
                         testing::PrintToStringParamName());

struct Inferred {
  const char* name;
  const char* graph;  // its only output is r = Relu(y)
  std::vector<int64_t> dims;
};

std::ostream& operator<<(std::ostream& out, const Inferred& inferred) {
  return out << inferred.name;
}

class ContribInferenceTest : public testing::TestWithParam<Inferred> {};

TEST_P(ContribInferenceTest, ShapesGoOnBehindWhatStays) {
  const auto model =
      ImportBytes(ContribModel(GetParam().graph).SerializeAsString(), "", WithEvaluator());
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->graph.nodes.size(), 2) << NodesText(model->graph);
  const Value& y = model->graph.values[model->graph.outputs[0]];
  EXPECT_EQ(y.type, DataType::kFloat);
  ASSERT_TRUE(y.is_static());
  EXPECT_EQ(y.dims(), GetParam().dims);
}

const Inferred kInferred[] = {
    {"Attention",
     "(float[2,5,6] x, float[6,24] w) => (float[A,B,C] r) {"
     "  y = ms.Attention<num_heads = 2, do_rotary = 1>(x, w) r = Relu(y) }",
     {2, 5, 8}},
    {"AttentionOfWidths",
     "(float[2,5,6] x, float[6,20] w) => (float[A,B,C] r) {"
     "  y = ms.Attention<num_heads = 2, do_rotary = 1, qkv_hidden_sizes = [8,8,4]>(x, w)"
     "  r = Relu(y) }",
     {2, 5, 4}},
    {"DynamicQuantizeLSTM",
     "(float[5,2,8] x, int8[1,8,16] w, int8[1,4,16] k, float[1] s, int8[1] z) =>"
     "  (float[A,B,C,D] r) {"
     "  y = ms.DynamicQuantizeLSTM<hidden_size = 4>(x, w, k, , , , , , s, z, s, z) r = Relu(y) }",
     {5, 1, 2, 4}},
    {"QAttention",
     "(uint8[2,5,8] x, uint8[8,24] w, float[24] b, float s) => (float[A,B,C] r) {"
     "  y = ms.QAttention<num_heads = 2>(x, w, b, s, s) r = Relu(y) }",
     {2, 5, 8}},
    {"MultiHeadAttention",
     "(float[2,3,8] q, float[2,5,8] k, float[2,5,12] v) => (float[A,B,C] r) {"
     "  y = ms.MultiHeadAttention<num_heads = 2, unidirectional = 1>(q, k, v) r = Relu(y) }",
     {2, 3, 12}},
    {"GroupQueryAttention",
     "(float[1,4,64] q, float[1,4,32] k, int32[1] n, int32 t) => (float[A,B,C] r) {"
     "  y = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, causal = 0>"
     "(q, k, k, , , n, t) r = Relu(y) }",
     {1, 4, 64}},
    {"GroupQueryAttentionPacked",
     "(float[1,4,128] q, int32[1] n, int32 t) => (float[A,B,C] r) {"
     "  y = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, causal = 0>"
     "(q, , , , , n, t) r = Relu(y) }",
     {1, 4, 64}},
    {"MatMulNBits",
     "(float[2,3,32] a, uint8[5,2,8] w, float[5,2] s) => (float[A,B,C] r) {"
     "  y = ms.MatMulNBits<K = 32, N = 5, block_size = 16>(a, w, s) r = Relu(y) }",
     {2, 3, 5}},
    {"SkipLayerNormalization",
     "(float[2,3,8] x, float[8] g) => (float[A,B,C] r) {"
     "  y = ms.SkipLayerNormalization<newer = 1>(x, x, g) r = Relu(y) }",
     {2, 3, 8}},
    {"EmbedLayerNormalization",
     "(int32[2,3] i, float[9,8] w, float[9,8] p, float[8] g) => (float[A,B,C] r) {"
     "  y, m = ms.EmbedLayerNormalization<newer = 1>(i, , w, p, , g, g) r = Relu(y) }",
     {2, 3, 8}},
    {"RotaryEmbedding",
     "(float[2,3,16] x, int64[2,3] i, float[9,4] c) => (float[A,B,C] r) {"
     "  y = ms.RotaryEmbedding<scale = 2.0>(x, i, c, c) r = Relu(y) }",
     {2, 3, 16}},
};
INSTANTIATE_TEST_SUITE_P(Contrib, ContribInferenceTest, testing::ValuesIn(kInferred),
                         testing::PrintToStringParamName());

// Nodes of the body have the call's origin; nodes that prepare integers have a separate one.
TEST(ContribOriginTest, IntegersAreOriginsOfTheirOwn) {
  const auto model = ImportBytes(
      ContribModel(OneAttention("num_heads = 2", ", int32[2,5] m", ", m")).SerializeAsString(), "",
      WithEvaluator());
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->origins.size(), 2);
  EXPECT_EQ(model->origins[0].id, "/#0");
  EXPECT_EQ(model->origins[1].id, "/#0/mask");
  for (const Node& node : model->graph.nodes) {
    const bool is_mask = node.op_type == "Greater" || node.op_type == "Where" ||
                         model->graph.values[node.inputs[0]].type == DataType::kInt32;
    EXPECT_EQ(node.origins, std::vector<OriginId>{is_mask ? 1 : 0}) << node.op_type;
  }
}

// A conflict with a type that the file declares is an error that names the node.
TEST(ContribErrorTest, NamesTheNode) {
  const auto model = ImportBytes(
      ContribModel("(float[2,3,8] x) => (float16[2,3,8] y) { y = ms.Gelu(x) }").SerializeAsString(),
      "", WithEvaluator());
  EXPECT_THAT(model, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/#0")));
}

// If a constant cannot be computed, that is an error, not a reason to keep the form, whatever its
// status code.
TEST(ContribErrorTest, AnErrorOfAConstantIsAnError) {
  auto model = Read(ContribModel(
      "(uint8[3,6] q, int8[6,5] m, float s, float v, uint8 z, int8 wz) => (float[3,5] y) {"
      "  y = ms.MatMulIntegerToFloat(q, m, s, v, z, wz) }"));
  ASSERT_THAT(model, IsOk());
  const Node node = model->graph.nodes.back();
  NameScope names(model->graph);
  absl::Status failed = absl::UnimplementedError("the constant cannot be computed");
  const ContribBody::AsideValues asides;
  ContribBody body(
      *model, model->graph, names, node, [&](ValueId) { return failed; },
      /*gap_in_caches=*/false, asides);
  EXPECT_EQ(ExpandContrib(body).status(), failed);
  EXPECT_FALSE(body.kept());
}

}  // namespace
}  // namespace anemone
