// Tests which graphs the padding proof accepts, and its refusals of the others. Each case is a
// graph with an axis `n`, proven for size 5 in a bucket of 8.
#include "importer/padding/padding.h"

#include "absl/strings/str_cat.h"
#include "tests/importer/against_ort.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

using testing::HasSubstr;

PaddingVerdict Prove(const std::string& graph, int64_t full, int64_t used) {
  const auto import = [&](int64_t size) {
    ImportOptions options = WithEvaluator();
    options.dims = {{"n", size}};
    options.stop_after = 0;
    auto model = ImportBytes(BytesOfText(graph), "", options);
    EXPECT_THAT(model, IsOk());
    return *std::move(model);
  };
  return ProvePadding(import(full), import(used));
}

struct Padded {
  const char* name;
  const char* graph;
  const char* refusal = nullptr;  // null if it is proven
};
void PrintTo(const Padded& c, std::ostream* out) { *out << c.name; }

class Padding : public testing::TestWithParam<Padded> {};

TEST_P(Padding, IsProvenOrNamed) {
  const PaddingVerdict verdict = Prove(GetParam().graph, 8, 5);
  EXPECT_EQ(verdict.proof.has_value(), GetParam().refusal == nullptr) << verdict.refusal;
  if (GetParam().refusal == nullptr) return;
  EXPECT_THAT(verdict.refusal, HasSubstr(GetParam().refusal));
}

const Padded kPaddingCases[] = {
    {"rows_of_a_product",
     "(float[n,4] x) => (float[n,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}> "
     "{ y = MatMul(x, w) }"},
    {"sum_of_zeros", "(float[4,n] x, float[n,3] z) => (float[4,3] y) { y = MatMul(x, z) }"},
    {"sum_of_no_zeros",
     "(float[4,n] x, float[n,3] z) => (float[4,3] y) { a = Exp(x) b = Exp(z) y = MatMul(a, b) }",
     "neither operand is known to be 0"},
    {"transposed_product",
     "(float[4,n] x) => (float[n,2] y) <float[2,4] w = {1,2,3,4,5,6,7,8}> "
     "{ y = Gemm<transA = 1, transB = 1>(x, w) }"},
    {"convolution_of_a_batch",
     "(float[n,1,4,4] x) => (float[n,1,4,4] y) <float[1,1,1,1] w = {2}> { y = Conv(x, w) }"},
    {"convolution_along",
     "(float[1,1,4,n] x) => (float[1,1,4,n] y) <float[1,1,1,1] w = {2}> { y = Conv(x, w) }",
     "node /#0 (Conv): it mixes values along the padded axis"},
    {"resize_of_a_batch",
     "(float[n,1,4,4] x) => (float[n,1,8,8] y) <float[4] f = {1,1,2,2}> { y = Resize(x, , f) }"},
    {"resize_along",
     "(float[1,1,n,4] x) => (float[1,1,m,8] y) <float[4] f = {1,1,2,2}> { y = Resize(x, , f) }",
     "mixes values along the padded axis"},
    {"resize_that_blurs_the_batch",
     "(float[n,1,4,4] x) => (float[n,1,4,4] y) <float[4] f = {1.1,1,1,1}> "
     "{ y = Resize<mode = \"linear\">(x, , f) }",
     "resizes the padded axis"},
    {"softmax_beside", "(float[n,4] x) => (float[n,4] y) { y = Softmax<axis = 1>(x) }"},
    {"softmax_along", "(float[n,4] x) => (float[n,4] y) { y = Softmax<axis = 0>(x) }",
     "no mask excludes the padding"},
    {"softmax_with_a_mask",
     "(float[4,n] x, float[n] mask) => (float[4,n] y) <float one = {1}, float low = {-1e9}> "
     "{ m = Sub(one, mask) l = Mul(m, low) s = Add(x, l) y = Softmax<axis = 1>(s) }"},
    {"softmax_with_too_weak_a_mask",
     "(float[4,n] x, float[n] mask) => (float[4,n] y) <float one = {1}, float low = {-5}> "
     "{ m = Sub(one, mask) l = Mul(m, low) s = Add(x, l) y = Softmax<axis = 1>(s) }",
     "no mask excludes the padding"},
    {"softmax_with_a_mask_the_other_way",
     "(float[4,n] x, bool[n] mask) => (float[4,n] y) <float low = {-1e9}> "
     "{ s = Where(mask, low, x) y = Softmax<axis = 1>(s) }",
     "no mask excludes the padding"},
    {"softmax_of_rows_that_another_input_masks",
     "(float[4,n] x, float[n] mask, bool[4,1] c) => (float[4,n] y) <float one = {1}, "
     "float low = {-1e9}> { m = Sub(one, mask) l = Mul(m, low) s = Add(x, l) "
     "t = Where(c, low, s) y = Softmax<axis = 1>(t) }",
     "its mask also depends on input 'c'"},
    {"norm_of_rows",
     "(float[n,4] x) => (float[n,4] y) <float[4] w = {1,2,3,4}> "
     "{ y = LayerNormalization<axis = 1>(x, w) }"},
    {"norm_of_all",
     "(float[n,4] x) => (float[n,4] y) <float[1] w = {1}> "
     "{ y = LayerNormalization<axis = 0>(x, w) }",
     "mixes values along the padded axis"},
    {"sum", "(float[n,4] x) => (float[1,4] y) <int64[1] a = {0}> { y = ReduceSum(x, a) }"},
    {"sum_of_ones",
     "(float[n,4] x) => (float[1,4] y) <int64[1] a = {0}> { e = Exp(x) y = ReduceSum(e, a) }",
     "not known to be 0"},
    {"maximum", "(float[n,4] x) => (float[1,4] y) <int64[1] a = {0}> { y = ReduceMax(x, a) }",
     "combines all positions"},
    {"maximum_beside",
     "(float[n,4] x) => (float[n,1] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }"},
    {"cumulative_sum", "(float[n,4] x) => (float[n,4] y) <int64 a = {0}> { y = CumSum(x, a) }",
     "node /#0 (CumSum): it has no padding rule"},
    {"all_rows",
     "(float[n,4] x) => (float[n,4] y) <int64[1] s = {0}, int64[1] e = {100}> { y = Slice(x, s, e) "
     "}"},
    {"columns",
     "(float[n,4] x) => (float[n,2] y) <int64[1] s = {-1}, int64[1] e = {-4}, int64[1] a = {1}, "
     "int64[1] d = {-2}> { y = Slice(x, s, e, a, d) }"},
    {"first_rows",
     "(float[n,4] x) => (float[2,4] y) <int64[1] s = {0}, int64[1] e = {2}> { y = Slice(x, s, e) "
     "}",
     "takes a part of the padded axis"},
    {"last_rows",
     "(float[n,4] x) => (float[2,4] y) <int64[1] s = {-2}, int64[1] e = {100}> "
     "{ y = Slice(x, s, e) }",
     "takes a part of the padded axis"},
    {"all_but_the_last_row",
     "(float[n,4] x) => (float[m,4] y) <int64[1] s = {0}, int64[1] e = {-1}> { y = Slice(x, s, e) "
     "}",
     "takes a part of the padded axis"},
    {"turned_round",
     "(float[n,4] x) => (float[n,4] y) <int64[1] s = {100}, int64[1] e = {-100}, int64[1] a = {0}, "
     "int64[1] d = {-1}> { y = Slice(x, s, e, a, d) }",
     "takes a part of the padded axis"},
    {"repeated", "(float[n,4] x) => (float[m,4] y) <int64[2] r = {2, 1}> { y = Tile(x, r) }",
     "repeats an axis"},
    {"repeated_columns",
     "(float[n,4] x) => (float[n,8] y) <int64[2] r = {1, 2}> { y = Tile(x, r) }",
     "repeats an axis"},
    {"one_row", "(float[n,4] x) => (float[4] y) <int64 i = {3}> { y = Gather(x, i) }"},
    {"the_last_row", "(float[n,4] x) => (float[4] y) <int64 i = {-1}> { y = Gather(x, i) }",
     "counted from the end of the padded axis"},
    {"looked_up",
     "(int64[n] x) => (float[n,2] y) <float[3,2] t = {1,2,3,4,5,6}> { y = Gather(t, x) }"},
    {"looked_up_beyond",
     "(int64[n] x) => (float[n,2] y) <float[3,2] t = {1,2,3,4,5,6}, int64 by = {7}> "
     "{ i = Add(x, by) y = Gather(t, i) }",
     "may read outside its table"},
    {"in_front_of_it",
     "(float[n,4] x) => (float[m,4] y) <float[1,4] c = {1,2,3,4}> { y = Concat<axis = 0>(c, x) }"},
    {"behind_it",
     "(float[n,4] x) => (float[m,4] y) <float[1,4] c = {1,2,3,4}> { y = Concat<axis = 0>(x, c) }",
     "after the padded region"},
    {"cut_up", "(float[n,4] x) => (float[4,m] y) <int64[2] s = {4, -1}> { y = Reshape(x, s) }",
     "breaks up the padded axis"},
    {"merged_with_a_smaller",
     "(float[n,4] x) => (float[m] y) <int64[1] s = {-1}> { y = Reshape(x, s) }"},
    {"largest_alone", "(float[n,4] x) => (float[n,4] y) { y = Hardmax<axis = 1>(x) }",
     "has no padding rule"},
    {"place_of_the_largest", "(float[n,4] x) => (int64[n,1] y) { y = ArgMax<axis = 1>(x) }",
     "has no padding rule"},
    {"largest_two",
     "(float[n,4] x) => (float[n,2] y) <int64[1] k = {2}> { y, i = TopK<axis = 1>(x, k) }",
     "has no padding rule"},
    {"logarithm", "(float[n,4] x) => (float[n,4] y) { y = Log(x) }", "has no padding rule"},
    {"quantized",
     "(float[n,4] x) => (uint8[n,4] y) <float s = {0.5}, uint8 z = {128}> "
     "{ y = QuantizeLinear(x, s, z) }",
     "has no padding rule"},
    {"no_rule_where_nothing_is_padded",
     "(float[n,4] x, float[4] u) => (float[n,4] y) <int64 a = {0}> "
     "{ l = Log(u) c = CumSum(l, a) h = Hardmax<axis = 0>(c) y = Add(x, h) }"},
    {"mask_by_a_comparison_without_bounds",
     "(float[4,n] x, float[n] mask) => (float[4,n] y) <float half = {0.5}, float low = {-1e9}> "
     "{ k = Greater(mask, half) s = Where(k, x, low) y = Softmax<axis = 1>(s) }",
     "no mask excludes the padding"},
    {"mask_by_less",
     "(float[4,n] x, float[n] mask) => (float[4,n] y) <float half = {0.5}, float low = {-1e9}> "
     "{ k = Less(half, mask) s = Where(k, x, low) y = Softmax<axis = 1>(s) }"},
    {"unknown_operator",
     "(float[n,4] x) => (float[k,2] y) { m = NonZero(x) f = Cast<to = 1>(m) "
     "y = Transpose<perm = [1,0]>(f) }",
     "whose size is known only at run time"},
    {"divided_by_the_size",
     "(float[n,4] x) => (float[n,4] y) { s = Shape<start = 0, end = 1>(x) f = Cast<to = 1>(s) "
     "y = Div(x, f) }",
     "has different elements at another size"},
    {"spread_out",
     "(float[n,4] x, float[1,4] z) => (float[n,4] y) { s = Shape(x) e = Expand(z, s) "
     "y = Add(x, e) }"},
    {"no_number_summed",
     "(float[4,n] x, float[n,3] z) => (float[4,3] y) { a = Reciprocal(x) y = MatMul(a, z) }",
     "may contain NaN or infinity"},
    {"branches",
     "(float[n,4] x, bool c) => (float[n,4] y) { y = If(c) <then_branch = t () => (float[n,4] a) "
     "{ a = Relu(x) }, else_branch = e () => (float[n,4] b) { b = Neg(x) }> }",
     "contains a subgraph"},
};

INSTANTIATE_TEST_SUITE_P(Operators, Padding, testing::ValuesIn(kPaddingCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PaddingProof, SaysHowOutputsAreCropped) {
  const auto [proof, refusal] = Prove(
      "(float[2,n,4] x) => (float[m,4] y, float[2,4] z) <int64[2] s = {-1,4}, int64 i = {0}> "
      "{ y = Reshape(x, s) z = Gather<axis = 1>(x, i) }",
      8, 5);
  ASSERT_TRUE(proof) << refusal;
  ASSERT_EQ(proof->outputs.size(), 2);
  const auto& rows = proof->outputs[0][0];
  ASSERT_EQ(rows.size(), 2) << "two sequences of 8, of which 5 are used";
  EXPECT_EQ(rows[0].full, 2);
  EXPECT_EQ(rows[0].used, 2);
  EXPECT_EQ(rows[1].full, 8);
  EXPECT_EQ(rows[1].used, 5);
}

TEST(PaddingProof, SaysWhichMaskMustKeepSomething) {
  const char kModel[] =
      "(float[4,n] x, float[n] mask) => (float[4,n] y) <float one = {1}, float low = {-1e9}> "
      "{ m = Sub(one, mask) l = Mul(m, low) s = Add(x, l) y = Softmax<axis = 1>(s) }";
  const auto [proof, refusal] = Prove(kModel, 8, 5);
  ASSERT_TRUE(proof) << refusal;
  ASSERT_EQ(proof->masks.size(), 1);
  EXPECT_EQ(proof->masks[0].input, 1);
  EXPECT_EQ(proof->masks[0].axis, 0);
  EXPECT_FALSE(proof->masks[0].all);
}

// Rows appended to a cache of 5, in a bucket of 8: the padding is before the new row.
PaddingVerdict ProveAppending(const std::string& keys, const std::vector<Gap>& gaps) {
  const std::string graph = absl::StrCat(
      "(float[2,p] past, float[2,1] x, float[1,t] mask) => (float[2,2] y) "
      "<float one = {1}, float far = {-10000}> { k = Concat<axis = 1>(past, x) ",
      keys,
      " off = Sub(one, mask) low = Mul(off, far) masked = Add(s, low) w = Softmax(masked) "
      "kt = Transpose(k) y = MatMul(w, kt) }");
  const auto import = [&](int64_t past) {
    ImportOptions options = WithEvaluator();
    options.dims = {{"p", past}, {"t", past + 1}};
    options.stop_after = 0;
    auto model = ImportBytes(BytesOfText(graph), "", options);
    EXPECT_THAT(model, IsOk());
    return *std::move(model);
  };
  return ProvePadding(import(8), import(5), gaps);
}

TEST(PaddingBeforeATail, IsProvenOfACacheThatGrows) {
  const std::vector<Gap> gap = {{9, 6, 1}};
  const PaddingVerdict verdict = ProveAppending("s = Identity(k)", gap);
  ASSERT_TRUE(verdict.proof.has_value()) << verdict.refusal;
  ASSERT_EQ(1u, verdict.proof->masks.size());
  EXPECT_EQ(2u, verdict.proof->masks[0].input);
  EXPECT_THAT(ProveAppending("s = Identity(k)", {}).refusal,
              HasSubstr("appends data after the padded region"));
}

TEST(PaddingBeforeATail, ComparesConstantsOnBothSidesOfIt) {
  const std::vector<Gap> gap = {{9, 6, 1}};
  // 0 to 5 and 0 to 8: the last position is that of the new row.
  EXPECT_THAT(
      ProveAppending("l = Shape<start = 1>(k) n = Squeeze(l) zero = Constant<value_int = 0>() "
                     "step = Constant<value_int = 1>() r = Range(zero, n, step) "
                     "f = Cast<to = 1>(r) s = Add(k, f)",
                     gap)
          .refusal,
      HasSubstr("different elements at another size"));
  const PaddingVerdict ones =
      ProveAppending("l = Shape(k) f = ConstantOfShape(l) s = Add(k, f)", gap);
  EXPECT_TRUE(ones.proof.has_value()) << ones.refusal;
}

TEST(PaddingBeforeATail, RefusesPositionsOfIt) {
  const std::vector<Gap> gap = {{9, 6, 1}};
  EXPECT_THAT(ProveAppending("i = Constant<value_ints = [0]>() g = Gather<axis = 1>(k, i) "
                             "s = Add(k, g)",
                             gap)
                  .refusal,
              HasSubstr("padding is in the middle"));
}

}  // namespace
}  // namespace anemone
