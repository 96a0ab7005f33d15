// Sin and Cos for targets before A15, whose units do not have these functions, and Tan, which no
// target has. Recipes: op_matrix.json sin, cos ("polynomial after range folding") and tan ("sin
// over cos").
#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/lowering.h"
#include "kernels/units/goc.h"

namespace anemone {
namespace {

// pi as the sum of two parts with few bits. k * kPiHigh and k * kPiLow are exact in fp16 for |k| up
// to 81, and so are the differences in Folded(). The sum differs from pi by 9e-6.
constexpr double kPi = 3.14159265358979;
constexpr double kPiHigh = 3.125;
constexpr double kPiLow = 17.0 / 1024;

// x = k * pi + r, or x = (k + 1/2) * pi + r if `halves` was set; k is an integer.
struct Folding {
  Operand k, r;
};

absl::StatusOr<Folding> Folded(LowerContext& c, const Operand& x, bool halves) {
  Operand whole = ScaleAndShift(c, x, 1 / kPi, halves ? 0 : 0.5);
  whole = Activated(c, NeuronType::kFloor, whole);
  Operand k = ScaleAndShift(c, whole, 1, halves ? 0.5 : 0);
  Operand high = ScaleAndShift(c, k, kPiHigh, 0);
  Operand low = ScaleAndShift(c, k, kPiLow, 0);
  Operand r = Combined(c, ElementWiseType::kSub, x, high);
  r = Combined(c, ElementWiseType::kSub, r, low);
  // For large x, where fp16 has no fraction bits left, r is only rounding error. The clamp keeps
  // the result in -1..1.
  constexpr float kMostR = 1.75;
  r = Activated(c, NeuronType::kClampedReLU, r, -kMostR, kMostR);
  return Folding{whole, r};
}

// sin(r) for |r| up to slightly more than pi / 2: r (1 + r^2 (a + b r^2)). These are the fp16
// coefficients with the smallest maximum error over all fp16 arguments, 9.9e-4.
Operand SineNearZero(LowerContext& c, const Operand& r) {
  Operand square = Combined(c, ElementWiseType::kMult, r, r);
  Operand p = ScaleAndShift(c, square, 0.00748443603515625, -0.165771484375);
  p = Combined(c, ElementWiseType::kMult, p, square);
  p = ScaleAndShift(c, p, 1, 1);
  return Combined(c, ElementWiseType::kMult, r, p);
}

// sign * (-1)^k for integers k: k - 2 floor(k / 2) is 0 or 1.
Operand Alternating(LowerContext& c, const Operand& k, double sign) {
  Operand even = ScaleAndShift(c, k, 0.5, 0);
  even = Activated(c, NeuronType::kFloor, even);
  even = ScaleAndShift(c, even, 2, 0);
  Operand odd = Combined(c, ElementWiseType::kSub, k, even);
  return ScaleAndShift(c, odd, -2 * sign, sign);
}

// sin(r + k pi) = (-1)^k sin(r), and cos(r + (k + 1/2) pi) = -(-1)^k sin(r). Compared with the
// exact sine or cosine of the same fp16 argument, the absolute error is at most 1.1e-3 for |x| up
// to 254 (128 for the cosine), which was verified for all arguments. For larger |x| the error grows
// with the distance between fp16 numbers: 0.13 at 500.
absl::Status LowerByPolynomial(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const bool cosine = node.op_type == "Cos";
  Operand x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(Folding folding, Folded(c, x, cosine));
  Operand y = SineNearZero(c, folding.r);
  Operand sign = Alternating(c, folding.k, cosine ? -1 : 1);
  y = Combined(c, ElementWiseType::kMult, y, sign);
  return c.Out(node.outputs[0], y);
}

// a / b as a times the reciprocal of b, because A12 and older targets cannot divide by a tensor
// (rule elementwise-divide).
Operand Quotient(LowerContext& c, const Operand& a, const Operand& b) {
  Operand inverse = Activated(c, NeuronType::kInv, b);
  return Combined(c, ElementWiseType::kMult, a, inverse);
}

// The error, relative (absolute for |tan x| below 1), is at most 1.2e-3 where |x| is up to 254 and
// |tan x| is up to 100.
absl::Status LowerTan(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  Operand sine = Activated(c, NeuronType::kSin, x);
  Operand cosine = Activated(c, NeuronType::kCos, x);
  Operand y = Quotient(c, sine, cosine);
  return c.Out(node.outputs[0], y);
}

// tan(r + k pi) = sin(r) / sin(pi / 2 - |r|). This divisor stays precise near the pole. The error,
// relative (absolute for |tan x| below 1), is at most 2.1e-3 for |x| up to 8 and |tan x| up to 100.
// For |x| up to 254, where the two parts of pi are off by k * 9e-6, it is at most 2.1e-3 for |tan
// x| up to 1 and 7.3e-3 for |tan x| up to 10.
absl::Status LowerTanByPolynomial(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(Folding folding, Folded(c, x, /*halves=*/false));
  Operand rest = Absolute(c, folding.r);
  rest = ScaleAndShift(c, rest, -1, kPiHigh / 2);
  rest = ScaleAndShift(c, rest, 1, (kPi - kPiHigh) / 2);
  Operand sine = SineNearZero(c, folding.r);
  Operand cosine = SineNearZero(c, rest);
  Operand y = Quotient(c, sine, cosine);
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {
    {.op = "Sin", .rewritten = true, .lower = LowerByPolynomial},
    {.op = "Cos", .rewritten = true, .lower = LowerByPolynomial},
    {.op = "Tan", .rewritten = true, .lower = LowerTan},
    {.op = "Tan", .rewritten = true, .lower = LowerTanByPolynomial},
};

}  // namespace

KernelRows TrigonometryRows() { return {{}, kLowerings}; }

}  // namespace anemone
