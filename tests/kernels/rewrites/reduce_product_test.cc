// ReduceProd: even and odd extents and extent 1, signs, axes, keepdims.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

std::vector<std::string> ProductUnits(int products, int views) {
  std::vector<std::string> units(products, "ElementWise");
  units.insert(units.end(), views, "InputView");
  return units;
}

const std::vector<Case> kReduceProductCases = {
    {.name = "eight_of_any_sign",
     .model = "(float[3,8] x) => (float[3,1] y) <int64[1] a = {1}> { y = ReduceProd(x, a) }",
     .units = ProductUnits(3, 6),
     .low = -2,
     .high = 2},
    {.name = "seven",  // 7 = 3 + 3 + 1, 3 = 1 + 1 + 1
     .model = "(float[2,7,4] x) => (float[2,4] y) <int64[1] a = {1}> "
              "{ y = ReduceProd<keepdims = 0>(x, a) }",
     .units = ProductUnits(4, 6),
     .low = 0.5,
     .high = 2},
    {.name = "one",
     .model = "(float[2,1,4] x) => (float[2,1,4] y) <int64[1] a = {1}> "
              "{ z = Neg(x) y = ReduceProd(z, a) }",
     .units = {"GOC"}},
    {.name = "two_axes",
     .model = "(float[1,3,4,2] x) => (float[1,3,1,1] y) <int64[2] a = {2,-1}> "
              "{ y = ReduceProd(x, a) }",
     .target = "h14",
     .units = ProductUnits(3, 6),
     .low = -2,
     .high = 2},
    {.name = "all_axes",
     .model = "(float[2,5] x) => (float y) { y = ReduceProd<keepdims = 0>(x) }",
     .units = ProductUnits(4, 7),
     .low = 0.7,
     .high = 1.5},
    {.name = "without_rewrites",
     .model = "(float[3,8] x) => (float[3,1] y) <int64[1] a = {1}> { y = ReduceProd(x, a) }",
     .rewrites = false,
     .refused_by = "no-lowering"},
};

INSTANTIATE_TEST_SUITE_P(ReduceProduct, KernelTest, testing::ValuesIn(kReduceProductCases),
                         CaseName);

}  // namespace
}  // namespace anemone
