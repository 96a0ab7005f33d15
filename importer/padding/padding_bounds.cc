#include "importer/padding/padding_bounds.h"

#include <algorithm>

namespace anemone::bounds {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

bool HoldsZero(Bounds a) { return a.low <= 0 && a.high >= 0; }

Bounds Opposite(Bounds a) { return {-a.high, -a.low}; }

Bounds Plus(Bounds a, Bounds b) {
  return {NumberOr(a.low + b.low, -kInfinity), NumberOr(a.high + b.high, kInfinity)};
}

Bounds Multiplied(Bounds a, Bounds b) {
  const auto [low, high] = std::minmax(
      {Times(a.low, b.low), Times(a.low, b.high), Times(a.high, b.low), Times(a.high, b.high)});
  return {low, high};
}

Bounds Divided(Bounds a, Bounds b) {
  if (HoldsZero(b)) return a.is(0) ? a : Bounds();
  return Multiplied(a, {1 / b.high, 1 / b.low});
}

Bounds Truth(bool never, bool always) { return {always ? 1.0 : 0.0, never ? 0.0 : 1.0}; }

template <class F>
Bounds Fold(In x, F join) {
  Bounds made = x[0];
  for (const Bounds& next : x.subspan(1)) made = join(made, next);
  return made;
}

}  // namespace

Bounds Sum(In x) { return Fold(x, Plus); }
Bounds Difference(In x) { return Plus(x[0], Opposite(x[1])); }
Bounds Product(In x) { return Multiplied(x[0], x[1]); }
Bounds Quotient(In x) { return Divided(x[0], x[1]); }

Bounds Dequantized(In x) {
  const Bounds zero = x.size() > 2 ? x[2] : Bounds{0, 0};
  return Multiplied(Plus(x[0], Opposite(zero)), x[1]);
}

Bounds Power(In x) {
  const Bounds &base = x[0], &exponent = x[1];
  const bool even = exponent.low == exponent.high && std::fmod(exponent.low, 2) == 0;
  return even || base.low >= 0 ? Bounds{0, kInfinity} : Bounds();
}

Bounds Largest(In x) {
  return Fold(x, [](Bounds a, Bounds b) {
    return Bounds{std::max(a.low, b.low), std::max(a.high, b.high)};
  });
}

Bounds Smallest(In x) {
  return Fold(x, [](Bounds a, Bounds b) {
    return Bounds{std::min(a.low, b.low), std::min(a.high, b.high)};
  });
}

Bounds Choice(In x) {
  if (x[0].is(1)) return x[1];
  return x[0].is(0) ? x[2] : Hull(x[1], x[2]);
}

Bounds AnyInput(In x) { return Fold(x, Hull); }

Bounds Clipped(In x) {
  const Bounds& limits = x[1];
  return {std::clamp(x[0].low, limits.low, std::max(limits.low, limits.high)),
          std::max(limits.low, std::min(x[0].high, limits.high))};
}

Bounds Less(In x) { return Truth(x[0].low >= x[1].high, x[0].high < x[1].low); }

Bounds Equal(In x) {
  const bool points = x[0].low == x[0].high && x[1].low == x[1].high;
  return Truth(x[0].high < x[1].low || x[1].high < x[0].low, points && x[0].low == x[1].low);
}

Bounds And(In x) { return Smallest(x); }
Bounds NotZero(In x) { return Truth(x[0].is(0), !HoldsZero(x[0])); }

Bounds First(In x) { return x[0]; }
Bounds Third(In x) { return x[2]; }
Bounds Negative(In x) { return Opposite(x[0]); }

Bounds Magnitude(In x) {
  const Bounds size = {std::fabs(x[0].low), std::fabs(x[0].high)};
  return {HoldsZero(x[0]) ? 0 : std::min(size.low, size.high), std::max(size.low, size.high)};
}

Bounds Reciprocal(In x) { return Divided({1, 1}, x[0]); }
Bounds ZeroToOne(In) { return {0, 1}; }
Bounds NotNegative(In) { return {0, kInfinity}; }

Bounds SumOfAxes(In x) { return {x[0].low >= 0 ? 0 : -kInfinity, x[0].high <= 0 ? 0 : kInfinity}; }

double Relu(double x) { return std::max(x, 0.0); }
double SquareRoot(double x) { return std::sqrt(std::max(x, 0.0)); }

bool SecondMayBeZero(In x) { return HoldsZero(x[1]); }
bool FirstMayBeZero(In x) { return HoldsZero(x[0]); }
bool FirstMayBeNegative(In x) { return x[0].low < 0; }

bool PowerMayFail(In x) {
  const bool whole = x[1].low == x[1].high && x[1].low == std::floor(x[1].low);
  return (HoldsZero(x[0]) && x[1].low < 0) || (x[0].low < 0 && !whole);
}

}  // namespace anemone::bounds
