// provider/weight_check.h: warns of weights that are NaN or infinite (importer/not_finite.h), when
// a model is loaded to run.
#ifndef ANEMONE_PROVIDER_WEIGHT_CHECK_H_
#define ANEMONE_PROVIDER_WEIGHT_CHECK_H_

#include "anemone/tensor.h"
#include "base/float_scan.h"
#include "importer/graph.h"
#include "partitioner/plan.h"

namespace anemone {

// The limits of a float32 tensor that is not compressed. Reads it, if they are not known
// (base/known_limits.h), on the threads of the caller's oneTBB arena.
FloatLimits LimitsOf(const Tensor& tensor);

// Adds a warning that names the first such initializer, if there is one. Reads all constants once,
// on the threads of the caller's oneTBB arena.
void WarnOfWeights(const Model& model, Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHT_CHECK_H_
