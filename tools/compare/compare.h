// tools/compare/compare.h: measures the difference between a result and a reference.
#ifndef ANEMONE_TOOLS_COMPARE_COMPARE_H_
#define ANEMONE_TOOLS_COMPARE_COMPARE_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/formats/json.h"

namespace anemone {

struct Comparison {
  double cosine = 1;  // 1 if both are all zero
  double max_abs_error = 0;
  double max_rel_error = 0;  // relative to the reference's range, or its magnitude if constant
  std::optional<double> top1_agreement;  // share of rows (last axis) with the same largest element
  bool finite = true;     // all infinities and NaNs of the result are in the reference too
  bool constant = false;  // all elements of the reference are equal, so the cosine means nothing
};

// kInvalidArgument if type or shape differ. Where the reference is not finite, the result must have
// the same value; these elements are not in the measures.
absl::StatusOr<Comparison> Compare(const std::string& name, const Tensor& result,
                                   const Tensor& reference);

// True if `comparison` meets --tolerance (cosine=0.999 if empty). A constant reference is compared
// by max_rel.
bool WithinTolerance(const Comparison& comparison, const std::map<std::string, double>& tolerance);

// The keys of a comparison in --json documents: cosine, max_abs_error and so on to finite.
Json ComparisonJson(const Comparison& comparison);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_COMPARE_H_
