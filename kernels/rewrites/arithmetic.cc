// Pow, Mod and Round: operators that are computed by several arithmetic units.
#include <cmath>
#include <optional>
#include <vector>

#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/lowering.h"
#include "kernels/units/goc.h"

namespace anemone {
namespace {

// x to the power n, n >= 1, by repeated squaring, with one rounding for each product. It is also
// correct for negative x, for which the Power unit may fail if it computes with logarithms.
Operand Raised(LowerContext& c, Operand x, int n) {
  std::optional<Operand> y;
  for (;;) {
    if (n % 2 == 1 && y) {
      y = Combined(c, ElementWiseType::kMult, *y, x);
    } else if (n % 2 == 1) {
      y = x;
    }
    n /= 2;
    if (n == 0) return *y;
    x = Combined(c, ElementWiseType::kMult, x, x);
  }
}

constexpr int kLargestProduct = 8;  // for larger exponents, the Power unit has fewer roundings

// The power for exponents that have a better form than the Power unit; nullopt for other exponents.
absl::StatusOr<std::optional<Operand>> RaisedToNumber(LowerContext& c, const Operand& x,
                                                      double exponent) {
  std::optional<Operand> y;
  if (exponent == 0) {
    y = ScaleAndShift(c, x, 0, 1);
  } else if (exponent == 0.5) {
    y = Activated(c, NeuronType::kSqrt, x);
  } else if (exponent == -0.5) {
    y = Activated(c, NeuronType::kRsqrt, x);
  } else if (std::abs(exponent) <= kLargestProduct && std::trunc(exponent) == exponent) {
    y = Raised(c, x, static_cast<int>(std::abs(exponent)));
    if (exponent < 0) {
      y = Activated(c, NeuronType::kInv, *y);
    }
  }
  return y;
}

absl::Status LowerPow(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Operand x = AlignedOperand(c, node.inputs[0], shape);
  std::optional<double> exponent = c.view().Scalar(node.inputs[1]);
  if (exponent && c.DimsOf(x) == PlaceShape(shape)) {
    ANEMONE_ASSIGN_OR_RETURN(std::optional<Operand> y, RaisedToNumber(c, x, *exponent));
    if (y) return c.Out(node.outputs[0], *y);
  }
  Operand by;
  if (exponent) {  // a constant exponent may have any type, including integers
    by = ScalarConstant(c, static_cast<float>(*exponent));
  } else {
    by = AlignedOperand(c, node.inputs[1], shape);
  }
  x = Combined(c, ElementWiseType::kPower, x, by);
  return c.Out(node.outputs[0], x);
}

// Mod of floats, which is C's fmod: sign(x) * (|x| - floor(|x| / |y|) * |y|) (op_matrix.json mod).
// The result may be off by |y| if rounding moves the quotient to the next integer, or if the
// product exceeds 2048.
absl::Status LowerMod(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t fmod, a.Int("fmod", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Operand x = AlignedOperand(c, node.inputs[0], shape);
  Operand y = AlignedOperand(c, node.inputs[1], shape);
  if (fmod == 0) return c.NotLowered("Mod with fmod = 0");
  Operand sign = Activated(c, NeuronType::kSign, x);
  x = Absolute(c, x);
  y = Absolute(c, y);
  Operand whole = Combined(c, ElementWiseType::kDiv, x, y);
  whole = Activated(c, NeuronType::kFloor, whole);
  whole = Combined(c, ElementWiseType::kMult, whole, y);
  x = Combined(c, ElementWiseType::kSub, x, whole);
  x = Combined(c, ElementWiseType::kMult, x, sign);
  return c.Out(node.outputs[0], x);
}

// Rounds to the nearest integer, and a half to the even one. RoundNearest of the Neuron unit rounds
// a half away from zero and changes integers from 1024 on (numerics.json ew-round-op), so it is not
// used. For the magnitude x, e = 2 floor(x / 2) is the even integer at or below x, and d = x - e is
// in [0, 2). The result is e if d <= 0.5, e + 2 if d >= 1.5, else e + 1. Every step is exact. The
// magnitude is used because for a small negative x, e would be -2 and d not an fp16 number.
absl::Status LowerRound(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  Operand sign = Activated(c, NeuronType::kSign, x);
  x = Absolute(c, x);
  Operand even = ScaleAndShift(c, x, 0.5, 0);
  even = Activated(c, NeuronType::kFloor, even);
  even = ScaleAndShift(c, even, 2, 0);
  Operand d = Combined(c, ElementWiseType::kSub, x, even);
  Operand above = Combined(c, ElementWiseType::kGreaterThan, d, ScalarConstant(c, 0.5f));
  Operand below = Combined(c, ElementWiseType::kLessThan, d, ScalarConstant(c, 1.5f));
  Operand steps = Combined(c, ElementWiseType::kSub, above, below);
  steps = ScaleAndShift(c, steps, 1, 1);
  Operand y = Combined(c, ElementWiseType::kAdd, even, steps);
  y = Combined(c, ElementWiseType::kMult, y, sign);
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {
    {.op = "Pow", .lower = LowerPow},
    {.op = "Mod", .rewritten = true, .lower = LowerMod},
    {.op = "Round", .lower = LowerRound},
};

}  // namespace

KernelRows ArithmeticRows() { return {{}, kLowerings}; }

}  // namespace anemone
