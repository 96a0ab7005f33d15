// kernels/shared/bounds.h: Anemone's own bounds of numbers that come from a model. They are far
// above the limits of every target, which are rules (engine/tables), and keep arithmetic from
// overflowing and planning from running out of memory.
#ifndef ANEMONE_KERNELS_SHARED_BOUNDS_H_
#define ANEMONE_KERNELS_SHARED_BOUNDS_H_

#include <cstdint>

#include "base/model_limits.h"

namespace anemone {

// Of a size, a pad or a number of groups that an attribute gives. Sums of several and products of
// two do not overflow.
inline constexpr int64_t kAttributeBound = int64_t{1} << 28;
// Of an extent. Sums of products of a few such numbers do not overflow.
inline constexpr int64_t kExtentBound = int64_t{1} << 24;
// Of an extent for which a table is made, or that is multiplied by two others.
inline constexpr int64_t kTableBound = int64_t{1} << 20;
// Of the factors of a product of two. Anything larger is refused before it is multiplied.
inline constexpr int64_t kFactorBound = int64_t{1} << 31;

// Constants with more elements are not read as lists of integers.
inline int64_t MostIntegers() { return ValueOf(ModelLimit::kListElements); }
// Lowerings do not create a matrix, or weights and products with them, of more elements.
inline int64_t MostMatrixElements() { return ValueOf(ModelLimit::kMatrixElements); }
// Lowerings do not write a kernel of more elements, zeros included. A constant of any size can be a
// few bytes in a file if all its elements are equal.
inline int64_t MostKernelElements() { return ValueOf(ModelLimit::kKernelElements); }

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_BOUNDS_H_
