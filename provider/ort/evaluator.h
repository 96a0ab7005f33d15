// provider/ort/evaluator.h: constant folding by the ONNX Runtime that called us, for the importer.
#ifndef ANEMONE_PROVIDER_ORT_EVALUATOR_H_
#define ANEMONE_PROVIDER_ORT_EVALUATOR_H_

#include "importer/importer.h"

struct OrtApi;

namespace anemone {

// Each call makes one session of the CPU provider alone, unoptimized, and runs it once. `api` must
// outlive the evaluator.
Evaluator MakeHostEvaluator(const OrtApi& api);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_EVALUATOR_H_
