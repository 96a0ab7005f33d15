// Sinh, Cosh and the inverse functions Asinh, Acosh, Atanh, Asin and Acos, for which the engine has
// no unit. They are computed from exponentials, logarithms, square roots and arc tangents. Error
// bounds compare with the exact function of the same fp16 argument; they are relative, and absolute
// where the result is below 1, unless a comment says otherwise.
#include <numbers>

#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/lowering.h"
#include "kernels/units/goc.h"

namespace anemone {
namespace {

// exp(sign * x) / 2, computed from exp(sign * x / 2), so that it overflows only where the result
// does.
Operand HalfExp(LowerContext& c, const Operand& x, double sign) {
  Operand root = ScaleAndShift(c, x, sign / 2, 0);
  root = Activated(c, NeuronType::kExp, root);
  Operand half = ScaleAndShift(c, root, 0.5, 0);
  return Combined(c, ElementWiseType::kMult, root, half);
}

// (exp(x) + exp(-x)) / 2: error at most 2e-3.
Operand Cosh(LowerContext& c, const Operand& x) {
  Operand up = HalfExp(c, x, 1);
  Operand down = HalfExp(c, x, -1);
  return Combined(c, ElementWiseType::kAdd, up, down);
}

// tanh(x) cosh(x), which has no cancellation near zero: relative error at most 3e-3.
Operand Sinh(LowerContext& c, const Operand& x) {
  Operand tangent = Activated(c, NeuronType::kTanh, x);
  Operand cosh = Cosh(c, x);
  return Combined(c, ElementWiseType::kMult, tangent, cosh);
}

// sqrt((x + a) (sign * x + b)) as a product of two roots, so that it does not overflow.
Operand RootOfProduct(LowerContext& c, const Operand& x, double sign, double a, double b) {
  Operand first = ScaleAndShift(c, x, 1, a);
  first = Activated(c, NeuronType::kSqrt, first);
  Operand second = ScaleAndShift(c, x, sign, b);
  second = Activated(c, NeuronType::kSqrt, second);
  return Combined(c, ElementWiseType::kMult, first, second);
}

// log(a + b). Both operands are halved first, so that the sum does not overflow.
Operand LogOfSum(LowerContext& c, const Operand& a, const Operand& b) {
  Operand half_a = ScaleAndShift(c, a, 0.5, 0);
  Operand half_b = ScaleAndShift(c, b, 0.5, 0);
  Operand y = Combined(c, ElementWiseType::kAdd, half_a, half_b);
  y = NaturalLog(c, y);
  return ScaleAndShift(c, y, 1, std::numbers::ln2);
}

// log(x + sqrt(x^2 - 1)): error at most 2e-3.
Operand Acosh(LowerContext& c, const Operand& x) {
  Operand root = RootOfProduct(c, x, 1, -1, 1);
  return LogOfSum(c, x, root);
}

// x (1 + x^2 (a + b x^2)), for |x| up to `limit`; x is clamped there.
Operand OddPolynomial(LowerContext& c, const Operand& x, float limit, double a, double b) {
  Operand near = Activated(c, NeuronType::kClampedReLU, x, -limit, limit);
  Operand square = Combined(c, ElementWiseType::kMult, near, near);
  Operand p = ScaleAndShift(c, square, b, a);
  p = Combined(c, ElementWiseType::kMult, p, square);
  p = ScaleAndShift(c, p, 1, 1);
  return Combined(c, ElementWiseType::kMult, near, p);
}

// `near` where |x| < limit, else `far`. `near` must be finite everywhere, and `far` must be finite
// where it is not selected, because the unselected operand is multiplied by 0.
Operand Chosen(LowerContext& c, const Operand& x, float limit, const Operand& near,
               const Operand& far) {
  Operand size = Absolute(c, x);
  Operand is_near = Combined(c, ElementWiseType::kLessThan, size, ScalarConstant(c, limit));
  Operand is_far = ScaleAndShift(c, is_near, -1, 1);
  Operand a = Combined(c, ElementWiseType::kMult, near, is_near);
  Operand b = Combined(c, ElementWiseType::kMult, far, is_far);
  return Combined(c, ElementWiseType::kAdd, a, b);
}

// log(|x| + sqrt(x^2 + 1)) with the sign of x. Near zero, where that has cancellation, x - x^3/6 +
// 3x^5/40. Relative error at most 3e-3. For large |x| the root is replaced by |x|.
Operand Asinh(LowerContext& c, const Operand& x) {
  constexpr float kNear = 0.5, kLarge = 128;
  Operand size = Absolute(c, x);
  Operand root = Combined(c, ElementWiseType::kMin, size, ScalarConstant(c, kLarge));
  root = Combined(c, ElementWiseType::kMult, root, root);
  root = ScaleAndShift(c, root, 1, 1);
  root = Activated(c, NeuronType::kSqrt, root);
  root = Combined(c, ElementWiseType::kMax, root, size);
  Operand far = LogOfSum(c, size, root);
  Operand sign = Activated(c, NeuronType::kSign, x);
  far = Combined(c, ElementWiseType::kMult, far, sign);
  Operand near = OddPolynomial(c, x, kNear, -1.0 / 6, 3.0 / 40);
  return Chosen(c, x, kNear, near, far);
}

// (log(1 + x) - log(1 - x)) / 2. Near zero, where that has cancellation, x + x^3/3 + x^5/5.
// Relative error at most 3e-3 for |x| below 1. At 1 the result is not infinite but follows from the
// engine's log(0).
Operand Atanh(LowerContext& c, const Operand& x) {
  constexpr float kNear = 0.375;
  Operand up = ScaleAndShift(c, x, 1, 1);
  up = NaturalLog(c, up);
  Operand down = ScaleAndShift(c, x, -1, 1);
  down = NaturalLog(c, down);
  Operand far = Combined(c, ElementWiseType::kSub, up, down);
  far = ScaleAndShift(c, far, 0.5, 0);
  Operand near = OddPolynomial(c, x, kNear, 1.0 / 3, 0.21);
  return Chosen(c, x, kNear, near, far);
}

// 2 atan(x / (1 + sqrt(1 - x^2))): relative error at most 3e-3.
Operand Asin(LowerContext& c, const Operand& x) {
  Operand below = RootOfProduct(c, x, -1, 1, 1);
  below = ScaleAndShift(c, below, 1, 1);
  Operand y = Combined(c, ElementWiseType::kDiv, x, below);
  y = Activated(c, NeuronType::kAtan, y);
  return ScaleAndShift(c, y, 2, 0);
}

// pi / 2 - asin(x): error at most 2e-3, absolute near 1.
Operand Acos(LowerContext& c, const Operand& x) {
  Operand y = Asin(c, x);
  return ScaleAndShift(c, y, -1, std::numbers::pi / 2);
}

struct Function {
  const char* op;
  Operand (*make)(LowerContext&, const Operand&);
};

constexpr Function kFunctions[] = {{"Sinh", Sinh},   {"Cosh", Cosh}, {"Asinh", Asinh},
                                   {"Acosh", Acosh}, {"Asin", Asin}, {"Atanh", Atanh},
                                   {"Acos", Acos}};

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  Operand y = RowNamed(node.op_type, kFunctions).make(c, x);
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {
    {.op = "Sinh", .rewritten = true, .lower = Lower},
    {.op = "Cosh", .rewritten = true, .lower = Lower},
    {.op = "Asinh", .rewritten = true, .lower = Lower},
    {.op = "Acosh", .rewritten = true, .lower = Lower},
    {.op = "Atanh", .rewritten = true, .lower = Lower},
    {.op = "Asin", .rewritten = true, .lower = Lower},
    {.op = "Acos", .rewritten = true, .lower = Lower},
};

}  // namespace

KernelRows HyperbolicRows() { return {{}, kLowerings}; }

}  // namespace anemone
