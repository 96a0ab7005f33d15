// Attention as plain nodes becomes one SDPA unit, or five units where SDPA is refused or known to
// be wrong; the rules of the unit.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "engine/network.h"
#include "engine/unit_kind.h"
#include "importer/importer.h"
#include "kernels/lowering.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include "partitioner/plan.h"
#include "tests/kernels/harness.h"

namespace anemone {

KernelRows SdpaRows();

namespace {

// A model with inputs q, k, v of `heads` and the nodes `scores`, followed by a Softmax of s and the
// product with v.
std::string Attention(const std::string& heads, int queries, int keys, int dim,
                      const std::string& initializers, const std::string& scores) {
  return absl::Substitute(
      "(float[$0,$1,$3] q, float[$0,$2,$3] k, float[$0,$2,$3] v) => (float[$0,$1,$3] y) <$4> "
      "{ $5 p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
      heads, queries, keys, dim, initializers, scores);
}

const char kPlain[] = "t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) s = Mul(d, c) ";
const char kScale[] = "float c = {0.35}";

// Query, key and value are transposed from (heads, sequence) to (sequence, heads), and the result
// back.
const std::vector<std::string> kUnits = {"Transpose", "Transpose", "Transpose", "SDPA",
                                         "Transpose"};
const std::vector<std::string> kFive = {"Transpose", "MatrixMultiplication", "GOC", "Softmax",
                                        "MatrixMultiplication"};

// As exported from PyTorch: a reshape splits the heads and a transpose moves them to the front.
const char kExported[] =
    "(float[1,10,4,8] q, float[1,12,4,8] k, float[1,12,4,8] v) => (float[1,10,32] y) "
    "<float c = {0.35}, int64[3] shape = {1, 10, 32}> "
    "{ qh = Transpose<perm = [0,2,1,3]>(q) kt = Transpose<perm = [0,2,3,1]>(k) "
    "vh = Transpose<perm = [0,2,1,3]>(v) d = MatMul(qh, kt) s = Mul(d, c) "
    "p = Softmax<axis = -1>(s) o = MatMul(p, vh) r = Transpose<perm = [0,2,1,3]>(o) "
    "y = Reshape(r, shape) }";

// The keys and values are a cache of 16 rows and `fresh` new ones, as many as there are queries.
std::string Cached(int fresh, int dim, const std::string& outputs) {
  return absl::Substitute(
      "(float[1,4,$0,$1] q, float[1,4,16,$1] old_k, float[1,4,$0,$1] new_k, "
      "float[1,4,16,$1] old_v, float[1,4,$0,$1] new_v) => (float[1,4,$0,$1] $2) <float c = {0.35}> "
      "{ k = Concat<axis = 2>(old_k, new_k) v = Concat<axis = 2>(old_v, new_v) "
      "t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) s = Mul(d, c) "
      "p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
      fresh, dim, outputs);
}

const std::vector<Case> kSdpaCases = {
    {.name = "plain", .model = Attention("1,4", 10, 10, 8, kScale, kPlain), .units = kUnits},
    {.name = "cross_attention_on_a16",
     .model = Attention("1,4", 3, 17, 8, kScale, kPlain),
     .target = "h16",
     .units = kUnits},
    {.name = "one_query",
     .model = Attention("1,4", 1, 17, 8, kScale, kPlain),
     .units = {"Transpose", "Transpose", "SDPA"}},
    // The software engine reads a cache and its new rows in place (engine/software/part_reads.h).
    {.name = "cache_and_new_rows",
     .model = Cached(1, 32, "y"),
     .units = {"Concat", "Concat", "Transpose", "Transpose", "SDPA"}},
    {.name = "cache_and_new_rows_of_several_queries",
     .model = Cached(5, 8, "y"),
     .units = {"Concat", "Concat", "Transpose", "Transpose", "Transpose", "SDPA", "Transpose"}},
    {.name = "cache_that_is_an_output",
     .model = Cached(1, 32, "y, float[1,4,17,32] k"),
     .units = {"Concat", "Concat", "Transpose", "Transpose", "SDPA"}},
    {.name = "one_head_moves_nothing",
     .model = Attention("1,1", 10, 12, 8, kScale, kPlain),
     .units = {"SDPA"}},
    {.name = "rank_three",
     .model = Attention("1", 10, 12, 8, kScale,
                        "t = Transpose<perm = [0,2,1]>(k) d = MatMul(q, t) s = Mul(c, d) "),
     .units = {"SDPA"}},
    {.name = "rank_three_with_a_head_per_batch",
     .model = Attention("4", 10, 12, 8, kScale,
                        "t = Transpose<perm = [0,2,1]>(k) d = MatMul(q, t) s = Mul(c, d) "),
     .units = kUnits},
    {.name = "divided_after",
     .model = Attention("1,4", 10, 10, 8, "float c = {2.8284}",
                        "t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) s = Div(d, c) "),
     .units = kUnits},
    {.name = "scaled_before_on_both",
     .model = Attention("1,4", 10, 10, 8, "float c = {0.6}",
                        "t = Transpose<perm = [0,1,3,2]>(k) l = Mul(q, c) r = Mul(t, c) "
                        "s = MatMul(l, r) "),
     .units = kUnits},
    {.name = "scaled_before_the_transpose",
     .model = Attention("1,4", 10, 10, 8, "float[1] c = {0.35}",
                        "r = Mul(k, c) t = Transpose<perm = [0,1,3,2]>(r) s = MatMul(q, t) "),
     .units = kUnits},
    {.name = "not_scaled",
     .model = Attention("1,4", 10, 10, 8, "float unused = {1.0}",
                        "t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) "),
     .units = kUnits},
    {.name = "constant_mask",
     .model = Attention("1,4", 10, 12, 8, "float c = {0.35}, float[10,12] m",
                        absl::StrCat("t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) "
                                     "e = Mul(d, c) s = Add(e, m) ")),
     .units = kUnits},
    {.name = "mask_of_keys_first_operand",
     .model = Attention("1,4", 10, 12, 8, "float c = {0.35}, float[1,1,1,12] m",
                        "t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) e = Mul(d, c) "
                        "s = Add(m, e) "),
     .units = kUnits},
    {.name = "mask_at_run_time",
     .model = "(float[1,4,10,8] q, float[1,4,10,8] k, float[1,4,10,8] v, float[1,1,10,10] m) => "
              "(float[1,4,10,8] y) <float c = {0.35}> { t = Transpose<perm = [0,1,3,2]>(k) "
              "d = MatMul(q, t) e = Mul(d, c) s = Add(e, m) p = Softmax<axis = 3>(s) "
              "y = MatMul(p, v) }",
     .units = kUnits},
    {.name = "masked_out_rows_and_columns",
     .model = Attention("1,2", 2, 3, 4,
                        "float c = {0.5}, float[2,3] m = {0, -3.4e38, -3.4e38, 0, 0, -3.4e38}",
                        "t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) e = Mul(d, c) "
                        "s = Add(e, m) "),
     .units = kUnits},
    {.name = "exporters_transposes",
     .model = kExported,
     .units = {"Transpose", "Transpose", "Transpose", "Transpose", "Transpose", "Transpose", "SDPA",
               "Transpose", "Transpose"}},
    // Cases that stay five units.
    {.name = "both_511", .model = Attention("1,1", 511, 511, 4, kScale, kPlain), .units = {"SDPA"}},
    {.name = "both_512",
     .model = Attention("1,1", 512, 512, 4, kScale, kPlain),
     .units = {"MatrixMultiplication", "GOC", "Softmax", "MatrixMultiplication", "Transpose"}},
    {.name = "keys_2048", .model = Attention("1,1", 2, 2048, 4, kScale, kPlain), .units = {"SDPA"}},
    {.name = "keys_2049",
     .model = Attention("1,1", 2, 2049, 4, kScale, kPlain),
     .units = {"MatrixMultiplication", "GOC", "Softmax", "MatrixMultiplication", "Transpose"}},
    {.name = "value_of_another_width",
     .model = "(float[1,4,10,8] q, float[1,4,10,8] k, float[1,4,10,6] v) => (float[1,4,10,6] y) "
              "<float c = {0.35}> { t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) "
              "s = Mul(d, c) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     .units = kFive},
    {.name = "softmax_over_queries",
     .model = "(float[1,4,10,8] q, float[1,4,10,8] k, float[1,4,10,8] v) => (float[1,4,10,8] y) "
              "<float c = {0.35}> { t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) "
              "s = Mul(d, c) p = Softmax<axis = 2>(s) y = MatMul(p, v) }",
     .units = kFive},
    {.name = "weights_are_read_too",
     .model = "(float[1,4,10,8] q, float[1,4,10,8] k, float[1,4,10,8] v) => (float[1,4,10,8] y, "
              "float[1,4,10,10] p) <float c = {0.35}> { t = Transpose<perm = [0,1,3,2]>(k) "
              "d = MatMul(q, t) s = Mul(d, c) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     .units = kFive},
    {.name = "masked_on_mil_is_spelled_out",
     .model = Attention("1,4", 10, 10, 8, "float c = {0.35}, float[10,10] m",
                        "t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) e = Mul(d, c) "
                        "s = Add(e, m) "),
     .target = "h16",
     .route = "mil",
     .units = {"Transpose", "MatrixMultiplication", "GOC", "ElementWise", "Softmax",
               "MatrixMultiplication"}},
    // The inputs of the pattern are before and after a CPU segment. The pattern is not split.
    {.name = "mask_made_on_the_cpu_behind_engine_nodes",
     .model = "(float[1,4,10,8] q0, float[1,4,12,8] k0, float[1,4,12,8] v, float[1,1,10,12] m0) => "
              "(float[1,4,10,8] y) <float c = {0.5}> { q = Relu(q0) k = Relu(k0) "
              "t = Transpose<perm = [0,1,3,2]>(k) m1 = Relu(m0) i = Cast<to = 7>(m1) "
              "m = Cast<to = 1>(i) d = MatMul(q, t) e = Mul(d, c) s = Add(e, m) "
              "p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     .refused_by = "integer-range"},
};
INSTANTIATE_TEST_SUITE_P(Sdpa, KernelTest, testing::ValuesIn(kSdpaCases), CaseName);

// The units of the single segment after transposes of lowerings and of the model have been merged.
std::vector<std::string> UnitsOfPlan(const std::string& graph) {
  onnx::ModelProto proto;
  std::string text = absl::StrCat("<ir_version: 10, opset_import: [\"\" : 21]> test ", graph);
  EXPECT_TRUE(onnx::OnnxParser(text.c_str()).Parse(proto).IsOK());
  auto model = ImportBytes(proto.SerializeAsString(), "", {});
  EXPECT_TRUE(model.ok()) << model.status();
  auto plan = MakePlan(*model, {.target = *FindTarget("h13")});
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> units;
  for (const Segment& segment : plan->segments) {
    for (const Unit& unit : segment.network.units) {
      if (!unit.kind->run.is_view) units.push_back(unit.kind->type);
    }
  }
  return units;
}

TEST(Sdpa, ExportersTransposesGoAway) {
  EXPECT_EQ(UnitsOfPlan(kExported), std::vector<std::string>({"SDPA"}));
}

// Forms that the pattern is never lowered to. `change` changes the bottoms of a valid unit (10
// queries, 12 keys, 4 heads of 8, masked) into invalid ones.
template <class Change>
std::string Refusal(const char* target, Change change) {
  Bottom q{MakeDims(1, 10, 4, 8)}, k{MakeDims(1, 12, 4, 8)};
  const Tensor one = Tensor::Floats({1}, {1});
  Bottom scale{Dims{}, Format::kFloat16, &one}, mask{MakeDims(1, 10, 1, 12)};
  std::vector<Bottom> bottoms = {q, k, k, scale, mask};
  change(bottoms);
  Unit unit{.name = "attention", .kind = SdpaRows().kinds[0]};
  unit.params = *unit.kind->Read({{"SubtractMax", true}}, bottoms, {});
  Verdict verdict = CheckUnit(unit, bottoms, **FindTarget(target), Route::kNetplist);
  return verdict.accepted ? "" : absl::StrCat(verdict.rule->id, ": ", verdict.message);
}

TEST(SdpaUnit, TakesFourOrFiveBottoms) {
  using B = std::vector<Bottom>;
  EXPECT_EQ(Refusal("h13", [](B&) {}), "");
  EXPECT_EQ(Refusal("h13", [](B& b) { b.resize(4); }), "");
  const char kText[] = "sdpa-bottoms: SDPA layer must have only 4 or 5(optional mask) inputs";
  EXPECT_EQ(Refusal("h13", [](B& b) { b.resize(3); }), kText);
  EXPECT_EQ(Refusal("h13", [](B& b) { b.push_back(b[0]); }), kText);
  EXPECT_EQ(Refusal("h12", [](B&) {}), "unit-family: ");
}

TEST(SdpaUnit, WantsFittingOperands) {
  using B = std::vector<Bottom>;
  EXPECT_EQ(Refusal("h13", [](B& b) { b[2].dims[Axis::kC] = 11; }),
            "sdpa-sequence: K and V must have same sequence length i.e C dim");
  EXPECT_EQ(Refusal("h13", [](B& b) { b[2].dims[Axis::kW] = 6; }), "sdpa-key-value: ");
  EXPECT_EQ(Refusal("h13", [](B& b) { b[0].dims[Axis::kW] = 6; }),
            "sdpa-embedding: Q and K must have same embedding size i.e W dim");
  EXPECT_EQ(Refusal("h13", [](B& b) { b[1].format = Format::kUInt8; }),
            "sdpa-formats: Q, K and V must have same format");
  EXPECT_EQ(Refusal("h13", [](B& b) { b[3].constant = nullptr; }),
            "sdpa-scale: Scale is expected to be constant.");
}

TEST(SdpaUnit, WantsAFittingMask) {
  using B = std::vector<Bottom>;
  EXPECT_EQ(Refusal("h13", [](B& b) { b[4].format = Format::kUInt8; }),
            "sdpa-mask-format: Mask format must be same as Q, K and V");
  EXPECT_EQ(Refusal("h13", [](B& b) { b[4].dims[Axis::kC] = 1; }), "");
  EXPECT_EQ(Refusal("h13", [](B& b) { b[4].dims[Axis::kC] = 9; }),
            "sdpa-mask-channel: Mask Channel axis must match Q Channel axis or broadcastable");
  EXPECT_EQ(Refusal("h13", [](B& b) { b[4].dims[Axis::kW] = 1; }),
            "sdpa-mask-width: Mask Width axis must match K and V Channel axis");
}

}  // namespace
}  // namespace anemone
