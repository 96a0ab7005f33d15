// provider/ort/factory.h: the factory by which ONNX Runtime creates an ANEExecutionProvider for
// each session.
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
  // `claims_once`: claim nodes of the main graph only. ONNX Runtime 1.23 gives the same name to
  // fused nodes of two graphs (a body and the main graph), and refuses the second.
  Factory(const OrtApi& api, bool claims_once);

  // Writes the provider's devices to `found`, and returns their number.
  absl::StatusOr<size_t> FindDevices(absl::Span<const OrtHardwareDevice* const> devices,
                                     absl::Span<OrtEpDevice*> found);
  absl::StatusOr<OrtEp*> Create(absl::Span<const OrtHardwareDevice* const> devices,
                                const OrtSessionOptions* options, const OrtLogger* logger);

  // Releases a reference; the last one deletes the factory. ONNX Runtime has one, and so has each
  // provider, because providers may outlive the registration.
  void Drop();

  const OrtApi& api() const { return api_; }

 private:
  std::atomic<int> holders_ = 1;
  const OrtApi& api_;
  const bool claims_once_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_FACTORY_H_
