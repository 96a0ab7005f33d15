// importer/elements.h: reads, compares and scales the elements of constant tensors; floating types
// are computed in double.
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

// All elements of a tensor of those types; nullopt for other types or more than `limit` elements.
std::optional<std::vector<double>> ToDoubles(const Tensor& tensor, int64_t limit);

// The same for all numeric types except 2-bit, 8-bit float and complex types. Integers beyond 2^53
// are rounded.
std::optional<std::vector<double>> ToNumbers(const Tensor& tensor, int64_t limit);

// Reads element `i` of a tensor of the type that NumberReaderOf() was given.
using NumberReader = double (*)(const Tensor&, int64_t i);

// nullptr for types that ToNumbers() does not support.
NumberReader NumberReaderOf(DataType type);

// True if the elements are bitwise equal. Two fills (tensors of one repeated element) of different
// sizes compare equal if their element is the same. Both tensors must have the same type.
bool SameElements(const Tensor& a, const Tensor& b);
// Also compares types and dims.
bool SameTensor(const Tensor& a, const Tensor& b);

// `values` rounded to `type`, which must be a floating type.
Tensor FromDoubles(DataType type, std::vector<int64_t> dims, absl::Span<const double> values);

// Multiplies each row of `row` elements by a factor: row r by factors[r % factors.size()], with one
// rounding. The result has the floating type and dims of `tensor`. `row` must divide the number of
// elements. A fill times equal factors remains a fill.
Tensor ScaleRows(const Tensor& tensor, int64_t row, absl::Span<const double> factors);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_ELEMENTS_H_
