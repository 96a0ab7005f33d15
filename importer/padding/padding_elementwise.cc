// The operators that compute each element from the elements at the same place.
#include "importer/padding/padding_elementwise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace anemone {
namespace {

using In = absl::Span<const Bounds>;

constexpr Bounds kUnit = {0, 1};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Or(double number, double fallback) { return std::isnan(number) ? fallback : number; }
double Times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

Bounds Sum(Bounds a, Bounds b) {
  return {Or(a.low + b.low, -kInfinity), Or(a.high + b.high, kInfinity)};
}
Bounds Negative(Bounds a) { return {-a.high, -a.low}; }
Bounds Product(Bounds a, Bounds b) {
  const auto [low, high] = std::minmax(
      {Times(a.low, b.low), Times(a.low, b.high), Times(a.high, b.low), Times(a.high, b.high)});
  return {low, high};
}
bool HoldsZero(Bounds a) { return a.low <= 0 && a.high >= 0; }

Bounds Quotient(Bounds a, Bounds b) {
  if (HoldsZero(b)) return a.is(0) ? a : Bounds();
  return Product(a, {1 / b.high, 1 / b.low});
}

Bounds Truth(bool never, bool always) { return {always ? 1.0 : 0.0, never ? 0.0 : 1.0}; }

Bounds Power(Bounds base, Bounds exponent) {
  const bool even = exponent.low == exponent.high && std::fmod(exponent.low, 2) == 0;
  if (base.low > 0) return {0, kInfinity};
  return even || base.low >= 0 ? Bounds{0, kInfinity} : Bounds();
}
bool PowerIsWild(In x) {
  const bool whole = x[1].low == x[1].high && x[1].low == std::floor(x[1].low);
  return (HoldsZero(x[0]) && x[1].low < 0) || (x[0].low < 0 && !whole);
}

// A rising function of one input.
template <double (*F)(double)>
Bounds Rising(In x) {
  return {Or(F(x[0].low), -kInfinity), Or(F(x[0].high), kInfinity)};
}
double Same(double x) { return x; }
double Root(double x) { return std::sqrt(std::max(x, 0.0)); }
double Positive(double x) { return std::max(x, 0.0); }

template <class F>
Bounds Fold(In x, F join) {
  Bounds made = x[0];
  for (const Bounds& next : x.subspan(1)) made = join(made, next);
  return made;
}

bool IsNotNumber(In) { return true; }

using Table = std::map<std::string, Elementwise, std::less<>>;

Elementwise Comparison(Bounds (*bounds)(In)) {
  return {.bounds = bounds, .holes = Elementwise::kHolesEnd};
}

void AddArithmetic(Table& t) {
  constexpr auto kStay = Elementwise::kHolesStay;
  t["Add"] = {
      .bounds = [](In x) { return Sum(x[0], x[1]); }, .holes = kStay, .mask = Elementwise::kSum};
  t["Sum"] = {
      .bounds = [](In x) { return Fold(x, Sum); }, .holes = kStay, .mask = Elementwise::kSum};
  t["Sub"] = {.bounds = [](In x) { return Sum(x[0], Negative(x[1])); }};
  t["Mul"] = {.bounds = [](In x) { return Product(x[0], x[1]); }};
  t["Div"] = {.bounds = [](In x) { return Quotient(x[0], x[1]); },
              .wild = [](In x) { return HoldsZero(x[1]); },
              .guarded = 1};
  t["Pow"] = {.bounds = [](In x) { return Power(x[0], x[1]); }, .wild = PowerIsWild};
  t["Max"] = {.bounds =
                  [](In x) {
                    return Fold(x, [](Bounds a, Bounds b) {
                      return Bounds{std::max(a.low, b.low), std::max(a.high, b.high)};
                    });
                  },
              .holes = kStay};
  t["Min"] = {.bounds =
                  [](In x) {
                    return Fold(x, [](Bounds a, Bounds b) {
                      return Bounds{std::min(a.low, b.low), std::min(a.high, b.high)};
                    });
                  },
              .holes = kStay};
  t["Where"] = {
      .bounds = [](In x) { return x[0].is(1)   ? x[1]
                                  : x[0].is(0) ? x[2]
                                               : Hull(x[1], x[2]); },
      .holes = kStay,
      .mask = Elementwise::kChoice};
}

void AddLogic(Table& t) {
  t["Less"] = Comparison([](In x) { return Truth(x[0].low >= x[1].high, x[0].high < x[1].low); });
  t["LessOrEqual"] =
      Comparison([](In x) { return Truth(x[0].low > x[1].high, x[0].high <= x[1].low); });
  t["Greater"] =
      Comparison([](In x) { return Truth(x[0].high <= x[1].low, x[0].low > x[1].high); });
  t["GreaterOrEqual"] =
      Comparison([](In x) { return Truth(x[0].high < x[1].low, x[0].low >= x[1].high); });
  t["Equal"] = Comparison([](In x) {
    const bool points = x[0].low == x[0].high && x[1].low == x[1].high;
    return Truth(x[0].high < x[1].low || x[1].high < x[0].low, points && x[0].low == x[1].low);
  });
  t["Not"] = {.bounds = [](In x) { return Bounds{1 - x[0].high, 1 - x[0].low}; }};
  t["And"] = {.bounds = [](In x) {
    return Bounds{std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)};
  }};
  t["Or"] = {.bounds = [](In x) {
    return Bounds{std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)};
  }};
  t["Xor"] = Comparison([](In) { return kUnit; });
  t["IsNaN"] = t["IsInf"] = Comparison([](In) { return kUnit; });
}

void AddFunctions(Table& t) {
  constexpr auto kEnd = Elementwise::kHolesEnd;
  // A mask stays one.
  t["Identity"] = {
      .bounds = Rising<Same>, .holes = Elementwise::kHolesStay, .mask = Elementwise::kSum};
  t["Neg"] = {.bounds = [](In x) { return Negative(x[0]); }};
  t["Relu"] = {.bounds = Rising<Positive>, .holes = kEnd};
  t["Floor"] = {.bounds = Rising<std::floor>};
  t["Ceil"] = {.bounds = Rising<std::ceil>};
  t["Round"] = {.bounds = Rising<std::nearbyint>};
  t["Tanh"] = {.bounds = Rising<std::tanh>, .holes = kEnd};
  t["Erf"] = {.bounds = Rising<std::erf>, .holes = kEnd};
  t["Exp"] = {.bounds = Rising<std::exp>, .holes = kEnd};
  t["Sigmoid"] = t["HardSigmoid"] = {.bounds = [](In) { return kUnit; }, .holes = kEnd};
  t["Softplus"] = {.bounds = [](In) { return Bounds{0, kInfinity}; }, .holes = kEnd};
  t["Sign"] = t["Sin"] = t["Cos"] = {.bounds = [](In) { return Bounds{-1, 1}; }};
  t["Abs"] = {.bounds = [](In x) {
    const Bounds size = {std::fabs(x[0].low), std::fabs(x[0].high)};
    return Bounds{HoldsZero(x[0]) ? 0 : std::min(size.low, size.high),
                  std::max(size.low, size.high)};
  }};
  t["Sqrt"] = {.bounds = Rising<Root>, .wild = [](In x) { return x[0].low < 0; }};
  t["Log"] = {.wild = [](In x) { return x[0].low <= 0; }};
  t["Reciprocal"] = {.bounds =
                         [](In x) {
                           return Quotient({1, 1}, x[0]);
                         },
                     .wild = [](In x) { return HoldsZero(x[0]); }};
  for (const char* name : {"Gelu", "Mish", "Elu", "Selu", "Celu", "LeakyRelu", "HardSwish",
                           "Softsign", "ThresholdedRelu", "Shrink", "Atan", "Asinh", "Tan", "Sinh",
                           "Cosh", "Swish", "PRelu", "Mean"}) {
    t[name] = {};
  }
  for (const char* name : {"Acos", "Acosh", "Asin", "Atanh"}) t[name] = {.wild = IsNotNumber};
}

}  // namespace

const Elementwise* FindElementwise(absl::string_view op_type) {
  static const Table& table = *[] {
    auto* t = new Table;
    AddArithmetic(*t);
    AddLogic(*t);
    AddFunctions(*t);
    return t;
  }();
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : &found->second;
}

Bounds BoundsOfCast(DataType to, Bounds from) {
  if (to == DataType::kBool) return Truth(from.is(0), !HoldsZero(from));
  if (IsFloating(to)) return from;
  return {Or(std::trunc(from.low), -kInfinity), Or(std::trunc(from.high), kInfinity)};
}

}  // namespace anemone
