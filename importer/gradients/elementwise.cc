// Gradients of arithmetic with broadcasting. In comments, dy is the output's cotangent.
#include <optional>

#include "absl/strings/str_cat.h"
#include "importer/elements.h"
#include "importer/gradients/gradient.h"
#include "importer/gradients/rules.h"

namespace anemone::gradient {
namespace {

// Gives input `i` a gradient of the output's sizes, summed to the input's.
void GiveBroadcast(Context& g, size_t i, ValueId gradient) {
  if (g.wants(i)) g.Give(i, g.SumTo(gradient, g.out_dims(), g.in_dims(i)));
}

// The exponent, if it is one constant number.
std::optional<double> OneNumber(const Tensor* tensor) {
  if (tensor == nullptr || tensor->elements() != 1 || !IsFloating(tensor->type())) {
    return std::nullopt;
  }
  return ElementAsDouble(*tensor, 0);
}

// 1 where `condition` holds, else 0.
ValueId Mask(Context& g, absl::string_view comparison, ValueId a, ValueId b) {
  return g.Emit("Where",
                {g.Emit(comparison, {a, b}), g.Scalar(g.type(), 1), g.Scalar(g.type(), 0)});
}

}  // namespace

absl::Status Add(Context& g) {
  for (size_t i = 0; i < g.node().inputs.size(); ++i) GiveBroadcast(g, i, g.cotangent());
  return absl::OkStatus();
}

absl::Status Sub(Context& g) {
  GiveBroadcast(g, 0, g.cotangent());
  if (g.wants(1)) GiveBroadcast(g, 1, g.Emit("Neg", {g.cotangent()}));
  return absl::OkStatus();
}

absl::Status Mul(Context& g) {
  for (size_t i : {0, 1}) {
    if (g.wants(i)) GiveBroadcast(g, i, g.Mul(g.cotangent(), g.input(1 - i)));
  }
  return absl::OkStatus();
}

// da = dy / b, db = -y dy / b
absl::Status Div(Context& g) {
  if (!g.wants(0) && !g.wants(1)) return absl::OkStatus();
  const ValueId share = g.Div(g.cotangent(), g.input(1));
  GiveBroadcast(g, 0, share);
  if (g.wants(1)) GiveBroadcast(g, 1, g.Emit("Neg", {g.Mul(g.output(0), share)}));
  return absl::OkStatus();
}

// dx = p x^(p-1) dy
absl::Status Pow(Context& g) {
  if (g.wants(1)) return g.Refuse("Pow has no gradient by its exponent");
  const std::optional<double> power = OneNumber(g.ConstantOf(1));
  const ValueId x = g.input(0);
  const DataType type = g.type();
  ValueId slope = kNone;
  if (power == 2.0) {
    slope = g.Mul(x, g.Scalar(type, 2));
  } else if (power == 3.0) {
    slope = g.Mul(g.Mul(x, x), g.Scalar(type, 3));
  } else if (power) {
    slope = g.Mul(g.Emit("Pow", {x, g.Scalar(type, *power - 1)}), g.Scalar(type, *power));
  } else {
    return g.Refuse("Pow has a gradient only where its exponent is one constant number");
  }
  GiveBroadcast(g, 0, g.Mul(g.cotangent(), slope));
  return absl::OkStatus();
}

absl::Status Mean(Context& g) {
  const size_t count = g.node().inputs.size();
  const ValueId share = g.Mul(g.cotangent(), g.Scalar(g.type(), 1.0 / static_cast<double>(count)));
  for (size_t i = 0; i < count; ++i) GiveBroadcast(g, i, share);
  return absl::OkStatus();
}

// Of equal elements, the first input gets the gradient.
absl::Status Larger(Context& g) {
  if (g.node().inputs.size() > 2) {
    return g.Refuse(absl::StrCat(g.node().op_type, " of more than two inputs has no gradient"));
  }
  if (g.node().inputs.size() == 1) {
    g.Give(0, g.cotangent());
    return absl::OkStatus();
  }
  const absl::string_view first_wins = g.node().op_type == "Max" ? "GreaterOrEqual" : "LessOrEqual";
  const ValueId first = g.Emit(first_wins, {g.input(0), g.input(1)});
  const ValueId zero = g.Scalar(g.type(), 0);
  if (g.wants(0)) GiveBroadcast(g, 0, g.Emit("Where", {first, g.cotangent(), zero}));
  if (g.wants(1)) GiveBroadcast(g, 1, g.Emit("Where", {first, zero, g.cotangent()}));
  return absl::OkStatus();
}

absl::Status Where(Context& g) {
  const ValueId zero = g.Scalar(g.type(), 0);
  if (g.wants(1)) GiveBroadcast(g, 1, g.Emit("Where", {g.input(0), g.cotangent(), zero}));
  if (g.wants(2)) GiveBroadcast(g, 2, g.Emit("Where", {g.input(0), zero, g.cotangent()}));
  return absl::OkStatus();
}

// dx = dy where x is inside the bounds; the bounds themselves are inside.
absl::Status Clip(Context& g) {
  if (g.wants(1) || g.wants(2)) return g.Refuse("Clip has no gradient by its bounds");
  ValueId gradient = g.cotangent();
  if (g.input(1) != kNone) {
    gradient = g.Mul(gradient, Mask(g, "GreaterOrEqual", g.input(0), g.input(1)));
  }
  if (g.input(2) != kNone) {
    gradient = g.Mul(gradient, Mask(g, "LessOrEqual", g.input(0), g.input(2)));
  }
  g.Give(0, gradient);
  return absl::OkStatus();
}

absl::Status Cast(Context& g) {
  const DataType from = g.value(g.input(0)).type;
  g.Give(0, g.Emit("Cast", {g.cotangent()}, {{"to", static_cast<int64_t>(from)}}));
  return absl::OkStatus();
}

}  // namespace anemone::gradient
