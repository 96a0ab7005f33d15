// fallback/evaluator.h: computes constants with ONNX Runtime, for the importer's constant folding.
//
//   options.evaluate = MakeEvaluator(runtime);
#ifndef ANEMONE_FALLBACK_EVALUATOR_H_
#define ANEMONE_FALLBACK_EVALUATOR_H_

#include <memory>

#include "fallback/ort_runtime.h"
#include "importer/importer.h"

namespace anemone {

// Each call creates one session without optimizations, runs it once and deletes it; the results
// stay valid. There is no limit on time or size: the importer must not pass loops and huge results.
// Errors: kInvalidArgument (nodes of two versions of one domain), kFailedPrecondition (a result
// that is not a tensor), or ONNX Runtime's.
Evaluator MakeEvaluator(std::shared_ptr<const OrtRuntime> runtime);

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_EVALUATOR_H_
