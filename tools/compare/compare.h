// tools/compare/compare.h: how far a result is from the reference.
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
  double cosine = 1;  // 1 where both are all zero
  double max_abs_error = 0;
  double max_rel_error = 0;  // of the reference's range, or its magnitude if it is constant
  std::optional<double> top1_agreement;  // share of rows (last axis) with the same largest element
  bool finite = true;     // the result holds no infinity or NaN that the reference has not
  bool constant = false;  // the reference's elements are all equal: no cosine can judge it
};

// kInvalidArgument if type or shape differ. Elements where the reference is not finite must be the
// same there, and are left out of the measures.
absl::StatusOr<Comparison> Compare(const std::string& name, const Tensor& result,
                                   const Tensor& reference);

// What --tolerance demands, cosine=0.999 if empty. A constant reference is judged by max_rel.
bool WithinTolerance(const Comparison& comparison, const std::map<std::string, double>& tolerance);

// The keys of a comparison in --json documents: cosine, max_abs_error and so on to finite.
Json ComparisonJson(const Comparison& comparison);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_COMPARE_H_
