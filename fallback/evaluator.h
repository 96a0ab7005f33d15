// fallback/evaluator.h: constant folding by ONNX Runtime, for the importer.
//
//   options.evaluate = MakeEvaluator(runtime);
#ifndef ANEMONE_FALLBACK_EVALUATOR_H_
#define ANEMONE_FALLBACK_EVALUATOR_H_

#include <memory>

#include "fallback/ort_runtime.h"
#include "importer/importer.h"

namespace anemone {

// Each call makes one session, unoptimized, runs it once and drops it; what it returned stays. It
// computes whatever it is given: the importer keeps loops and huge results away from it. Nodes of
// two versions of one domain are refused (kInvalidArgument), as is what is not a tensor.
Evaluator MakeEvaluator(std::shared_ptr<const OrtRuntime> runtime);

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_EVALUATOR_H_
