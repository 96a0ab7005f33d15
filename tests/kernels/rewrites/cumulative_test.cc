// CumSum and CumProd: short axes by doubling, long ones by a matrix; every axis, both flags.
#include "tests/kernels/on_targets.h"

namespace anemone {
namespace {

std::vector<std::string> Doublings(int count, int views, int concats) {
  std::vector<std::string> units(count, "ElementWise");
  units.insert(units.end(), views, "InputView");
  units.insert(units.end(), concats, "Concat");
  return units;
}

const std::vector<Case> kCumulativeCases = {
    {.name = "sum_of_five",
     .model = "(float[2,5,3] x) => (float[2,5,3] y) <int64 a = {1}> { y = CumSum(x, a) }",
     .units = Doublings(3, 9, 3)},
    {.name = "sum_of_the_batch",
     .model = "(float[4,2,3,3] x) => (float[4,2,3,3] y) <int64 a = {0}> { y = CumSum(x, a) }",
     .units = Doublings(2, 6, 2)},
    {.name = "exclusive",
     .model = "(float[2,8] x) => (float[2,8] y) <int64 a = {-1}> "
              "{ y = CumSum<exclusive = 1>(x, a) }",
     .units = Doublings(3, 10, 4)},
    {.name = "reverse_exclusive",
     .model = "(float[2,7] x) => (float[2,7] y) <int64 a = {-1}> "
              "{ y = CumSum<exclusive = 1, reverse = 1>(x, a) }",
     .units = Doublings(3, 10, 4)},
    {.name = "exclusive_of_one",
     .model = "(float[3,1] x) => (float[3,1] y) <int64 a = {1}> "
              "{ z = CumSum<exclusive = 1>(x, a) y = Add(z, x) }",
     .units = {"ElementWise"}},
    {.name = "long_by_matrix",
     .model = "(float[2,100,3] x) => (float[2,100,3] y) <int64 a = {1}> { y = CumSum(x, a) }",
     .units = {"Conv"},
     .tolerance = 1e-3},
    {.name = "long_reverse_exclusive",
     .model = "(float[1,3,2,65] x) => (float[1,3,2,65] y) <int64 a = {3}> "
              "{ y = CumSum<exclusive = 1, reverse = 1>(x, a) }",
     .units = {"Conv", "Transpose", "Transpose"},
     .tolerance = 1e-3},
    {.name = "long_batch",
     .model = "(float[40,3,2,2] x) => (float[40,3,2,2] y) <int64 a = {0}> { y = CumSum(x, a) }",
     .units = {"Conv"},
     .tolerance = 1e-3},
};

INSTANTIATE_TEST_SUITE_P(Cumulative, KernelTest, testing::ValuesIn(OnBoth(kCumulativeCases)),
                         CaseName);

}  // namespace
}  // namespace anemone
