// Attention of several images, and masks that differ between heads or images: there is one SDPA
// unit for all planes with the same mask. Also attention by Einsum with axes in any order.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

// Each unit repeated by its count.
std::vector<std::string> PlaneUnits(int attentions, int views, int transposes,
                                    std::vector<std::string> more) {
  more.insert(more.end(), attentions, "SDPA");
  more.insert(more.end(), views, "InputView");
  more.insert(more.end(), transposes, "Transpose");
  return more;
}

// Attention with 10 queries, 12 keys and 8 elements for each of `stack` (images, heads). `scores`
// are nodes that compute s from d.
std::string Planes(const std::string& stack, const std::string& more_inputs,
                   const std::string& more_initializers, const std::string& scores) {
  return absl::Substitute(
      "(float[$0,10,8] q, float[$0,12,8] k, float[$0,12,8] v$1) => (float[$0,10,8] y) "
      "<float c = {0.35}$2> { t = Transpose<perm = [0,1,3,2]>(k) r = MatMul(q, t) "
      "d = Mul(r, c) $3 p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
      stack, more_inputs, more_initializers, scores);
}

const std::vector<Case> kAttentionPlanesCases = {
    {.name = "windows_without_masks",  // MobileViT, Segformer over a batch
     .model = Planes("3,2", "", "", "s = Identity(d)"),
     .units = PlaneUnits(1, 0, 4, {})},
    {.name = "padding_of_all_images",
     .model = Planes("3,2", ", float[1,1,1,12] m", "", "s = Add(d, m)"),
     .units = PlaneUnits(1, 0, 4, {})},
    {.name = "by_head",
     .model = Planes("1,3", "", ", float[1,3,10,12] m", "s = Add(d, m)"),
     .units = PlaneUnits(3, 9, 0, {"Concat"})},
    {.name = "by_head_at_run_time",
     .model = Planes("1,2", ", float[1,2,10,12] m", "", "s = Add(m, d)"),
     .units = PlaneUnits(2, 8, 0, {"Concat"})},
    {.name = "by_head_of_several_images",  // Swin: heads in three windows
     .model = Planes("3,2", "", ", float[2,10,12] m", "s = Add(d, m)"),
     .units = PlaneUnits(2, 6, 8, {"Concat"})},
    {.name = "by_image",
     .model = Planes("2,3", ", float[2,1,1,12] m", "", "s = Add(d, m)"),
     .units = PlaneUnits(2, 8, 8, {"Concat"})},
    {.name = "by_head_and_padding",  // T5: one scaled padding mask for all heads
     .model = Planes("1,2", ", float[1,1,1,12] a", ", float[1,2,10,12] m, float f = {-3}",
                     "b = Mul(a, f) e = Add(m, b) s = Add(d, e)"),
     .units = PlaneUnits(2, 8, 0, {"Concat", "GOC", "ElementWise"})},
    {.name = "by_window_in_rank_five",  // Swin's shifted windows; the first two masks are equal
     .model = Planes("3,2", "",
                     ", float[1,2,10,12] m, float[1,3,1,1,12] w = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
                     "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -100, -100, "
                     "-100, -100, -100, -100}, int64[5] five = {1, 3, 2, 10, 12}, int64[4] four = "
                     "{3, 2, 10, 12}",
                     "e = Add(d, m) e5 = Reshape(e, five) f = Add(e5, w) s = Reshape(f, four)"),
     .units = PlaneUnits(4, 18, 8, {"Concat", "Concat", "Concat"})},
    {.name = "condition_by_head",
     .model = Planes("1,2", ", bool[1,2,10,12] b", ", float low = {-1e9}", "s = Where(b, d, low)"),
     .units = PlaneUnits(2, 8, 0, {"Concat", "GOC", "GOC"})},
    {.name = "cleared_by_head",
     .model = "(float[1,2,10,8] q, float[1,2,12,8] k, float[1,2,12,8] v, bool[1,2,10,1] b) => "
              "(float[1,2,10,8] y) <float zero = {0}> { t = Transpose<perm = [0,1,3,2]>(k) "
              "d = MatMul(q, t) p = Softmax<axis = -1>(d) g = Where(b, zero, p) y = MatMul(g, v) }",
     .units = PlaneUnits(2, 8, 0, {"Concat", "GOC", "GOC", "ElementWise", "ElementWise"})},
    {.name = "more_heads_than_one_concat_joins",
     .model = Planes("1,14", "", ", float[14,10,12] m", "s = Add(d, m)"),
     .units = PlaneUnits(14, 42, 0, {"Concat", "Concat", "Concat"})},
    {.name = "heads_repeated_by_the_product",
     .model = "(float[2,1,10,8] q, float[1,2,12,8] k, float[2,2,12,8] v) => (float[2,2,10,8] y) "
              "{ t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) p = Softmax<axis = -1>(d) "
              "y = MatMul(p, v) }",
     .units = PlaneUnits(1, 0, 4, {"Broadcast", "Broadcast"})},
    {.name = "one_key_head",  // Falcon: all query heads share one key head
     .model = "(float[1,4,10,8] q, float[1,1,12,8] k, float[1,1,12,8] v, float[10,12] m) => "
              "(float[1,4,10,8] y) { t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) "
              "s = Add(d, m) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
     .units = PlaneUnits(1, 0, 4, {"Broadcast", "Broadcast"})},
    {.name = "scaled_by_head",  // Swin v2
     .model = Planes("3,2", "", ", float[2,1,1] h = {0.5, 3}, float[1,2,10,12] m",
                     "e = Mul(d, h) s = Add(e, m)"),
     .units = PlaneUnits(2, 6, 8, {"Concat", "ElementWise"})},
    {.name = "masked_before_it_is_scaled_by_head",
     .model = Planes("1,2", "", ", float[2,1,1] h = {0.5, 3}, float[10,12] m",
                     "e = Add(d, m) s = Mul(h, e)"),
     .units = {"Transpose", "MatrixMultiplication", "GOC", "ElementWise", "ElementWise", "Softmax",
               "MatrixMultiplication"}},
};
INSTANTIATE_TEST_SUITE_P(AttentionPlanes, KernelTest, testing::ValuesIn(kAttentionPlanesCases),
                         CaseName);

// Attention by Einsum. The unit has positions before heads, as these models do.
std::string Einsums(const std::string& scores, const std::string& result) {
  return absl::Substitute(
      "(float[1,10,4,8] q, float[1,12,4,8] k, float[1,12,4,8] v) => (float[1,10,4,8] y) <float c = "
      "{0.35}> { d = Einsum<equation = \"$0\">(q, k) s = Mul(d, c) p = Softmax<axis = -1>(s) "
      "y = Einsum<equation = \"$1\">(p, v) }",
      scores, result);
}

const std::vector<Case> kEinsumCases = {
    {.name = "positions_before_heads",
     .model = Einsums("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"),
     .units = PlaneUnits(1, 0, 0, {})},
    {.name = "ellipsis",
     .model = Einsums("...qhd,...khd->...hqk", "...hqk,...khd->...qhd"),
     .units = PlaneUnits(1, 0, 0, {})},
    {.name = "heads_first",
     .model = "(float[1,4,10,8] q, float[1,4,12,8] k, float[1,4,12,8] v) => (float[1,4,10,8] y) "
              "<float c = {0.35}> { l = Mul(q, c) d = Einsum<equation = \"bhid,bhjd->bhij\">(l, k) "
              "p = Softmax<axis = -1>(d) y = Einsum<equation = \"bhij,bhjd->bhid\">(p, v) }",
     .units = PlaneUnits(1, 0, 4, {})},
    {.name = "operands_turned",
     .model = "(float[1,10,4,8] q, float[1,12,4,8] k, float[1,12,8,4] v, float[10,12] m) => "
              "(float[1,4,8,10] y) { d = Einsum<equation = \"bkhd,bqhd->bhqk\">(k, q) "
              "s = Add(d, m) p = Softmax<axis = -1>(s) "
              "y = Einsum<equation = \"bkdh,bhqk->bhdq\">(v, p) }",
     .units = {"Transpose", "Transpose", "Transpose", "Transpose", "SDPA"}},
    {.name = "product_after_einsum",
     .model = "(float[2,10,4,8] q, float[2,12,4,8] k, float[2,4,12,8] v) => (float[2,4,10,8] y) "
              "{ d = Einsum<equation = \"bqhd,bkhd->bhqk\">(q, k) p = Softmax<axis = -1>(d) "
              "y = MatMul(p, v) }",
     .units = PlaneUnits(1, 0, 6, {})},
    {.name = "softmax_over_queries",
     .model = "(float[1,10,4,8] q, float[1,12,4,8] k, float[1,10,4,8] v) => (float[1,12,4,8] y) "
              "{ d = Einsum<equation = \"bqhd,bkhd->bhkq\">(q, k) p = Softmax<axis = -1>(d) "
              "y = Einsum<equation = \"bhkq,bqhd->bkhd\">(p, v) }",
     .units = PlaneUnits(1, 0, 0, {})},
    {.name = "weights_of_another_order",  // the second Einsum reads heads as queries
     .model = "(float[1,4,4,8] q, float[1,4,4,8] k, float[1,4,4,8] v) => (float[1,4,4,8] y) "
              "{ d = Einsum<equation = \"bqhd,bkhd->bhqk\">(q, k) p = Softmax<axis = -1>(d) "
              "y = Einsum<equation = \"bqhk,bkhd->bqhd\">(p, v) }",
     .units = {"MatrixMultiplication", "Softmax", "MatrixMultiplication", "Transpose", "Transpose",
               "Transpose", "Transpose", "Transpose"}},
    {.name = "two_contracted_axes",
     .model = "(float[1,10,4,8] q, float[1,12,4,8] k, float[1,12,8] v) => (float[1,10,8] y) "
              "{ d = Einsum<equation = \"bqhd,bkhd->bqk\">(q, k) p = Softmax<axis = -1>(d) "
              "y = Einsum<equation = \"bqk,bkd->bqd\">(p, v) }",
     .units = {"Transpose", "MatrixMultiplication", "Softmax", "MatrixMultiplication"}},
};
INSTANTIATE_TEST_SUITE_P(AttentionByEinsum, KernelTest, testing::ValuesIn(kEinsumCases), CaseName);

}  // namespace
}  // namespace anemone
