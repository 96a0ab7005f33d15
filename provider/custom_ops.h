// provider/custom_ops.h: the operators of the domain ai.anemone (kernels/custom_domain.h) as custom
// operators of ONNX Runtime on the CPU. Inputs are rounded to fp16, as at a port of the engine, and
// the units' arithmetic is used. So a node that a target refuses still runs, and gives the same
// bits as the software engine for a target that accepts it.
//
// An operator accepts what the validator of its unit accepts for at least one target. Otherwise it
// fails with the message of the last target. Limits on extents and refusals of code generators do
// not apply on a CPU.
#ifndef ANEMONE_PROVIDER_CUSTOM_OPS_H_
#define ANEMONE_PROVIDER_CUSTOM_OPS_H_

struct OrtApi;
struct OrtSessionOptions;
struct OrtStatus;

namespace anemone {

// Adds the domain to a session's options. Returns null for success. The operators outlive every
// session. Used for OrtRuntimeOptions::operators and RegisterCustomOps().
OrtStatus* AddCustomOps(const OrtApi& api, OrtSessionOptions* options);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CUSTOM_OPS_H_
