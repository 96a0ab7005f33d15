// provider/ort/factory.h: what ONNX Runtime makes ANEExecutionProvider of, for each session.
#ifndef ANEMONE_PROVIDER_ORT_FACTORY_H_
#define ANEMONE_PROVIDER_ORT_FACTORY_H_

#include <onnxruntime_c_api.h>

#include <atomic>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace anemone {

class Factory : public OrtEpFactory {
 public:
  // `claims_once`: of one graph of a session only, the main one. ONNX Runtime 1.23 gives fused
  // nodes of two graphs (a body's and the main graph's) one name, and refuses the second.
  Factory(const OrtApi& api, bool claims_once);

  // The provider's devices among the machine's; returns how many.
  absl::StatusOr<size_t> FindDevices(absl::Span<const OrtHardwareDevice* const> devices,
                                     absl::Span<OrtEpDevice*> found);
  absl::StatusOr<OrtEp*> Create(const OrtSessionOptions* options, const OrtLogger* logger);

  // It is the host's and its providers', which may live longer than its registration: the last to
  // drop it ends it.
  void Drop();

  const OrtApi& api() const { return api_; }

 private:
  std::atomic<int> holders_ = 1;
  const OrtApi& api_;
  const bool claims_once_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_FACTORY_H_
