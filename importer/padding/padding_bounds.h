// importer/padding/padding_bounds.h: computes bounds of an operator's results from the bounds of
// its inputs, for the proof of importer/padding/padding.h. The rows of
// importer/operators/operators.h name these functions.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_BOUNDS_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_BOUNDS_H_

#include <cmath>
#include <limits>

#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "importer/padding/padding_flow.h"

namespace anemone::bounds {

using In = absl::Span<const Bounds>;  // by input

// Arithmetic.
Bounds Sum(In x);
Bounds Difference(In x);
Bounds Product(In x);
Bounds Quotient(In x);
Bounds Dequantized(In x);  // (input 0 - input 2) * input 1
Bounds Power(In x);
Bounds Largest(In x);
Bounds Smallest(In x);
Bounds Choice(In x);  // Where
Bounds AnyInput(In x);
Bounds Clipped(In x);  // to the bounds of input 1

// Comparisons and logic: 0 is false, 1 true.
Bounds Less(In x);
Bounds Equal(In x);
Bounds And(In x);
Bounds NotZero(In x);  // Cast to bool

// Functions of one input.
Bounds First(In x);
Bounds Third(In x);
Bounds Negative(In x);
Bounds Magnitude(In x);
Bounds Reciprocal(In x);
Bounds ZeroToOne(In x);
Bounds NotNegative(In x);
Bounds SumOfAxes(In x);  // of any number of elements

inline double NumberOr(double number, double fallback) {
  return std::isnan(number) ? fallback : number;
}

// The bounds of a monotonically increasing function.
template <double (*F)(double)>
Bounds Rising(In x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {NumberOr(F(x[0].low), -kInfinity), NumberOr(F(x[0].high), kInfinity)};
}
double Relu(double x);
double SquareRoot(double x);

// True if a result may be NaN or infinite.
bool SecondMayBeZero(In x);
bool FirstMayBeZero(In x);
bool FirstMayBeNegative(In x);
bool PowerMayFail(In x);

}  // namespace anemone::bounds

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_BOUNDS_H_
