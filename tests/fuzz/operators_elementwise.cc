// Element-by-element operators, their patterns, and casts.
#include <vector>

#include "tests/fuzz/maker.h"

namespace anemone::fuzz {
namespace {

struct Parameter {
  const char* name = nullptr;
  float low = 0, high = 0;
};
// Operators of one input and at most two float attributes.
struct Unary {
  const char* op;
  int since = 13;
  Parameter parameters[2] = {};
};
constexpr Unary kUnary[] = {
    {"Abs"},
    {"Atan"},
    {"Ceil"},
    {"Celu", 13, {{"alpha", 0.3f, 2}}},
    {"Cos"},
    {"Elu", 13, {{"alpha", -1, 2}}},
    {"Erf"},
    {"Exp"},
    {"Floor"},
    {"HardSigmoid", 13, {{"alpha", 0.05f, 1}, {"beta", -0.5f, 1}}},
    {"HardSwish", 14},
    {"Identity"},
    {"LeakyRelu", 13, {{"alpha", -0.5f, 1.5f}}},
    {"Log"},
    {"Mish", 18},
    {"Neg"},
    {"Reciprocal"},
    {"Relu"},
    {"Round"},
    {"Selu", 13, {{"alpha", 0.5f, 2}, {"gamma", 0.5f, 2}}},
    {"Sigmoid"},
    {"Sign"},
    {"Sin"},
    {"Softplus"},
    {"Softsign"},
    {"Sqrt"},
    {"Tan"},
    {"Tanh"},
    {"ThresholdedRelu", 13, {{"alpha", -1, 2}}},
};
// Unary operators without a lowering.
constexpr Unary kOnCpu[] = {{"Acos"},  {"Acosh"}, {"Asin"},  {"Asinh"},
                            {"Atanh"}, {"Cosh"},  {"IsNaN"}, {"Sinh"}};

template <size_t N>
void EmitOneOf(const Unary (&table)[N], Maker& m) {
  const Unary& row = table[m.random.Below(N)];
  if (m.opset() < row.since) return;
  Attributes attributes;
  for (const Parameter& p : row.parameters) {
    if (p.name == nullptr || m.random.Chance(30)) continue;
    attributes = std::move(attributes).Float(p.name, m.random.Uniform(p.low, p.high));
  }
  m.Emit(row.op, {m.Any()}, attributes);
}
void MakeUnary(Maker& m) { EmitOneOf(kUnary, m); }
void MakeOnCpu(Maker& m) { EmitOneOf(kOnCpu, m); }

void MakeBinary(Maker& m) {
  const std::string a = m.Any();
  const std::string b = m.BroadcastWith(m.DimsOf(a));
  const char* op = m.random.Pick({"Add", "Sub", "Mul", "Div", "Min", "Max", "Pow"});
  m.random.Chance(70) ? m.Emit(op, {a, b}) : m.Emit(op, {b, a});
}

void MakeVariadic(Maker& m) {
  std::vector<std::string> inputs = {m.Any()};
  const Dims dims = m.DimsOf(inputs[0]);
  for (int64_t i = m.random.Below(3); i >= 0; --i) inputs.push_back(m.BroadcastWith(dims));
  m.Emit(m.random.Pick({"Sum", "Mean", "Min", "Max"}), inputs);
}

void MakeComparison(Maker& m) {
  const std::string a = m.Any();
  m.Emit(m.random.Pick({"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}),
         {a, m.BroadcastWith(m.DimsOf(a))});
}

void MakeLogic(Maker& m) {
  const std::string a = m.Condition(m.RandomDims(2, 4));
  if (m.random.Chance(25)) {
    m.Emit("Not", {a});
  } else {
    m.Emit(m.random.Pick({"And", "Or", "Xor"}), {a, m.Condition(m.DimsOf(a))});
  }
}

void MakeWhere(Maker& m) {
  const std::string a = m.Any();
  const std::string b = m.BroadcastWith(m.DimsOf(a));
  m.Emit("Where", {m.Condition(m.DimsOf(a)), a, b});
}

void MakeClip(Maker& m) {
  const std::string low = m.random.Chance(80) ? m.Scalar(m.random.Uniform(-2, 1)) : "";
  if (m.random.Chance(20)) {
    m.Emit("Clip", {m.Any(), low});
  } else {
    m.Emit("Clip", {m.Any(), low, m.Scalar(m.random.Uniform(-0.5f, 6))});
  }
}

void MakePRelu(Maker& m) {
  const std::string x = m.Any();
  Dims slope = m.DimsOf(x);
  for (size_t i = 0; i < slope.size(); ++i) {
    if (i != 1 && m.random.Chance(80)) slope[i] = 1;
  }
  while (slope.size() > 1 && slope[0] == 1 && m.random.Chance(70)) slope.erase(slope.begin());
  m.Emit("PRelu", {x, m.Weight(slope)});
}

void MakeMod(Maker& m) {
  const std::string x = m.Any();
  m.Emit(
      "Mod",
      {x, m.random.Chance(70) ? m.Scalar(m.random.Uniform(0.5f, 4)) : m.BroadcastWith(m.DimsOf(x))},
      Attributes().Int("fmod", 1));
}

void MakePow(Maker& m) {
  m.Emit("Pow", {m.Any(), m.Scalar(m.random.Pick({2.f, 3.f, 0.5f, -1.f, 1.f, -0.5f, 4.f, 2.5f}))});
}

void MakeGelu(Maker& m) {
  m.Emit("Gelu", {m.Any()},
         m.random.Chance(50) ? Attributes() : Attributes().Text("approximate", "tanh"));
}

// x * Sigmoid(x), and GELU as exporters wrote it before opset 20.
void MakeGatePattern(Maker& m) {
  const std::string x = m.Any();
  if (m.random.Chance(50)) {
    const auto gate = m.Emit(m.random.Pick({"Sigmoid", "HardSigmoid", "Tanh"}), {x});
    if (!gate.empty()) m.Emit("Mul", {x, gate[0]});
    return;
  }
  const auto scaled = m.Emit("Div", {x, m.Scalar(1.41421356f)});
  const auto erf = scaled.empty() ? scaled : m.Emit("Erf", {scaled[0]});
  const auto one = erf.empty() ? erf : m.Emit("Add", {erf[0], m.Scalar(1)});
  const auto product = one.empty() ? one : m.Emit("Mul", {x, one[0]});
  if (!product.empty()) m.Emit("Mul", {product[0], m.Scalar(0.5f)});
}

// A scale, an addend or both, per channel.
void MakeAffinePattern(Maker& m) {
  const std::string x = m.OfRank(2, 5);
  Dims dims(m.RankOf(x), 1);
  dims[1] = m.DimsOf(x)[1];
  if (m.random.Chance(50)) dims.erase(dims.begin());
  const auto scaled = m.Emit(m.random.Pick({"Mul", "Div"}), {x, m.PositiveWeight(dims)});
  if (!scaled.empty()) {
    m.Emit(m.random.Pick({"Add", "Sub"}), {scaled[0], m.Weight(dims)});
  }
}

void MakeCast(Maker& m) {
  constexpr int kBool = 9, kHalf = 10, kDouble = 11, kInt32 = 6, kInt64 = 7, kFloat = 1;
  const int to = m.random.Pick({kBool, kHalf, kDouble, kInt32, kInt64, kFloat});
  const auto cast = m.Emit("Cast", {m.Any()}, Attributes().Int("to", to));
  if (!cast.empty() && m.random.Chance(80)) {
    m.Emit("Cast", {cast[0]}, Attributes().Int("to", kFloat));
  }
}

void MakeCastOfBool(Maker& m) {
  m.Emit("Cast", {m.Condition(m.RandomDims(2, 4))}, Attributes().Int("to", 1));
}

constexpr OperatorRow kElementwiseRows[] = {
    {"unary", MakeUnary, 24},
    {"without a lowering", MakeOnCpu, 2},
    {"binary", MakeBinary, 16},
    {"variadic", MakeVariadic},
    {"comparison", MakeComparison},
    {"logic", MakeLogic, 2},
    {"Where", MakeWhere},
    {"Clip", MakeClip},
    {"PRelu", MakePRelu},
    {"Mod", MakeMod, 2},
    {"Pow", MakePow},
    {"Gelu", MakeGelu, 3, 20},
    {"gate", MakeGatePattern},
    {"affine", MakeAffinePattern},
    {"Cast", MakeCast},
    {"Cast of bool", MakeCastOfBool, 1},
};

}  // namespace

absl::Span<const OperatorRow> ElementwiseRows() { return kElementwiseRows; }

}  // namespace anemone::fuzz
