// provider/custom_ops.h: the operators of the domain ai.anemone (kernels/custom_domain.h) for ONNX
// Runtime's CPU: the units' own arithmetic, on inputs that are rounded to fp16 as at a port of the
// engine. So a node that a target refuses still runs, with the same bits that the software engine
// gives where it is taken.
//
// An operator asks its unit's validator for any target: what none takes is refused, in the words of
// the last. Limits of extents and refusals of code generators do not matter on a CPU.
#ifndef ANEMONE_PROVIDER_CUSTOM_OPS_H_
#define ANEMONE_PROVIDER_CUSTOM_OPS_H_

struct OrtApi;
struct OrtSessionOptions;
struct OrtStatus;

namespace anemone {

// Adds the domain to the options of a session; null if that went well. The operators outlive every
// session. For OrtRuntimeOptions::operators and for RegisterCustomOps().
OrtStatus* AddCustomOps(const OrtApi& api, OrtSessionOptions* options);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CUSTOM_OPS_H_
