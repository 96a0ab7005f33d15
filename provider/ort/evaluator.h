// provider/ort/evaluator.h: computes constants for the importer with the ONNX Runtime that loaded
// the plugin.
#ifndef ANEMONE_PROVIDER_ORT_EVALUATOR_H_
#define ANEMONE_PROVIDER_ORT_EVALUATOR_H_

#include "importer/importer.h"

struct OrtApi;

namespace anemone {

// Each call creates a session with the CPU provider only and without optimizations, and runs it
// once. `api` must outlive the evaluator.
Evaluator MakeHostEvaluator(const OrtApi& api);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_EVALUATOR_H_
