// tools/compare/compare.h: measures the difference between a result and a reference.
#ifndef ANEMONE_TOOLS_COMPARE_COMPARE_H_
#define ANEMONE_TOOLS_COMPARE_COMPARE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/formats/json.h"

namespace anemone {

// If `comparable` is false, the cosine is NaN and the errors are infinite: they cannot be told.
struct Comparison {
  double cosine = 1;  // 1 if both are all zero
  double max_abs_error = 0;
  double max_rel_error = 0;  // relative to the reference's range, or its magnitude if constant
  std::optional<double> top1_agreement;  // share of rows (last axis) with the same largest element
  bool finite = true;      // infinities and NaNs are those of the reference: nonfinite() is 0
  bool comparable = true;  // finite, and some element of the reference is not infinite or NaN
  bool constant = false;   // all elements of the reference are equal, so the cosine means nothing
  int64_t elements = 0;
  // Of the elements: those that are infinite or NaN where the reference is finite, and those that
  // differ from an infinity or NaN of the reference.
  int64_t infinite = 0, nan = 0, differ_from_nonfinite = 0;
  int64_t nonfinite() const { return infinite + nan + differ_from_nonfinite; }
};

// kInvalidArgument if type or shape differ. Where the reference is not finite, the result must have
// the same value; these elements are not in the measures.
absl::StatusOr<Comparison> Compare(const std::string& name, const Tensor& result,
                                   const Tensor& reference);

// What does not meet --tolerance (cosine=0.999 and max_rel=0.05 if empty): "cosine 1-3.2e-8, want
// >= 0.99999999". Empty if all is met. The cosine says nothing about scale and little about single
// elements, max_rel does. A constant reference is compared by max_rel, 0.01 unless given.
std::vector<std::string> Misses(const Comparison& comparison,
                                const std::map<std::string, double>& tolerance);
bool WithinTolerance(const Comparison& comparison, const std::map<std::string, double>& tolerance);

// "cosine 0.999998, max error 1.4e-05 (0.058 % of the output range)", or "64 of 64 values are inf
// where ONNX Runtime is finite". `exact`: a cosine near 1 is written as 1-3.2e-8.
std::string ComparisonText(const Comparison& comparison, bool exact);

// "0.058 % of the output range", "93.4 million times the output range": a max_rel_error in words.
std::string RangeShareText(double share);

// The keys of a comparison in --json documents: cosine, max_abs_error and so on to finite.
Json ComparisonJson(const Comparison& comparison);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_COMPARE_H_
