// Sin and Cos below A15, whose units have neither, and Tan, which no target has: op_matrix.json
// sin, cos ("polynomial after range folding") and tan ("sin over cos").
#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/lowering.h"
#include "kernels/units/goc.h"

namespace anemone {
namespace {

// pi in two parts of few bits: k * kPiHigh and k * kPiLow are exact in fp16 for |k| up to 81, and
// so are the differences in Folded(). The two miss pi by 9e-6.
constexpr double kPi = 3.14159265358979;
constexpr double kPiHigh = 3.125;
constexpr double kPiLow = 17.0 / 1024;

// x = k * pi + r. `whole` is k, a whole number, or half of an odd one.
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
  // Where fp16 has no fractions left, r is what rounding makes of it; the result shall still lie in
  // -1..1.
  constexpr float kMostR = 1.75;
  r = Activated(c, NeuronType::kClampedReLU, r, -kMostR, kMostR);
  return Folding{whole, r};
}

// sin(r) for |r| up to pi / 2 and a little more: r (1 + r^2 (a + b r^2)). Of all fp16 coefficients
// these have the smallest error over all fp16 arguments, 9.9e-4.
Operand SineNearZero(LowerContext& c, const Operand& r) {
  Operand square = Combined(c, ElementWiseType::kMult, r, r);
  Operand p = ScaleAndShift(c, square, 0.00748443603515625, -0.165771484375);
  p = Combined(c, ElementWiseType::kMult, p, square);
  p = ScaleAndShift(c, p, 1, 1);
  return Combined(c, ElementWiseType::kMult, r, p);
}

// (-1)^k of whole numbers, times `sign`: k - 2 floor(k / 2) is 0 or 1.
Operand Alternating(LowerContext& c, const Operand& k, double sign) {
  Operand even = ScaleAndShift(c, k, 0.5, 0);
  even = Activated(c, NeuronType::kFloor, even);
  even = ScaleAndShift(c, even, 2, 0);
  Operand odd = Combined(c, ElementWiseType::kSub, k, even);
  return ScaleAndShift(c, odd, -2 * sign, sign);
}

// sin(r + k pi) = (-1)^k sin(r), and cos(r + (k + 1/2) pi) = -(-1)^k sin(r). Against the sine (and
// cosine) of the same fp16 number the absolute error is at most 1.1e-3 for |x| up to 254 (128 for
// the cosine), found by trying all of them. Beyond, the error grows with the gaps between fp16
// numbers: 0.13 at 500.
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

// A quotient that needs no division by a tensor, which A12 and older lack (rule
// elementwise-divide).
Operand Quotient(LowerContext& c, const Operand& a, const Operand& b) {
  Operand inverse = Activated(c, NeuronType::kInv, b);
  return Combined(c, ElementWiseType::kMult, a, inverse);
}

// Relative error (absolute below 1) at most 1.2e-3 where |tan x| is up to 100, |x| up to 254.
absl::Status LowerTan(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  Operand sine = Activated(c, NeuronType::kSin, x);
  Operand cosine = Activated(c, NeuronType::kCos, x);
  Operand y = Quotient(c, sine, cosine);
  return c.Out(node.outputs[0], y);
}

// tan(r + k pi) = sin(r) / sin(pi / 2 - |r|), so that the divisor keeps its bits near the pole.
// Relative error (absolute below 1) at most 2.1e-3 for |x| up to 8 and |tan x| up to 100; up to
// 254, where the two parts of pi miss it by k * 9e-6, 2.1e-3 for |tan x| up to 1, 7.3e-3 up to 10.
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
