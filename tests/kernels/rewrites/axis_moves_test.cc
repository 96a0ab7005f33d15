// Transposes of more axes than one unit can move.
#include <algorithm>

#include "absl/strings/substitute.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

std::string Regrouped(const std::string& from, const std::string& middle, const std::string& perm,
                      const std::string& to) {
  const auto rank = [](const std::string& sizes) {
    return std::count(sizes.begin(), sizes.end(), ',') + 1;
  };
  return absl::Substitute(
      "(float[$0] x) => (float[$3] y) <int64[$4] m = {$1}, int64[$5] n = {$3}> "
      "{ a = Reshape(x, m) b = Transpose<perm = [$2]>(a) y = Reshape(b, n) }",
      from, middle, perm, to, rank(middle), rank(to));
}

const std::vector<Case> kAxisMovesCases = {
    {.name = "windows_of_an_image",  // Swin
     .model = Regrouped("1,8,6,5", "1,4,2,3,2,5", "0,1,3,2,4,5", "12,2,2,5"),
     .units = {"Transpose"}},
    {.name = "windows_of_several_images",
     .model = Regrouped("3,8,6,5", "3,4,2,3,2,5", "0,1,3,2,4,5", "36,4,5"),
     .units = {"Transpose"}},
    {.name = "six_axes_in_steps",
     .model = Regrouped("3,8,6,5", "3,4,2,3,2,5", "5,3,1,4,0,2", "15,48"),
     .units = {"Transpose", "Transpose", "Transpose", "Transpose"}},
    {.name = "seven_axes",
     .model = Regrouped("2,8,12,5", "2,4,2,3,2,2,5", "0,1,3,5,2,4,6", "24,2,4,5"),
     .units = {"Transpose", "Transpose"}},
    {.name = "into_rank_five",
     .model = Regrouped("24,10", "2,3,4,1,2,5", "0,5,1,4,3,2", "2,5,3,2,4"),
     .units = {"Transpose", "Transpose", "Transpose"}},
    {.name = "channels_shuffled",
     .model = Regrouped("1,16,6,5", "1,4,4,6,5", "0,2,1,3,4", "1,16,6,5"),
     .units = {"Transpose"}},
    {.name = "pixels_of_a_factor_no_unit_has",
     .model = Regrouped("1,50,3,2", "1,2,5,5,3,2", "0,1,4,2,5,3", "1,2,15,10"),
     .units = {"Transpose", "Transpose"}},
    {.name = "packed_windows",  // timm: query, key and value of several windows
     .model = "(float[4,6,3,2,5] x) => (float[3,4,2,6,5] y) "
              "{ y = Transpose<perm = [2,0,3,1,4]>(x) }",
     .units = {"Transpose", "Transpose"}},
    {.name = "without_rewrites",
     .model = "(float[4,6,3,2,5] x) => (float[3,4,2,6,5] y) "
              "{ y = Transpose<perm = [2,0,3,1,4]>(x) }",
     .rewrites = false,
     .refused_by = "transpose-batch"},
    {.name = "six_axes_read_elsewhere",
     .model = "(float[1,8,6,5] x) => (float[12,2,2,5] y, float[1,4,2,3,2,5] a) "
              "<int64[6] m = {1, 4, 2, 3, 2, 5}, int64[4] n = {12, 2, 2, 5}> { a = Reshape(x, m) "
              "b = Transpose<perm = [0,1,3,2,4,5]>(a) y = Reshape(b, n) }",
     .refused_by = "rank"},
};
INSTANTIATE_TEST_SUITE_P(AxisMoves, KernelTest, testing::ValuesIn(kAxisMovesCases), CaseName);

}  // namespace
}  // namespace anemone
