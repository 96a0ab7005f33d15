// Gradients of functions of one input. In comments, dx and dy are the derivatives of the loss by
// the input x and the output y.
#include <cmath>
#include <numbers>

#include "importer/edit.h"
#include "importer/gradients/gradient.h"
#include "importer/gradients/rules.h"

namespace anemone::gradient {
namespace {

absl::Status GiveTimes(Context& g, ValueId slope) {
  g.Give(0, g.Mul(g.cotangent(), slope));
  return absl::OkStatus();
}

ValueId Number(Context& g, double value) { return g.Scalar(g.type(), value); }

// 1 where x > 0, else 0.
ValueId IsPositive(Context& g, ValueId x) {
  return g.Emit("Where", {g.Emit("Greater", {x, Number(g, 0)}), Number(g, 1), Number(g, 0)});
}

// exp(-(factor x)^2)
ValueId Bell(Context& g, ValueId x, double factor) {
  const ValueId scaled = g.Mul(x, Number(g, factor));
  return g.Emit("Exp", {g.Emit("Neg", {g.Mul(scaled, scaled)})});
}

// Phi(x) + x phi(x), with the normal distribution's Phi and its density phi.
absl::Status ExactGelu(Context& g) {
  const ValueId x = g.input(0);
  const ValueId error = g.Emit("Erf", {g.Mul(x, Number(g, std::numbers::sqrt2 / 2))});
  const ValueId share = g.Mul(g.Add(error, Number(g, 1)), Number(g, 0.5));
  const double height = std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;
  const ValueId density = g.Mul(Bell(g, x, std::numbers::sqrt2 / 2), Number(g, height));
  return GiveTimes(g, g.Add(share, g.Mul(x, density)));
}

// y = x s(u), with u = 2 sqrt(2/pi) (x + 0.044715 x^3) and the sigmoid s:
// dx = dy s (1 + x (1 - s) u'), u' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2)
absl::Status TanhGelu(Context& g) {
  const double rate = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const ValueId x = g.input(0), one = Number(g, 1);
  const ValueId square = g.Mul(x, x);
  const ValueId cubic = g.Add(g.Mul(square, Number(g, 0.044715 * rate)), Number(g, rate));
  const ValueId s = g.Emit("Sigmoid", {g.Mul(x, cubic)});
  const ValueId slope = g.Add(g.Mul(square, Number(g, 3 * 0.044715 * rate)), Number(g, rate));
  // x (1 - s) first: it tends to 0, where the slope grows.
  const ValueId rest = g.Mul(g.Mul(x, g.Sub(one, s)), slope);
  return GiveTimes(g, g.Mul(s, g.Add(rest, one)));
}

}  // namespace

absl::Status Abs(Context& g) { return GiveTimes(g, g.Emit("Sign", {g.input(0)})); }

absl::Status Neg(Context& g) {
  g.Give(0, g.Emit("Neg", {g.cotangent()}));
  return absl::OkStatus();
}

// dx = dy (x > 0). The output is not negative, so its sign is 0 or 1.
absl::Status Relu(Context& g) { return GiveTimes(g, g.Emit("Sign", {g.output(0)})); }

absl::Status LeakyRelu(Context& g) {
  const double alpha = FloatOr(g.node(), "alpha", 0.01f);
  return GiveTimes(g,
                   g.Add(g.Mul(IsPositive(g, g.input(0)), Number(g, 1 - alpha)), Number(g, alpha)));
}

// dx = dy for x > 0, else dy (y + alpha)
absl::Status Elu(Context& g) {
  const double alpha = FloatOr(g.node(), "alpha", 1);
  const ValueId below = g.Add(g.output(0), Number(g, alpha));
  const ValueId slope =
      g.Emit("Where", {g.Emit("Greater", {g.input(0), Number(g, 0)}), Number(g, 1), below});
  return GiveTimes(g, slope);
}

// 1 - y is exact in fp16 for y >= 0.5.
absl::Status Sigmoid(Context& g) {
  const ValueId y = g.output(0);
  return GiveTimes(g, g.Mul(y, g.Sub(Number(g, 1), y)));
}

absl::Status HardSigmoid(Context& g) {
  const double alpha = FloatOr(g.node(), "alpha", 0.2f);
  const ValueId y = g.output(0);
  const ValueId inside = g.Mul(IsPositive(g, y), IsPositive(g, g.Sub(Number(g, 1), y)));
  return GiveTimes(g, g.Mul(inside, Number(g, alpha)));
}

absl::Status Tanh(Context& g) {
  const ValueId one = Number(g, 1), y = g.output(0);
  return GiveTimes(g, g.Mul(g.Sub(one, y), g.Add(one, y)));
}

absl::Status Softplus(Context& g) { return GiveTimes(g, g.Emit("Sigmoid", {g.input(0)})); }

// dx = dy (1 - |y|)^2
absl::Status Softsign(Context& g) {
  const ValueId rest = g.Sub(Number(g, 1), g.Emit("Abs", {g.output(0)}));
  return GiveTimes(g, g.Mul(rest, rest));
}

absl::Status Gelu(Context& g) {
  return StringOr(g.node(), "approximate", "none") == "tanh" ? TanhGelu(g) : ExactGelu(g);
}

// dx = dy 2 / sqrt(pi) exp(-x^2)
absl::Status Erf(Context& g) {
  return GiveTimes(g, g.Mul(Bell(g, g.input(0), 1), Number(g, 2 * std::numbers::inv_sqrtpi)));
}

absl::Status Exp(Context& g) { return GiveTimes(g, g.output(0)); }

absl::Status Log(Context& g) {
  g.Give(0, g.Div(g.cotangent(), g.input(0)));
  return absl::OkStatus();
}

// dx = dy / (2 y)
absl::Status Sqrt(Context& g) {
  g.Give(0, g.Div(g.Mul(g.cotangent(), Number(g, 0.5)), g.output(0)));
  return absl::OkStatus();
}

// dx = -dy y^2
absl::Status Reciprocal(Context& g) {
  const ValueId y = g.output(0);
  return GiveTimes(g, g.Emit("Neg", {g.Mul(y, y)}));
}

absl::Status Sin(Context& g) { return GiveTimes(g, g.Emit("Cos", {g.input(0)})); }

absl::Status Cos(Context& g) { return GiveTimes(g, g.Emit("Neg", {g.Emit("Sin", {g.input(0)})})); }

}  // namespace anemone::gradient
