// base/known_limits.h: the limits of the float32 constants in mapped files, which several steps of
// loading ask for: a large constant is read once, and not for each program of a model. Its pages
// are dropped then, so that a file whose weights are packed in another form is not in memory twice.
//
//   std::optional<FloatLimits> limits = KnownLimits(weights);
//   if (!limits) {
//     limits = LimitsOfFloats(weights.bytes().data(), weights.elements());
//     KeepLimits(weights, *limits);
//   }
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

// Does nothing if the tensor is small, or not of a mapped file.
void KeepLimits(const Tensor& tensor, const FloatLimits& limits);

}  // namespace anemone

#endif  // ANEMONE_BASE_KNOWN_LIMITS_H_
