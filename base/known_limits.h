// base/known_limits.h: the limits of float32 constants, which several steps of loading and of new
// weights ask for: a large constant is read once, and not for each program of a model. Those of
// constants that nobody writes are kept: of mapped files and of ConstantCopy(). The pages of a file
// are dropped then, so that a file whose weights are packed in another form is not in memory twice.
//
//   const FloatLimits limits = KnownOrReadLimits(weights);
//
// Thread-safe.
#ifndef ANEMONE_BASE_KNOWN_LIMITS_H_
#define ANEMONE_BASE_KNOWN_LIMITS_H_

#include <optional>

#include "anemone/tensor.h"
#include "base/float_scan.h"

namespace anemone {

// Nullopt: they were not kept, or the tensor's owner has ended since.
std::optional<FloatLimits> KnownLimits(const Tensor& tensor);

// Does nothing if the tensor is small, or may be written.
void KeepLimits(const Tensor& tensor, const FloatLimits& limits);

// Of a float32 tensor that is not compressed: the known ones, or those that this thread reads and
// keeps.
FloatLimits KnownOrReadLimits(const Tensor& tensor);

// A copy that nobody can write.
Tensor ConstantCopy(const Tensor& tensor);

}  // namespace anemone

#endif  // ANEMONE_BASE_KNOWN_LIMITS_H_
