// Operators of com.microsoft on the engine: the units that their function bodies become, and that
// the results agree with ONNX Runtime. Only nodes that compute with integers are on the CPU.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

std::string Ms(const std::string& graph) {
  return absl::StrReplaceAll(graph, {{"ms.", "com.microsoft."}});
}

// Random bytes for packed weights, such as "1, 7, 3".
std::string Bytes(int count, int modulus = 256) {
  std::mt19937 random(3);
  std::vector<int> bytes(count);
  for (int& byte : bytes) byte = static_cast<int>(random() % modulus);
  return absl::StrJoin(bytes, ", ");
}

// Twelve positions, four heads of eight elements.
std::string PackedHeads(const std::string& attributes, const std::string& more_inputs,
                        const std::string& more_outputs, const std::string& arguments,
                        const std::string& outputs = "y") {
  return Ms(absl::StrCat("(float[1,12,32] x", more_inputs, ") => (float[1,12,32] y", more_outputs,
                         ") <float[32,96] w, float[96] b> { ", outputs,
                         " = ms.Attention<num_heads = 4", attributes, ">(x, w, b", arguments,
                         ") }"));
}
// Query, key and value are slices of one product. Each is transposed from (positions, heads) to
// (heads, positions), then to the order of SDPA, and the result back.
const std::vector<std::string> kPacked = Units({{"MatrixMultiplication", 1},
                                                {"ElementWise", 1},
                                                {"InputView", 3},
                                                {"Transpose", 8},
                                                {"SDPA", 1}});

const std::vector<Case> kAttentionCases = {
    {.name = "plain",
     .model = PackedHeads("", "", "", ""),
     .units = kPacked,
     .low = -0.5,
     .high = 0.5},
    {.name = "causal",
     .model = PackedHeads(", unidirectional = 1", "", "", ""),
     .units = kPacked,
     .low = -0.5,
     .high = 0.5},
    {.name = "key_mask",
     .model = PackedHeads("", ", int32[1,12] m", "", ", m"),
     .units = kPacked,
     .on_cpu = {"/#0/mask"},
     .low = -0.5,
     .high = 0.5},
    {.name = "key_mask_causal",
     .model = PackedHeads(", unidirectional = 1", ", int32[1,12] m", "", ", m"),
     .units = kPacked,
     .on_cpu = {"/#0/mask"},
     .low = -0.5,
     .high = 0.5},
    {.name = "score_mask",
     .model = PackedHeads("", ", int32[1,12,12] m", "", ", m"),
     .units = kPacked,
     .on_cpu = {"/#0/mask"},
     .low = -0.5,
     .high = 0.5},
    {.name = "added",
     .model = PackedHeads("", ", float[1,1,12,12] a", "", ", , , a"),
     .units = kPacked,
     .low = -0.5,
     .high = 0.5},
    {.name = "present",
     .model = PackedHeads("", "", ", float[2,1,4,12,8] n", "", "y, n"),
     .units = Units({{"MatrixMultiplication", 1},
                     {"ElementWise", 1},
                     {"InputView", 3},
                     {"Transpose", 9},
                     {"Concat", 1},
                     {"SDPA", 1}}),
     .low = -0.5,
     .high = 0.5},
    {.name = "past",
     .model = PackedHeads(", unidirectional = 1", ", float[2,1,4,6,8] p", ", float[2,1,4,18,8] n",
                          ", , p", "y, n"),
     .units = Units({{"MatrixMultiplication", 1},
                     {"ElementWise", 1},
                     {"InputView", 5},
                     {"Transpose", 8},
                     {"Concat", 3},
                     {"SDPA", 1}}),
     .low = -0.5,
     .high = 0.5},
    {.name = "quantized",
     .model = Ms(
         absl::StrCat("(uint8[1,12,16] x, int32[1,12] m) => (float[1,12,16] y) <uint8[16,48] w = {",
                      Bytes(16 * 48),
                      "}, float[48] b, float xs = {0.5}, float ws = {0.004}, uint8 z = {128}> { "
                      "y = ms.QAttention<num_heads = 2>(x, w, b, xs, ws, m, , z) }")),
     .units = Units({{"MatrixMultiplication", 1},
                     {"ElementWise", 1},
                     {"InputView", 3},
                     {"Transpose", 8},
                     {"SDPA", 1},
                     {"GOC", 1}}),
     .on_cpu = {"/#0/mask"},
     .low = -0.5,
     .high = 0.5},
};
INSTANTIATE_TEST_SUITE_P(ContribAttention, KernelTest, testing::ValuesIn(kAttentionCases),
                         CaseName);

// Ten queries and twelve keys, four heads of eight elements.
std::string Multi(const std::string& attributes, const std::string& more_inputs,
                  const std::string& more_outputs, const std::string& arguments,
                  const std::string& outputs = "y") {
  return Ms(absl::StrCat("(float[1,10,32] q, float[1,12,32] k, float[1,12,32] v", more_inputs,
                         ") => (float[1,10,32] y", more_outputs, ") <float[96] b> { ", outputs,
                         " = ms.MultiHeadAttention<num_heads = 4", attributes, ">(q, k, v",
                         arguments, ") }"));
}

const std::vector<std::string> kMulti = Units({{"Transpose", 8}, {"SDPA", 1}});
const std::vector<std::string> kMultiBias =
    Units({{"ElementWise", 3}, {"Transpose", 8}, {"SDPA", 1}});

const std::vector<Case> kMultiHeadCases = {
    {.name = "plain", .model = Multi("", "", "", ""), .units = kMulti},
    {.name = "bias", .model = Multi(", scale = 0.4", "", "", ", b"), .units = kMultiBias},
    {.name = "lengths",
     .model = Multi("", ", int32[1] m", "", ", b, m"),
     .units = kMultiBias,
     .on_cpu = {"/#0/mask"}},
    {.name = "key_mask",
     .model = Multi("", ", int32[1,12] m", "", ", b, m"),
     .units = kMultiBias,
     .on_cpu = {"/#0/mask"}},
    {.name = "added_to_all_heads",
     .model = Multi("", ", float[1,1,10,12] a", "", ", b, , a"),
     .units = kMultiBias},
    {.name = "by_head",
     .model = Ms("(float[1,10,32] q, float[1,4,12,8] k, float[1,4,12,8] v) => (float[1,10,32] y) "
                 "{ y = ms.MultiHeadAttention<num_heads = 4>(q, k, v) }"),
     .units = Units({{"Transpose", 6}, {"SDPA", 1}})},
    {.name = "past",
     .model = Multi("", ", float[1,4,6,8] pk, float[1,4,6,8] pv",
                    ", float[1,4,18,8] nk, float[1,4,18,8] nv", ", b, , , pk, pv", "y, nk, nv"),
     .units = Units({{"ElementWise", 3}, {"Transpose", 8}, {"Concat", 2}, {"SDPA", 1}})},
    // ONNX Runtime's optimizer fuses only the products if it does not recognize the attention.
    {.name = "fused_products",
     .model = Ms("(float[1,4,10,8] q, float[1,4,12,8] k, float[1,4,12,8] v) => (float[1,4,10,8] y) "
                 "{ s = ms.FusedMatMul<transB = 1, alpha = 0.35>(q, k) p = Softmax<axis = -1>(s) "
                 "y = ms.FusedMatMul(p, v) }"),
     .units = Units({{"Transpose", 4}, {"SDPA", 1}})},
};
INSTANTIATE_TEST_SUITE_P(ContribMultiHead, KernelTest, testing::ValuesIn(kMultiHeadCases),
                         CaseName);

// Four query heads, two key and value heads, sixteen elements each.
std::string Group(int queries, int present, const std::string& attributes,
                  const std::string& more_inputs, const std::string& initializers,
                  const std::string& arguments) {
  const std::string cache = absl::StrCat("float[1,2,", present, ",16] ");
  return Ms(absl::StrCat("(float[1,", queries, ",64] q, float[1,", queries, ",32] k, float[1,",
                         queries, ",32] v", more_inputs, ") => (float[1,", queries, ",64] y, ",
                         cache, "nk, ", cache, "nv) <float[32,8] c, float[32,8] s, ", initializers,
                         "> { y, nk, nv = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2",
                         attributes, ">(q, k, v, ", arguments, ") }"));
}

// The heads of key and value are repeated for the query heads.
const std::vector<std::string> kGroup = Units({{"Broadcast", 2}, {"Transpose", 10}, {"SDPA", 1}});
const std::vector<std::string> kGroupRotary = Units({{"Broadcast", 2},
                                                     {"Concat", 2},
                                                     {"ElementWise", 6},
                                                     {"InputView", 4},
                                                     {"Transpose", 10},
                                                     {"SDPA", 1}});

const std::vector<Case> kGroupCases = {
    {.name = "prompt",
     .model = Group(10, 10, "", "", "int32[1] n = {9}, int32 t = {10}", ", , n, t"),
     .units = kGroup},
    {.name = "prompt_rotary",
     .model =
         Group(10, 10, ", do_rotary = 1", "", "int32[1] n = {9}, int32 t = {10}", ", , n, t, c, s"),
     .units = kGroupRotary},
    {.name = "prompt_rotary_interleaved",
     .model = Group(10, 10, ", do_rotary = 1, rotary_interleaved = 1", "",
                    "int32[1] n = {9}, int32 t = {10}", ", , n, t, c, s"),
     .units = Units({{"Broadcast", 2},
                     {"Concat", 2},
                     {"ElementWise", 6},
                     {"InputView", 4},
                     {"Transpose", 14},
                     {"SDPA", 1}})},
    {.name = "prompt_window",
     .model = Group(10, 10, ", local_window_size = 4", "", "int32[1] n = {9}, int32 t = {10}",
                    ", , n, t"),
     .units = kGroup},
    {.name = "prompt_in_halves",
     .model = Ms("(float[1,10,64] q, float[1,10,32] k) => (float[1,10,64] y) <float[32,8] c, "
                 "float[32,8] s, int32[1] n = {9}, int32 t = {10}> { qh = Cast<to = 10>(q) "
                 "kh = Cast<to = 10>(k) ch = Cast<to = 10>(c) sh = Cast<to = 10>(s) "
                 "h = ms.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = 1>"
                 "(qh, kh, kh, , , n, t, ch, sh) y = Cast<to = 1>(h) }"),
     .units = kGroupRotary},
    {.name = "step",
     .model = Group(1, 10, ", do_rotary = 1", ", float[1,2,9,16] pk, float[1,2,9,16] pv",
                    "int32[1] n = {9}, int32 t = {10}", "pk, pv, n, t, c, s"),
     .units = Units(
         {{"Concat", 4}, {"ElementWise", 6}, {"InputView", 4}, {"Transpose", 4}, {"SDPA", 1}})},
    {.name = "step_in_cache",
     .model =
         Group(1, 12, ", do_rotary = 1", ", float[1,2,12,16] pk, float[1,2,12,16] pv, int32[1] n",
               "int32 t = {5}", "pk, pv, n, t, c, s"),
     .units = Units(
         {{"Concat", 2}, {"ElementWise", 12}, {"InputView", 4}, {"Transpose", 4}, {"SDPA", 1}}),
     .on_cpu = {"/#0/positions", "/#0/positions-of-keys"}},
};
INSTANTIATE_TEST_SUITE_P(ContribGroupQuery, KernelTest, testing::ValuesIn(kGroupCases), CaseName);

const std::vector<Case> kOtherContribCases = {
    {.name = "rotary",
     .model = Ms("(float[1,12,32] x, int64[1,12] i) => (float[1,12,32] y) <float[16,4] c, "
                 "float[16,4] s> { y = ms.RotaryEmbedding(x, i, c, s) }"),
     .units = Units({{"InputView", 2}, {"Concat", 1}, {"ElementWise", 3}}),
     .on_cpu = {"/#0/positions"}},
    {.name = "rotary_by_head_in_part",
     .model = Ms("(float[1,4,12,16] x) => (float[1,4,12,16] y) <int64[1] i = {2}, float[16,4] c, "
                 "float[16,4] s> { y = ms.RotaryEmbedding<num_heads = 4, rotary_embedding_dim = "
                 "8>(x, i, c, s) }"),
     .units = Units({{"InputView", 4}, {"Concat", 2}, {"ElementWise", 3}})},
    {.name = "skip_layer_norm",
     .model = Ms("(float[1,12,32] x, float[1,12,32] s) => (float[1,12,32] y, float[1,12,32] z) "
                 "<float[32] g, float[32] b, float[32] c> { "
                 "y, , , z = ms.SkipLayerNormalization(x, s, g, b, c) }"),
     .units = {"ElementWise", "ElementWise", "LayerNormalization"}},
    {.name = "skip_simplified",
     .model = Ms("(float[1,12,32] x, float[1,12,32] s) => (float[1,12,32] y, float[1,12,32] z) "
                 "<float[32] g> { y, , , z = ms.SkipSimplifiedLayerNormalization(x, s, g) }"),
     .units = {"ElementWise", "L2Normalization", "ElementWise"}},
    {.name = "simplified",
     .model = "(float[1,12,32] x) => (float[1,12,32] y) <float[32] g> "
              "{ y = SimplifiedLayerNormalization(x, g) }",
     .units = {"L2Normalization", "ElementWise"}},
    {.name = "embed",
     .model = Ms("(int32[1,12] i, int32[1,12] s) => (float[1,12,32] y) <float[5,32] w, "
                 "float[16,32] p, float[2,32] t, float[32] g, float[32] b> { "
                 "y, m = ms.EmbedLayerNormalization(i, s, w, p, t, g, b) }"),
     .units = {"ElementWise", "ElementWise", "LayerNormalization"},
     .on_cpu = {"/#0/embeddings"}},
    {.name = "gelu",
     .model = Ms("(float[1,12,32] x) => (float[1,12,32] y) { y = ms.Gelu(x) }"),
     .units = {"Neuron"}},
    {.name = "bias_gelu",
     .model =
         Ms("(float[1,12,32] x) => (float[1,12,32] y) <float[32] b> { y = ms.BiasGelu(x, b) }"),
     .units = {"ElementWise", "Neuron"}},
    {.name = "fast_gelu",
     .model =
         Ms("(float[1,12,32] x) => (float[1,12,32] y) <float[32] b> { y = ms.FastGelu(x, b) }"),
     .units = {"ElementWise", "Neuron"}},
    {.name = "quick_gelu",
     .model = Ms("(float[1,12,32] x) => (float[1,12,32] y) { y = ms.QuickGelu(x) }"),
     .units = {"GOC", "Neuron", "ElementWise"}},
    {.name = "quick_gelu_as_silu",
     .model = Ms("(float[1,12,32] x) => (float[1,12,32] y) { y = ms.QuickGelu<alpha = 1.0>(x) }"),
     .units = {"Neuron"}},
    {.name = "conv_relu",
     .model = Ms("(float[1,8,6,6] x) => (float[1,4,4,4] y) <float[4,8,3,3] w, float[4] b> { "
                 "y = ms.FusedConv<activation = \"Relu\">(x, w, b) }"),
     .units = {"Conv", "Neuron"}},
    {.name = "weights_of_4_bits",
     .model = Ms(absl::StrCat("(float[1,12,32] x) => (float[1,12,16] y) <uint8[16,2,8] w = {",
                              Bytes(16 * 2 * 8),
                              "}, float[16,2] s> { y = ms.MatMulNBits<K = 32, "
                              "N = 16, bits = 4, block_size = 16>(x, w, s) }")),
     .units = {"MatrixMultiplication"}},
    {.name = "weights_of_8_bits",
     .model = Ms(absl::StrCat("(float[1,12,32] x) => (float[1,12,16] y) <uint8[16,2,16] w = {",
                              Bytes(16 * 2 * 16),
                              "}, float[16,2] s, float[16] b> { "
                              "y = ms.MatMulNBits<K = 32, N = 16, bits = 8, block_size = 16>"
                              "(x, w, s, , , b) }")),
     .units = {"MatrixMultiplication", "ElementWise"}},
    {.name = "weights_of_4_bits_in_halves",
     .model = Ms(absl::StrCat("(float[1,12,32] x) => (float[1,12,16] y) <uint8[16,2,8] w = {",
                              Bytes(16 * 2 * 8),
                              "}, float[16,2] s> { h = Cast<to = 10>(x) "
                              "r = Cast<to = 10>(s) z = ms.MatMulNBits<K = 32, N = 16, bits = 4, "
                              "block_size = 16>(h, w, r) y = Cast<to = 1>(z) }")),
     .units = {"MatrixMultiplication"}},
    {.name = "skip_layer_norm_in_halves",
     .model = Ms("(float[1,12,32] x, float[1,12,32] s) => (float[1,12,32] y) <float[32] g, "
                 "float[32] b> { xh = Cast<to = 10>(x) sh = Cast<to = 10>(s) gh = Cast<to = 10>(g) "
                 "bh = Cast<to = 10>(b) h = ms.SkipLayerNormalization(xh, sh, gh, bh) "
                 "y = Cast<to = 1>(h) }"),
     .units = {"ElementWise", "LayerNormalization"}},
    {.name = "skip_simplified_in_halves",
     .model = Ms("(float[1,12,32] x, float[1,12,32] s) => (float[1,12,32] y) <float[32] g> { "
                 "xh = Cast<to = 10>(x) sh = Cast<to = 10>(s) gh = Cast<to = 10>(g) "
                 "h = ms.SkipSimplifiedLayerNormalization<epsilon = 1e-5>(xh, sh, gh) "
                 "y = Cast<to = 1>(h) }"),
     .units = {"ElementWise", "L2Normalization", "ElementWise"}},
    // Forms that stay on the CPU, where ONNX Runtime's kernels run them.
    {.name = "stays_over_other_keys",
     .model = Multi(", unidirectional = 1", "", "", ", b"),
     .units = {},
     .on_cpu = {"/#0"}},
    {.name = "stays_with_a_scale_of_one",
     .model = "(float[1,12,32] x) => (float[1,12,32] y) <float[1] g> "
              "{ s = SimplifiedLayerNormalization(x, g) y = Relu(s) }",
     .units = {"Neuron"},
     .on_cpu = {"/#0"}},
    {.name = "stays_with_smooth_softmax",
     .model =
         Group(10, 10, ", smooth_softmax = 1", "", "int32[1] n = {9}, int32 t = {10}", ", , n, t"),
     .units = {},
     .on_cpu = {"/#0"}},
    // BERT after ONNX Runtime's optimizer: everything except the embeddings is one segment.
    {.name = "encoder",
     .model =
         Ms("(int32[1,12] i, int32[1,12] m) => (float[1,12,32] y) <float[5,32] e, float[16,32] "
            "p, float[32] g, float[32] b, float[32,96] w, float[96] wb, float[32,32] o, "
            "float[32,64] u, float[64] ub, float[64,32] d, float[32] db> { "
            "x, k = ms.EmbedLayerNormalization(i, , e, p, , g, b, m) "
            "a = ms.Attention<num_heads = 4>(x, w, wb, k) ao = MatMul(a, o) "
            "s = ms.SkipLayerNormalization(ao, x, g, b, b) h = MatMul(s, u) "
            "f = ms.BiasGelu(h, ub) r = MatMul(f, d) "
            "y = ms.SkipLayerNormalization(r, s, g, b, db) }"),
     .units = Units({{"MatrixMultiplication", 4},
                     {"ElementWise", 8},
                     {"GOC", 1},
                     {"InputView", 3},
                     {"LayerNormalization", 3},
                     {"Neuron", 1},
                     {"Transpose", 8},
                     {"SDPA", 1}}),
     .on_cpu = {"/#0/embeddings"},
     .low = -0.5,
     .high = 0.5},
};
INSTANTIATE_TEST_SUITE_P(Contrib, KernelTest, testing::ValuesIn(kOtherContribCases), CaseName);

}  // namespace
}  // namespace anemone
