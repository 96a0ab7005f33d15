// libanemone_custom_ops: the one symbol by which ONNX Runtime finds the operators of ai.anemone.
#include <onnxruntime_c_api.h>

#include "provider/custom_ops.h"

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(
    OrtSessionOptions* options, const OrtApiBase* base) {
  constexpr uint32_t kApiVersion = 23, kFirst = 1;
  const OrtApi* api = base->GetApi(kApiVersion);
  if (api != nullptr) return anemone::AddCustomOps(*api, options);
  return base->GetApi(kFirst)->CreateStatus(
      ORT_FAIL, "libanemone_custom_ops: want ONNX Runtime 1.23 or newer");
}
