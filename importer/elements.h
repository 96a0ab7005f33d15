// importer/elements.h: arithmetic on constants of any floating type, through double.
#ifndef ANEMONE_IMPORTER_ELEMENTS_H_
#define ANEMONE_IMPORTER_ELEMENTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "anemone/tensor.h"

namespace anemone {

// Element `i` of a float32, float16, bfloat16 or double tensor.
double ElementAsDouble(const Tensor& tensor, int64_t i);

// All elements, if there are at most `limit`; nullopt for other types.
std::optional<std::vector<double>> ToDoubles(const Tensor& tensor, int64_t limit);

// Likewise of any type of numbers but 2-bit, 8-bit float and complex ones; integers beyond 2^53 are
// rounded.
std::optional<std::vector<double>> ToNumbers(const Tensor& tensor, int64_t limit);

// Reads element `i` of a tensor of the type that NumberReaderOf() was given.
using NumberReader = double (*)(const Tensor&, int64_t i);

// nullptr for the types that ToNumbers() does not take.
NumberReader NumberReaderOf(DataType type);

// True if the elements are the same bit by bit; a fill is like another fill of any size. The types
// must be the same.
bool SameElements(const Tensor& a, const Tensor& b);
// And the types and dims.
bool SameTensor(const Tensor& a, const Tensor& b);

// `values` rounded to `type`, which must be floating.
Tensor FromDoubles(DataType type, std::vector<int64_t> dims, absl::Span<const double> values);

// A tensor of the same floating type and dims whose rows, `row` elements each, are those of
// `tensor` times factors[number of the row % factors.size()], rounded once. `row` must divide the
// number of elements. A fill times equal factors stays a fill.
Tensor ScaleRows(const Tensor& tensor, int64_t row, absl::Span<const double> factors);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_ELEMENTS_H_
