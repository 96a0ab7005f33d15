// Attention in the forms that exporters write: each becomes one SDPA unit and agrees with ONNX
// Runtime. Nodes that only look like attention are lowered one by one.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

// Query, key and value are transposed from (heads, sequence) to (sequence, heads), and the result
// back.
const std::vector<std::string> kUnits = {"Transpose", "Transpose", "Transpose", "SDPA",
                                         "Transpose"};
// With one head, no transposes are necessary.
const std::vector<std::string> kOne = {"SDPA"};

std::vector<std::string> With(std::vector<std::string> units, std::vector<std::string> more) {
  units.insert(units.end(), more.begin(), more.end());
  return units;
}

// q, k and v have `heads` heads of 8 elements; `nodes` compute y.
std::string Heads(int heads, int queries, int keys, const std::string& more_inputs,
                  const std::string& initializers, const std::string& nodes) {
  return absl::Substitute(
      "(float[1,$0,$1,8] q, float[1,$0,$2,8] k, float[1,$0,$2,8] v$3) => (float[1,$0,$1,8] y) "
      "<$4> { $5 }",
      heads, queries, keys, more_inputs.empty() ? "" : ", " + more_inputs, initializers, nodes);
}

// The same, with the scores before scaling as `d`.
std::string Scores(int heads, int queries, int keys, const std::string& more_inputs,
                   const std::string& initializers, const std::string& nodes) {
  return Heads(heads, queries, keys, more_inputs,
               absl::StrCat("float c = {0.35}", initializers.empty() ? "" : ", ", initializers),
               absl::StrCat("t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) ", nodes));
}

// torch.onnx.symbolic_opset14.scaled_dot_product_attention: query and key are both multiplied by
// the square root of the scale, which is computed from the query's shape at run time.
const char kTorchScript[] =
    "qs = Shape(q) last = Slice(qs, minus1, most) size = Cast<to = 1>(last) root = Sqrt(size) "
    "scale = Div(one, root) kt = Transpose<perm = [0,1,3,2]>(k) r1 = Sqrt(scale) l = Mul(q, r1) "
    "r2 = Sqrt(scale) r = Mul(kt, r2) s = MatMul(l, r) ";
const char kTorchScriptConstants[] =
    "int64[1] minus1 = {-1}, int64[1] minus2 = {-2}, int64[1] most = {9223372036854775807}, "
    "float[1] one = {1}, float[1] zero = {0}, float[1] low = {-inf}";
// The causal mask of that function: a triangle of ones whose zeros become -inf.
const char kTorchScriptTriangle[] =
    "ks = Shape(k) rows = Slice(qs, minus2, minus1) columns = Slice(ks, minus2, minus1) "
    "area = Concat<axis = 0>(rows, columns) ones = Expand(one, area) lower = Trilu<upper = "
    "0>(ones) "
    "above = Equal(lower, zero) m = Where(above, low, zero) ";

// torch.onnx's torchlib (dynamo): k is reshaped to rank 3 for the transpose, for any batch.
const char kDynamo[] =
    "k3 = Reshape(k, flat) t3 = Transpose<perm = [0,2,1]>(k3) kt = Reshape(t3, full) "
    "l = Mul(q, c) r = Mul(kt, c) s = MatMul(l, r) ";
const char kDynamoConstants[] =
    "float c = {0.5946}, int64[3] flat = {-1, 12, 8}, int64[4] full = {1, 4, 8, 12}, "
    "float zero = {0}, float low = {-inf}";

const std::vector<std::string> kPackedUnits =
    With(kUnits, {"MatrixMultiplication", "InputView", "InputView", "InputView"});

// If the pattern includes the nodes that split the packed value, the heads are sliced directly.
const std::vector<std::string> kUnpackedUnits = {
    "InputView", "InputView", "InputView", "MatrixMultiplication",
    "SDPA",      "Transpose", "Transpose"};

// q, k and v taken from a packed projection as in timm's ViT: [3, B, H, N, D].
const char kThirds[] = "int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}";
const char kGathered[] =
    "p5 = Reshape(p, five) h = Transpose<perm = [2,0,3,1,4]>(p5) q = Gather<axis = 0>(h, i0) "
    "k = Gather<axis = 0>(h, i1) v = Gather<axis = 0>(h, i2) ";

// q, k and v from one packed projection: 6 positions, 2 heads of 4 elements.
std::string Packed(const std::string& initializers, const std::string& nodes) {
  return absl::Substitute(
      "(float[1,6,8] x) => (float[1,6,8] y) <float[8,24] w, float c = {0.5}, int64[3] flat = {1, "
      "6, "
      "8}, int64[4] heads = {1, 6, 2, 4}, $0> { p = MatMul(x, w) $1 kt = Transpose<perm = "
      "[0,1,3,2]>(k) d = MatMul(q, kt) s = Mul(d, c) a = Softmax<axis = -1>(s) o = MatMul(a, v) "
      "r = Transpose<perm = [0,2,1,3]>(o) y = Reshape(r, flat) }",
      initializers, nodes);
}

const char kEnd[] = "p = Softmax<axis = -1>(s) y = MatMul(p, v)";
const char kNanGuard[] =
    "p = Softmax<axis = -1>(s) bad = IsNaN(p) g = Where(bad, zero, p) y = MatMul(g, v)";

std::string Torch(const std::string& more_inputs, const std::string& nodes) {
  return Heads(4, 10, 12, more_inputs, kTorchScriptConstants, absl::StrCat(kTorchScript, nodes));
}
std::string Dynamo(const std::string& more_inputs, const std::string& nodes) {
  return Heads(4, 10, 12, more_inputs, kDynamoConstants, absl::StrCat(kDynamo, nodes));
}

const std::vector<Case> kTorchCases = {
    {.name = "torchscript", .model = Torch("", kEnd), .opset = 17, .units = kUnits},
    {.name = "torchscript_causal",
     .model = Torch("", absl::StrCat(kTorchScriptTriangle,
                                     "e = Add(s, m) p = Softmax<axis = -1>(e) "
                                     "y = MatMul(p, v)")),
     .opset = 17,
     .units = kUnits},
    {.name = "torchscript_float_mask",
     .model =
         Torch("float[1,1,10,12] m", "e = Add(s, m) p = Softmax<axis = -1>(e) y = MatMul(p, v)"),
     .opset = 17,
     .units = kUnits},
    {.name = "torchscript_bool_mask",
     .model = Torch("bool[10,12] b",
                    "m = Where(b, zero, low) e = Add(s, m) p = Softmax<axis = -1>(e) "
                    "y = MatMul(p, v)"),
     .opset = 17,
     .units = With(kUnits, {"GOC"})},
    {.name = "torchscript_dropout",
     .model = Heads(4, 10, 12, "", absl::StrCat(kTorchScriptConstants, ", float rate = {0.1}"),
                    absl::StrCat(kTorchScript,
                                 "p = Softmax<axis = -1>(s) g = Dropout(p, rate) "
                                 "y = MatMul(g, v)")),
     .opset = 17,
     .units = kUnits},
    {.name = "dynamo", .model = Dynamo("", kEnd), .opset = 18, .units = kUnits},
    {.name = "dynamo_float_mask",
     .model =
         Dynamo("float[1,1,10,12] m", "e = Add(s, m) p = Softmax<axis = -1>(e) y = MatMul(p, v)"),
     .opset = 18,
     .units = kUnits},
    {.name = "dynamo_bool_mask_and_nan_guard",
     .model = Dynamo("bool[1,1,10,12] b",
                     "m = Where(b, zero, low) e = Add(s, m) p = Softmax<axis = -1>(e) "
                     "bad = IsNaN(p) g = Where(bad, zero, p) y = MatMul(g, v)"),
     .opset = 18,
     .units = With(kUnits, {"GOC", "ElementWise", "Reduction", "ElementWise", "ElementWise"})},
    {.name = "dynamo_types_are_cast_alike",
     .model =
         Heads(4, 10, 12, "", kDynamoConstants,
               "k3 = Reshape(k, flat) t3 = Transpose<perm = [0,2,1]>(k3) "
               "kt = Reshape(t3, full) lc = CastLike(c, q) l = Mul(q, lc) rc = CastLike(c, kt) "
               "r = Mul(kt, rc) s = MatMul(l, r) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .opset = 18,
     .units = kUnits},
};
INSTANTIATE_TEST_SUITE_P(AttentionOfTorch, KernelTest, testing::ValuesIn(kTorchCases), CaseName);

// If all keys of a query are masked, its probabilities are NaN, and the guard sets them to 0. There
// are only two keys, so that this happens for some queries of a random mask.
const std::vector<std::string> kCleared = {"Transpose",   "Transpose",  "Transpose", "SDPA",
                                           "Transpose",   "GOC",        "Reduction", "ElementWise",
                                           "ElementWise", "ElementWise"};
const std::vector<std::string> kClearedByCondition = {"Transpose", "Transpose",   "Transpose",
                                                      "SDPA",      "Transpose",   "GOC",
                                                      "Reduction", "ElementWise", "ElementWise"};
const char kInfinities[] = "float zero = {0}, float low = {-inf}";
const char kGuardedMask[] = "m = Where(b, zero, low) n = Mul(d, c) s = Add(n, m) ";
// PyTorch's _safe_softmax, decomposed.
const char kSafe[] =
    "p = Softmax<axis = -1>(s) isinf = Equal(s, low) fine = Not(isinf) i = Cast<to = 7>(fine) "
    "most = ReduceMax<keepdims = 1>(i, last) any = Cast<to = 9>(most) none = Not(any) "
    "g = Where(none, zeros, p) y = MatMul(g, v)";

const std::vector<Case> kGuardCases = {
    {.name = "nan_guard_at_run_time",
     .model = Scores(4, 10, 2, "bool[10,2] b", kInfinities, absl::StrCat(kGuardedMask, kNanGuard)),
     .units = kCleared},
    {.name = "nan_guard_without_mask",
     .model = Scores(4, 10, 2, "", kInfinities, absl::StrCat("s = Mul(d, c) ", kNanGuard)),
     .units = kUnits},
    {.name = "nan_guard_of_finite_mask",
     .model = Scores(4, 10, 2, "bool[10,2] b", "float zero = {0}, float low = {-3.4e38}",
                     absl::StrCat(kGuardedMask, kNanGuard)),
     .units = With(kUnits, {"GOC"})},
    {.name = "nan_guard_of_constant_mask",
     .model = Scores(4, 3, 2, "", "float zero = {0}, float[3,2] m = {0, -inf, -inf, -inf, -inf, 0}",
                     absl::StrCat("n = Mul(d, c) s = Add(n, m) ", kNanGuard)),
     .units = With(kUnits, {"ElementWise"})},
    {.name = "nan_guard_of_constant_mask_with_keys_for_all",
     .model = Scores(4, 3, 2, "", "float zero = {0}, float[3,2] m = {0, -inf, 0, 0, -inf, 0}",
                     absl::StrCat("n = Mul(d, c) s = Add(n, m) ", kNanGuard)),
     .units = kUnits},
    {.name = "safe_softmax",
     .model = Scores(4, 10, 2, "bool[10,2] b",
                     "float zero = {0}, float low = {-inf}, int64[1] last = {-1}, float[1] zeros = "
                     "{0}",
                     absl::StrCat(kGuardedMask, kSafe)),
     .opset = 18,
     .units = kCleared},
    {.name = "safe_softmax_by_all",
     .model = Scores(4, 10, 2, "bool[10,2] b",
                     "float zero = {0}, float low = {-inf}, int64[1] last = {-1}",
                     absl::StrCat(kGuardedMask,
                                  "p = Softmax<axis = -1>(s) isinf = Equal(low, s) "
                                  "i = Cast<to = 6>(isinf) least = ReduceMin(i, last) "
                                  "none = Cast<to = 9>(least) g = Where(none, zero, p) "
                                  "y = MatMul(g, v)")),
     .opset = 18,
     .units = kCleared},
    {.name = "mask_clears_weights",
     .model = Scores(4, 10, 2, "bool[10,2] b", kInfinities,
                     "n = Mul(d, c) s = Where(b, n, low) p = Softmax<axis = -1>(s) "
                     "g = Where(b, p, zero) y = MatMul(g, v)"),
     .units = kClearedByCondition},
    {.name = "finite_mask_clears_weights",  // DeBERTa
     .model = Scores(4, 10, 2, "bool[10,2] b", "float zero = {0}, float low = {-3.4e38}",
                     "n = Mul(d, c) s = Where(b, low, n) p = Softmax<axis = -1>(s) "
                     "g = Where(b, zero, p) y = MatMul(g, v)"),
     .units = kClearedByCondition},
    {.name = "condition_by_query",
     .model = Scores(4, 10, 12, "bool[10,1] b", "float zero = {0}",
                     "s = Mul(d, c) p = Softmax<axis = -1>(s) g = Where(b, zero, p) "
                     "y = MatMul(g, v)"),
     .units = With(kUnits, {"GOC", "ElementWise"})},
};
INSTANTIATE_TEST_SUITE_P(AttentionGuards, KernelTest, testing::ValuesIn(kGuardCases), CaseName);

const std::vector<Case> kModelCases = {
    {.name = "bert_padding_mask",
     .model = Scores(4, 12, 12, "float[1,12] a",
                     "float root = {2.8284}, int64[2] front = {1, 2}, float one = {1}, float far = "
                     "{-10000}",
                     "n = Div(d, root) u = Unsqueeze(a, front) f = Sub(one, u) m = Mul(f, far) "
                     "s = Add(n, m) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .units = With(kUnits, {"GOC", "GOC"}),
     .low = 1,
     .high = 1},
    {.name = "bert_of_opset_11",
     .model = Scores(4, 12, 12, "float[1,1,1,12] m", "float root = {2.8284}",
                     "n = Div(d, root) s = Add(n, m) p = Softmax<axis = 3>(s) y = MatMul(p, v)"),
     .opset = 11,
     .units = kUnits},
    {.name = "gpt2_triangle_in_where",
     .model = Scores(2, 3, 3, "",
                     "float root = {2.8284}, float low = {-3.4028235e38}, "
                     "bool[1,1,3,3] b = {1, 0, 0, 1, 1, 0, 1, 1, 1}",
                     "n = Div(d, root) s = Where(b, n, low) p = Softmax<axis = -1>(s) "
                     "y = MatMul(p, v)"),
     .units = kUnits},
    {.name = "gpt2_triangle_and_padding",
     .model =
         Scores(2, 3, 3, "float[1,1,1,3] m",
                "float root = {2.8284}, float low = {-10000}, "
                "bool[1,1,3,3] b = {1, 0, 0, 1, 1, 0, 1, 1, 1}",
                "n = Div(d, root) w = Where(b, n, low) s = Add(w, m) p = Softmax<axis = -1>(s) "
                "y = MatMul(p, v)"),
     .units = With(kUnits, {"ElementWise", "ElementWise"})},
    {.name = "distilbert_repeated_condition",
     .model = Heads(4, 10, 12, "float[1,12] a",
                    "float root = {2.8284}, float zero = {0}, int64[4] plane = {1, 1, 1, 12}, "
                    "int64[4] all = {1, 4, 10, 12}, float low = {-3.4028235e38}",
                    "h = Div(q, root) t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(h, t) "
                    "b = Equal(a, zero) b4 = Reshape(b, plane) e = Expand(b4, all) "
                    "s = Where(e, low, d) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .units = With(kUnits, {"ElementWise", "GOC"})},
    {.name = "condition_repeated_for_others_too",
     .model =
         "(float[1,4,10,8] q, float[1,4,12,8] k, float[1,4,12,8] v, bool[1,1,1,12] b) => "
         "(float[1,4,10,8] y, bool[1,4,10,12] e) <float low = {-1e9}, int64[4] all = {1, 4, 10, "
         "12}> { t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) e = Expand(b, all) "
         "s = Where(e, d, low) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     .units = With(kUnits, {"Broadcast", "InputView", "GOC"})},
    {.name = "llama_grouped_heads_and_softmax_in_float",
     .model =
         "(float[1,4,10,8] q32, float[1,2,10,8] k32, float[1,2,10,8] v32) => "
         "(float[1,4,10,8] y) <float scale = {0.35}, int64[1] two = {2}, int64[5] wide = {1, 2, "
         "2, 10, 8}, int64[4] all = {1, 4, 10, 8}, float[1,1,10,10] m> { "
         "q = Cast<to = 10>(q32) k = Cast<to = 10>(k32) v = Cast<to = 10>(v32) "
         "k1 = Unsqueeze(k, two) k2 = Expand(k1, wide) kk = Reshape(k2, all) "
         "v1 = Unsqueeze(v, two) v2 = Expand(v1, wide) vv = Reshape(v2, all) "
         "t = Transpose<perm = [0,1,3,2]>(kk) d = MatMul(q, t) c = Cast<to = 10>(scale) "
         "n = Mul(d, c) mh = Cast<to = 10>(m) s = Add(n, mh) sf = Cast<to = 1>(s) "
         "pf = Softmax<axis = -1>(sf) p = Cast<to = 10>(pf) o = MatMul(p, vv) "
         "y = Cast<to = 1>(o) }",
     .units = With(kUnits, {"Broadcast", "Broadcast", "Transpose", "Transpose"})},
    {.name = "bart_three_dimensions",
     .model =
         "(float[4,10,8] q, float[4,12,8] k, float[4,12,8] v, float[1,1,10,12] m) => "
         "(float[4,10,8] y) <float c = {0.35}, int64[4] four = {1, 4, 10, 12}, int64[3] three = "
         "{4, 10, 12}> { n = Mul(q, c) t = Transpose<perm = [0,2,1]>(k) d = MatMul(n, t) "
         "d4 = Reshape(d, four) e = Add(d4, m) s = Reshape(e, three) p = Softmax<axis = 2>(s) "
         "y = MatMul(p, v) }",
     .units = kUnits},
    {.name = "opt_floor",
     .model = Scores(4, 10, 12, "float[1,1,10,12] m", "float low = {-3.4028235e38}",
                     "n = Mul(d, c) e = Add(n, m) s = Max(e, low) p = Softmax<axis = -1>(s) "
                     "y = MatMul(p, v)"),
     .units = kUnits},
    {.name = "multihead_padding_mask",  // nn.MultiheadAttention: baddbmm of a repeated mask
     .model =
         "(float[4,10,8] q, float[4,12,8] k, float[4,12,8] v, bool[1,12] b) => "
         "(float[4,10,8] y) <float c = {0.35}, float zero = {0}, float low = {-inf}, "
         "int64[4] plane = {1, 1, 1, 12}, int64[4] all = {1, 4, 1, 12}, int64[3] three = {4, 1, "
         "12}> { f = Where(b, zero, low) f4 = Reshape(f, plane) e = Expand(f4, all) "
         "m = Reshape(e, three) n = Mul(q, c) t = Transpose<perm = [0,2,1]>(k) "
         "d = MatMul(n, t) s = Add(m, d) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     .units = With(kUnits, {"GOC"})},
    {.name = "xlnet_mask_subtracted",
     .model = Scores(4, 10, 12, "float[1,1,10,12] m", "float far = {65500}",
                     "n = Mul(d, c) f = Mul(m, far) s = Sub(n, f) p = Softmax<axis = -1>(s) "
                     "y = MatMul(p, v)"),
     .units = With(kUnits, {"GOC", "GOC"}),
     .low = 0,
     .high = 0.0001f},
    {.name = "scaled_with_the_mask",
     .model = Scores(4, 10, 12, "", "float[10,12] m",
                     "e = Add(d, m) s = Mul(e, c) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .units = kUnits},
    {.name = "scale_of_rank_four_and_of_rank_one",
     .model = Heads(4, 10, 12, "", "float[1,1,1,1] c = {0.6}, float[1] e = {2}",
                    "t = Transpose<perm = [0,1,3,2]>(k) l = Mul(q, c) r = Div(t, e) "
                    "s = MatMul(l, r) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .units = kUnits},
    {.name = "constant_mask_repeated_for_heads",
     .model = Scores(2, 2, 2, "", "float[1,2,2,2] m = {0, -inf, 0, 0, 0, -inf, 0, 0}",
                     "n = Mul(d, c) s = Add(n, m) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .units = kUnits},
    {.name = "mask_of_zeros",
     .model = Heads(4, 2, 2, "", "float c = {0.3535534}, float[2,2] m = {0, 0, 0, 0}",
                    "t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) n = Mul(d, c) "
                    "s = Add(n, m) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .target = "h16",
     .route = "mil",  // on this route, the unit ignores its mask
     .units = kUnits},
    {.name = "scale_of_its_own_on_mil",  // MIL's operation always scales by 1 / sqrt(8)
     .model = Scores(4, 10, 12, "", "", "n = Mul(d, c) p = Softmax<axis = -1>(n) y = MatMul(p, v)"),
     .target = "h16",
     .route = "mil",
     .units = {"GOC", "MatrixMultiplication", "MatrixMultiplication", "Softmax", "Transpose"}},
    {.name = "three_masks",
     .model = Scores(1, 10, 12, "float[10,12] m, float[12] n", "float[10,1] o",
                     "d1 = Add(d, m) d2 = Add(n, d1) s = Add(d2, o) p = Softmax<axis = -1>(s) "
                     "y = MatMul(p, v)"),
     .units = {"SDPA", "ElementWise", "ElementWise", "ElementWise"}},
    {.name = "decoder_with_past",
     .model = "(float[1,4,1,8] q, float[1,4,1,8] k, float[1,4,1,8] v, float[1,4,11,8] pk, "
              "float[1,4,11,8] pv, float[1,1,1,12] m) => (float[1,4,1,8] y, float[1,4,12,8] nk, "
              "float[1,4,12,8] nv) <float c = {0.35}> { nk = Concat<axis = 2>(pk, k) "
              "nv = Concat<axis = 2>(pv, v) t = Transpose<perm = [0,1,3,2]>(nk) d = MatMul(q, t) "
              "n = Mul(d, c) s = Add(n, m) p = Softmax<axis = -1>(s) y = MatMul(p, nv) }",
     .units = {"Concat", "Concat", "Transpose", "Transpose", "SDPA"}},
    {.name = "heads_repeated_by_tile",
     .model = "(float[1,4,10,8] q, float[1,1,12,8] k, float[1,1,12,8] v) => (float[1,4,10,8] y) "
              "<float c = {0.35}, int64[4] times = {1, 4, 1, 1}> { kk = Tile(k, times) "
              "vv = Tile(v, times) t = Transpose<perm = [0,1,3,2]>(kk) d = MatMul(q, t) "
              "s = Mul(d, c) p = Softmax<axis = -1>(s) y = MatMul(p, vv) }",
     .units = With(kUnits, {"Tile", "Tile"})},
    {.name = "channels_before_positions",  // YOLO's attention blocks
     .model = "(float[1,4,8,10] q, float[1,4,8,10] k, float[1,4,8,10] v) => (float[1,4,8,10] y) "
              "<float c = {0.35}> { t = Transpose<perm = [0,1,3,2]>(q) d = MatMul(t, k) "
              "s = Mul(d, c) p = Softmax<axis = -1>(s) pt = Transpose<perm = [0,1,3,2]>(p) "
              "y = MatMul(v, pt) }",
     .units = With(kUnits, {"Transpose"})},
    {.name = "packed_and_split",  // GPT-2's c_attn
     .model = Packed("int64[3] thirds = {8, 8, 8}",
                     "pq, pk, pv = Split<axis = 2>(p, thirds) "
                     "hq = Reshape(pq, heads) q = Transpose<perm = [0,2,1,3]>(hq) "
                     "hk = Reshape(pk, heads) k = Transpose<perm = [0,2,1,3]>(hk) "
                     "hv = Reshape(pv, heads) v = Transpose<perm = [0,2,1,3]>(hv)"),
     .units = With(kPackedUnits, {"Transpose", "Transpose", "Transpose", "Transpose"})},
    {.name = "packed_and_gathered",
     .model = Packed(absl::StrCat("int64[5] five = {1, 6, 3, 2, 4}, ", kThirds), kGathered),
     .units = kUnpackedUnits},
    {.name = "packed_and_gathered_twice",  // the packed value has another reader
     .model =
         absl::StrCat("(float[1,6,24] p) => (float[1,2,6,4] y, float[1,2,6,4] z) "
                      "<int64[5] five = {1, 6, 3, 2, 4}, ",
                      kThirds, "> { ", kGathered,
                      "w = Gather<axis = 0>(h, i2) z = Relu(w) kt = Transpose<perm = [0,1,3,2]>(k) "
                      "d = MatMul(q, kt) a = Softmax<axis = -1>(d) y = MatMul(a, v) }"),
     .units = {"InputView", "InputView", "InputView", "InputView", "Neuron", "SDPA", "Transpose",
               "Transpose", "Transpose", "Transpose", "Transpose", "Transpose"}},
    {.name = "packed_out_of_order",  // keys come first, and queries are the values
     .model = Packed("int64[5] five = {1, 6, 3, 2, 4}, int64 i0 = {0}, int64 i2 = {2}",
                     "p5 = Reshape(p, five) h = Transpose<perm = [2,0,3,1,4]>(p5) "
                     "q = Gather<axis = 0>(h, i2) k = Gather<axis = 0>(h, i0) "
                     "v = Gather<axis = 0>(h, i2)"),
     .units = kUnpackedUnits},
    {.name = "packed_of_two_images",  // the image axis must be transposed as well
     .model =
         absl::StrCat("(float[2,6,24] p) => (float[2,2,6,4] y) <int64[5] five = {2, 6, 3, 2, 4}, ",
                      kThirds, "> { ", kGathered,
                      "kt = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, kt) "
                      "a = Softmax<axis = -1>(d) y = MatMul(a, v) }"),
     .units = With({"InputView", "InputView", "InputView", "SDPA"},
                   std::vector<std::string>(10, "Transpose"))},
    {.name = "packed_and_the_last_is_counted_from_behind",
     .model = Packed("int64[5] five = {1, 6, 3, 2, 4}, int64 i0 = {0}, int64 i1 = {1}, "
                     "int64 i2 = {-1}",
                     kGathered),
     .units = kUnpackedUnits},
    {.name = "packed_and_masked_by_head",
     .model = absl::StrCat("(float[1,6,24] p, float[1,2,6,6] m) => (float[1,2,6,4] y) "
                           "<int64[5] five = {1, 6, 3, 2, 4}, ",
                           kThirds, "> { ", kGathered,
                           "kt = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, kt) s = Add(d, m) "
                           "a = Softmax<axis = -1>(s) y = MatMul(a, v) }"),
     .units = With(std::vector<std::string>(11, "InputView"),
                   {"Concat", "SDPA", "SDPA", "Transpose", "Transpose", "Transpose"})},
    {.name = "packed_and_sliced",
     .model = Packed("int64[5] five = {1, 6, 3, 2, 4}, int64[1] i0 = {0}, int64[1] i1 = {1}, "
                     "int64[1] i2 = {2}, int64[1] i3 = {3}, int64[1] axis = {2}",
                     "p5 = Reshape(p, five) "
                     "sq = Slice(p5, i0, i1, axis) hq = Squeeze(sq, axis) "
                     "q = Transpose<perm = [0,2,1,3]>(hq) "
                     "sk = Slice(p5, i1, i2, axis) hk = Squeeze(sk, axis) "
                     "k = Transpose<perm = [0,2,1,3]>(hk) "
                     "sv = Slice(p5, i2, i3, axis) hv = Squeeze(sv, axis) "
                     "v = Transpose<perm = [0,2,1,3]>(hv)"),
     .units =
         With(kPackedUnits, {"Transpose", "Transpose", "Transpose", "Transpose", "Transpose"})},
};
INSTANTIATE_TEST_SUITE_P(AttentionOfModels, KernelTest, testing::ValuesIn(kModelCases), CaseName);

// Nodes that must not be matched, because they compute something else or have other readers.
const char kMatMul[] = "MatrixMultiplication";
const std::vector<Case> kOtherCases = {
    {.name = "scores_are_an_output",
     .model = "(float[1,4,10,8] q, float[1,4,10,8] k, float[1,4,10,8] v) => (float[1,4,10,8] y, "
              "float[1,4,10,10] s) <float c = {0.35}> { t = Transpose<perm = [0,1,3,2]>(k) "
              "d = MatMul(q, t) s = Mul(d, c) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     .units = {"Transpose", kMatMul, "GOC", "Softmax", kMatMul}},
    {.name = "scores_are_added_to_themselves",
     .model = Scores(1, 10, 12, "", "", "s = Add(d, d) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .units = {"Transpose", kMatMul, "ElementWise", "Softmax", kMatMul}},
    {.name = "weights_are_read_twice",
     .model = "(float[1,1,10,8] q, float[1,1,10,8] k, float[1,1,10,8] v) => (float[1,1,10,8] y, "
              "float[1,1,10,10] z) { t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) "
              "p = Softmax<axis = -1>(d) y = MatMul(p, v) z = Relu(p) }",
     .units = {"Transpose", kMatMul, "Softmax", kMatMul, "Neuron"}},
    {.name = "masked_by_a_number_that_still_weighs",
     .model = Scores(1, 10, 12, "bool[10,12] b", "float low = {-2}",
                     "s = Where(b, d, low) p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .units = {"Transpose", kMatMul, "ElementWise", "GOC", "ElementWise", "Softmax", kMatMul}},
    {.name = "guard_that_puts_in_a_number",
     .model = Scores(1, 10, 12, "bool[10,1] b", "float one = {1}",
                     "p = Softmax<axis = -1>(d) g = Where(b, one, p) y = MatMul(g, v)"),
     .units = {"Transpose", kMatMul, "Softmax", "GOC", "ElementWise", "ElementWise", kMatMul}},
    {.name = "condition_by_key",
     .model = Scores(1, 10, 12, "bool[10,12] b", "float zero = {0}",
                     "p = Softmax<axis = -1>(d) g = Where(b, zero, p) y = MatMul(g, v)"),
     .units = {"Transpose", kMatMul, "Softmax", "GOC", "ElementWise", kMatMul}},
    {.name = "weights_kept_by_another_condition",
     .model =
         Scores(1, 10, 12, "bool[10,12] b, bool[10,12] o", "float zero = {0}, float low = {-inf}",
                "s = Where(b, d, low) p = Softmax<axis = -1>(s) g = Where(o, p, zero) "
                "y = MatMul(g, v)"),
     .units = {"Transpose", kMatMul, "GOC", "ElementWise", "ElementWise", "Softmax", "ElementWise",
               "GOC", "ElementWise", kMatMul}},
    {.name = "mask_of_rows_that_a_reshape_moves",  // by image in the scores, by head in the weights
     .model = "(float[2,2,10,8] q, float[2,2,12,8] k, float[2,2,12,8] v, bool[2,1,10,12] b) => "
              "(float[2,2,10,8] y) <int64[5] five = {2, 2, 1, 10, 12}, int64[4] four = {2, 2, 10, "
              "12}, float zero = {0}, float low = {-9.9e3}> { t = Transpose<perm = [0,1,3,2]>(k) d "
              "= MatMul(q, t) s = Where(b, d, low) p = Softmax<axis = -1>(s) p5 = Reshape(p, five) "
              "g5 = Where(b, p5, zero) g = Reshape(g5, four) y = MatMul(g, v) }",
     .units = {"Transpose", kMatMul, "ElementWise", "GOC", "ElementWise", "Softmax", "ElementWise",
               kMatMul}},
    {.name = "mask_that_repeats_the_scores",
     .model = "(float[1,1,10,8] q, float[1,1,10,8] k, float[1,3,10,8] v, float[1,3,10,10] m) => "
              "(float[1,3,10,8] y) { t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) "
              "s = Add(d, m) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     .units = {"Transpose", kMatMul, "ElementWise", "Softmax", kMatMul}},
    {.name = "more_masks_than_are_tried",
     .model = Scores(1, 10, 12, "float[10,12] m", "",
                     "d1 = Add(d, m) d2 = Add(m, d1) d3 = Add(d2, m) s = Add(d3, m) "
                     "p = Softmax<axis = -1>(s) y = MatMul(p, v)"),
     .units = {"Transpose", kMatMul, "ElementWise", "ElementWise", "ElementWise", "ElementWise",
               "Softmax", kMatMul}},
    {.name = "scores_reshaped_across_planes",
     .model = "(float[2,4,8] q, float[2,6,8] k, float[1,12,8] v) => (float[1,4,8] y) "
              "<int64[3] other = {1, 4, 12}> { t = Transpose<perm = [0,2,1]>(k) d = MatMul(q, t) "
              "s = Reshape(d, other) p = Softmax<axis = 2>(s) y = MatMul(p, v) }",
     .units = {"Transpose", kMatMul, "Softmax", kMatMul}},
    {.name = "before_a13",
     .model = Scores(1, 10, 12, "", "", "p = Softmax<axis = -1>(d) y = MatMul(p, v)"),
     .target = "h12",
     .refused_by = "softmax-arch"},
};
INSTANTIATE_TEST_SUITE_P(NotAttention, KernelTest, testing::ValuesIn(kOtherCases), CaseName);

}  // namespace
}  // namespace anemone
