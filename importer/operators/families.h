// importer/operators/families.h: the rows of the operator table (importer/operators/operators.h),
// one function per source file.
#ifndef ANEMONE_IMPORTER_OPERATORS_FAMILIES_H_
#define ANEMONE_IMPORTER_OPERATORS_FAMILIES_H_

#include "absl/types/span.h"
#include "importer/operators/operators.h"

namespace anemone {

absl::Span<const Operator> ElementwiseOperators();  // arithmetic, comparisons, functions
absl::Span<const Operator> MovingOperators();       // Reshape, Gather, Concat, Pad, ...
absl::Span<const Operator> LayerOperators();    // products, pools, normalizations, reductions, ...
absl::Span<const Operator> ContribOperators();  // replaced by a body of plain nodes

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_FAMILIES_H_
