// Operations on two tensors: every operator, all forms of broadcasting, and comparisons.
#include "absl/strings/str_cat.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

// "float[2,3]", or a scalar (rank 0) if `dims` is empty.
std::string Float(const std::string& dims) {
  return dims.empty() ? "float" : absl::StrCat("float[", dims, "]");
}

Case Two(const std::string& name, const std::string& a, const std::string& b, const std::string& y,
         const std::string& call, std::vector<std::string> units,
         const std::string& target = "h13") {
  return {.name = name,
          .model = absl::StrCat("(", Float(a), " a, ", Float(b), " b) => (", Float(y),
                                " y) { y = ", call, " }"),
          .target = target,
          .units = std::move(units)};
}

Case ByConstant(const std::string& name, const std::string& x, const std::string& constant,
                const std::string& y, const std::string& call, std::vector<std::string> units) {
  return {.name = name,
          .model = absl::StrCat("(", Float(x), " x) => (", Float(y), " y) <", Float(constant),
                                " k> { y = ", call, " }"),
          .units = std::move(units),
          .low = 0.25f,
          .high = 2};
}

std::vector<Case> Binary() {
  std::vector<Case> cases = {
      Two("add", "2,3,4,5", "2,3,4,5", "2,3,4,5", "Add(a, b)", {"ElementWise"}),
      Two("sub", "2,3,4,5", "2,3,4,5", "2,3,4,5", "Sub(a, b)", {"ElementWise"}, "h16"),
      Two("mul", "2,3,4,5", "2,3,4,5", "2,3,4,5", "Mul(a, b)", {"ElementWise"}, "h11"),
      Two("min", "2,3,4,5", "2,3,4,5", "2,3,4,5", "Min(a, b)", {"ElementWise"}),
      Two("max", "2,3,4,5", "2,3,4,5", "2,3,4,5", "Max(a, b)", {"ElementWise"}),
      Two("max_of_three", "4,5", "5", "4,5", "Max(a, b, b)", {"ElementWise", "ElementWise"}),
      Two("max_of_one", "4,5", "4,5", "4,5", "Max(a)", {}),
      Two("sum_of_three", "4,5", "4,1", "4,5", "Sum(a, b, a)", {"ElementWise", "ElementWise"}),
      Two("mean_of_two", "4,5", "4,5", "4,5", "Mean(a, b)", {"ElementWise", "GOC"}),
      // Shapes of equal rank, and of different ranks, for every rank.
      Two("rank_0", "", "", "", "Add(a, b)", {"ElementWise"}),
      Two("rank_1", "7", "1", "7", "Add(a, b)", {"ElementWise"}),
      Two("rank_2_by_1", "6,7", "7", "6,7", "Add(a, b)", {"ElementWise"}),
      Two("rank_3_by_1", "2,6,7", "7", "2,6,7", "Add(a, b)", {"ElementWise"}),
      Two("rank_3_by_2", "2,6,7", "6,1", "2,6,7", "Add(a, b)", {"ElementWise"}),
      Two("rank_4_by_0", "2,6,7,3", "", "2,6,7,3", "Add(a, b)", {"ElementWise"}),
      Two("rank_4_by_2", "2,6,7,3", "7,3", "2,6,7,3", "Mul(a, b)", {"ElementWise"}),
      Two("rank_4_by_3", "2,6,7,3", "6,1,1", "2,6,7,3", "Mul(a, b)", {"ElementWise"}),
      Two("rank_1_by_4", "3", "2,6,7,1", "2,6,7,3", "Sub(a, b)", {"ElementWise"}),
      Two("rank_5", "2,3,4,5,6", "2,3,4,5,6", "2,3,4,5,6", "Add(a, b)", {"ElementWise"}, "h16"),
      Two("rank_5_by_1", "2,3,4,5,6", "6", "2,3,4,5,6", "Add(a, b)", {"ElementWise"}),
      Two("rank_5_by_4", "2,3,4,5,6", "3,1,5,1", "2,3,4,5,6", "Add(a, b)", {"ElementWise"}),
      Two("both_repeat", "2,1,4,1", "3,1,5", "2,3,4,5", "Mul(a, b)", {"ElementWise"}),
      // Constants: a scalar becomes a gain or an offset, any other constant is an operand.
      ByConstant("add_number", "2,3,4,5", "1", "2,3,4,5", "Add(x, k)", {"GOC"}),
      ByConstant("number_minus", "2,3,4,5", "", "2,3,4,5", "Sub(k, x)", {"GOC"}),
      ByConstant("minus_number", "2,3,4,5", "1,1", "2,3,4,5", "Sub(x, k)", {"GOC"}),
      ByConstant("times_number", "4,5", "1", "4,5", "Mul(k, x)", {"GOC"}),
      ByConstant("divided_by_number", "4,5", "1", "4,5", "Div(x, k)", {"GOC"}),
      ByConstant("number_divided", "4,5", "1", "4,5", "Div(k, x)", {"ElementWise"}),
      ByConstant("number_of_higher_rank", "5", "1,1,1", "1,1,5", "Mul(k, x)", {"GOC"}),
      ByConstant("number_to_itself", "1", "1,1,1", "1,1,1", "Mul(k, x)", {"GOC"}),
      ByConstant("channel_bias", "2,3,4,5", "3,1,1", "2,3,4,5", "Add(x, k)", {"ElementWise"}),
      ByConstant("last_axis_bias", "2,3,5", "5", "2,3,5", "Add(k, x)", {"ElementWise"}),
      ByConstant("divided_by_channel", "2,3,4,5", "3,1,1", "2,3,4,5", "Div(x, k)", {"ElementWise"}),
      ByConstant("repeated_by_constant", "1,5", "4,1", "4,5", "Mul(x, k)", {"ElementWise"}),
      ByConstant("rank_5_constant", "2,3,4,5,6", "3,4,1,6", "2,3,4,5,6", "Mul(x, k)",
                 {"ElementWise", "Transpose"}),
  };
  Case divide = Two("div", "2,3,4,5", "3,1,1", "2,3,4,5", "Div(a, b)", {"ElementWise"});
  divide.low = 0.5f;
  cases.push_back(divide);
  divide.name = "div_below_a13_is_a_product";
  divide.target = "h12";
  divide.units = {"Neuron", "ElementWise"};
  cases.push_back(divide);
  divide.name = "div_below_a13_is_a_rewrite";
  divide.rewrites = false;
  divide.refused_by = "elementwise-divide";
  cases.push_back(divide);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Binary, KernelTest, testing::ValuesIn(Binary()), CaseName);

// Compares zeros and ones, so that many elements are equal.
Case Compare(const std::string& name, const std::string& op, std::vector<std::string> units) {
  return {.name = name,
          .model = absl::StrCat("(bool[4,1,9] a, bool[5,9] b) => (bool[4,5,9] y) "
                                "{ p = Cast<to = 1>(a) q = Cast<to = 1>(b) y = ",
                                op, "(p, q) }"),
          .units = std::move(units)};
}

Case Logical(const std::string& name, const std::string& call, std::vector<std::string> units) {
  return {
      .name = name,
      .model = absl::StrCat("(bool[4,1,9] a, bool[5,9] b) => (bool[4,5,9] y) { y = ", call, " }"),
      .units = std::move(units)};
}

const std::vector<Case> kLogical = {
    Compare("equal", "Equal", {"ElementWise"}),
    Compare("greater", "Greater", {"ElementWise"}),
    Compare("less", "Less", {"ElementWise"}),
    Compare("greater_or_equal", "GreaterOrEqual", {"ElementWise", "GOC"}),
    Compare("less_or_equal", "LessOrEqual", {"ElementWise", "GOC"}),
    Logical("and", "And(a, b)", {"ElementWise"}),
    Logical("or", "Or(a, b)", {"ElementWise"}),
    Logical("xor", "Xor(a, b)", {"ElementWise"}),
    Logical("equal_bools", "Equal(a, b)", {"ElementWise"}),
    {.name = "not", .model = "(bool[4,9] x) => (bool[4,9] y) { y = Not(x) }", .units = {"GOC"}},
    {.name = "compare_with_a_number",
     .model = "(float[4,9] x) => (bool[4,9] y) <float k = {0.5}> { y = Greater(x, k) }",
     .units = {"ElementWise"}},
    {.name = "compare_with_infinity",  // finds rows whose elements are all masked
     .model = "(bool[4,9] c, bool[4,1] d) => (bool[4,1] y, bool[4,1] z) "
              "<float zero = {0}, int64[1] axes = {-1}> "
              "{ low = Log(zero) high = Neg(low) both = And(c, d) m = Where(both, zero, low) "
              "twice = Add(m, m) r = ReduceMax(twice, axes) y = Equal(r, low) "
              "n = Neg(m) s = ReduceMin(n, axes) z = Equal(high, s) }",
     .units = {"ElementWise", "ElementWise", "ElementWise", "ElementWise", "GOC", "GOC", "GOC",
               "GOC", "Reduction", "Reduction"}},
    {.name = "xor_is_a_rewrite",
     .model = "(bool[4,9] a, bool[4,9] b) => (bool[4,9] y) { y = Xor(a, b) }",
     .rewrites = false,
     .refused_by = "no-lowering"},
    {.name = "integers_stay_off",
     .model = "(int64[4,9] a, int64[4,9] b) => (int64[4,9] y) { y = Add(a, b) }",
     .refused_by = "integer-range"},
    {.name = "integers_are_not_compared",
     .model = "(int32[4,9] a) => (bool[4,9] y) <int32 k = {1}> { y = Equal(a, k) }",
     .refused_by = "integer-range"},
};

INSTANTIATE_TEST_SUITE_P(Logical, KernelTest, testing::ValuesIn(kLogical), CaseName);

const std::vector<Case> kAbs = {
    {.name = "abs",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) { y = Abs(x) }",
     .units = {"ElementWise"}},
    {.name = "neg",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) { y = Neg(x) }",
     .units = {"GOC"}},
};

INSTANTIATE_TEST_SUITE_P(Signs, KernelTest, testing::ValuesIn(kAbs), CaseName);

}  // namespace
}  // namespace anemone
