// Where and Cast: conditions and their conversion.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kWhere = {
    {.name = "two_tensors",
     .model = "(bool[2,3,4,5] c, float[2,3,4,5] a, float[2,3,4,5] b) => (float[2,3,4,5] y) "
              "{ y = Where(c, a, b) }",
     .units = {"ElementWise", "GOC", "ElementWise", "ElementWise"}},
    {.name = "all_repeat",
     .model = "(bool[4,1] c, float[3,1,5] a, float[1] b) => (float[3,4,5] y) "
              "{ y = Where(c, a, b) }",
     .target = "h16",
     .units = {"ElementWise", "GOC", "ElementWise", "ElementWise"}},
    {.name = "else_zero",
     .model = "(bool[3,5] c, float[3,5] a) => (float[3,5] y) <float k = {0}> "
              "{ y = Where(c, a, k) }",
     .units = {"ElementWise"}},
    {.name = "guarded_logarithm",  // what is not chosen is no number
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {0}> "
              "{ c = Greater(x, k) l = Log(x) y = Where(c, l, k) }",
     .units = {"ElementWise", "ElementWise", "GOC", "Neuron"}},
    {.name = "guarded_reciprocal",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {0}, float one = {1}> "
              "{ r = Relu(x) c = Equal(r, k) i = Reciprocal(r) y = Where(c, one, i) }",
     .units = {"ElementWise", "ElementWise", "ElementWise", "GOC", "Neuron", "Neuron"}},
    {.name = "then_number",
     .model = "(bool[3,5] c, float[3,5] b) => (float[3,5] y) <float k = {-7}> "
              "{ y = Where(c, k, b) }",
     .units = {"GOC", "GOC", "ElementWise", "ElementWise"}},
    {.name = "two_numbers",
     .model = "(bool[3,5] c) => (float[3,5] y) <float k = {0.1}, float l = {5}> "
              "{ y = Where(c, k, l) }",
     .units = {"GOC", "GOC", "ElementWise"}},
    {.name = "masked_softmax",
     .model = "(bool[4,4] c, float[2,4,4] s) => (float[2,4,4] y) <float k = {-3.4e38}> "
              "{ m = Where(c, s, k) y = Softmax(m) }",
     .units = {"ElementWise", "GOC", "ElementWise", "Softmax"}},
    {.name = "constant_condition",
     .model = "(float[2,4,4] s) => (float[2,4,4] y) "
              "<bool[2,2] c = {1, 0, 1, 1}, int64[2] twice = {2, 2}, float k = {-3.4e38}> "
              "{ t = Tile(c, twice) m = Where(t, s, k) y = Softmax(m) }",
     .units = {"ElementWise", "ElementWise", "Softmax"}},
    {.name = "two_integers",
     .model = "(bool[3,5] c) => (int64[3,5] y) <int64 k = {3}, int64 l = {5}> "
              "{ y = Where(c, k, l) }",
     .units = {"GOC", "GOC", "ElementWise"},
     .tolerance = 0},
    {.name = "rank_5",
     .model = "(bool[3,1,1,6] c, float[2,3,4,5,6] a, float[6] b) => (float[2,3,4,5,6] y) "
              "{ y = Where(c, a, b) }",
     .units = {"ElementWise", "GOC", "ElementWise", "ElementWise"}},
    {.name = "integers",
     .model = "(bool[3] c, int64[3] a, int64[3] b) => (int64[3] y) { y = Where(c, a, b) }",
     .refused_by = "integer-range"},
};

INSTANTIATE_TEST_SUITE_P(Where, KernelTest, testing::ValuesIn(kWhere), CaseName);

const std::vector<Case> kCast = {
    {.name = "float_to_half_and_back",
     .model = "(float[3,5] x) => (float[3,5] y) "
              "{ a = Cast<to = 10>(x) b = Relu(a) y = Cast<to = 1>(b) }",
     .units = {"Neuron"}},
    {.name = "bool_to_float",
     .model = "(bool[3,5] c, float[3,5] x) => (float[3,5] y) "
              "{ a = Cast<to = 1>(c) y = Mul(a, x) }",
     .units = {"ElementWise"}},
    {.name = "float_to_bool",
     .model = "(float[3,5] x) => (bool[3,5] y) { a = Relu(x) y = Cast<to = 9>(a) }",
     .units = {"Neuron", "ElementWise"}},
    {.name = "like",
     .model = "(bool[3,5] c, float[3,5] x) => (float[3,5] y) "
              "{ a = CastLike(c, x) y = Mul(a, x) }",
     .units = {"ElementWise"}},
    {.name = "float_to_integer",
     .model = "(float[3,5] x) => (int64[3,5] y) { y = Cast<to = 7>(x) }",
     .refused_by = "integer-range"},
    {.name = "integer_to_float",
     .model = "(int64[3,5] x) => (float[3,5] y) { y = Cast<to = 1>(x) }",
     .refused_by = "integer-range"},
};

INSTANTIATE_TEST_SUITE_P(Cast, KernelTest, testing::ValuesIn(kCast), CaseName);

}  // namespace
}  // namespace anemone
