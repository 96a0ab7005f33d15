// provider/ort_status.h: converts statuses and tensors between ONNX Runtime's C API and ours, for
// code that ONNX Runtime calls.
#ifndef ANEMONE_PROVIDER_ORT_STATUS_H_
#define ANEMONE_PROVIDER_ORT_STATUS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "fallback/ort_types.h"  // for the plugin too

struct OrtApi;
struct OrtStatus;
struct OrtValue;

namespace anemone {

// The version of the C API that we call: that of ONNX Runtime 1.23. Newer versions support it too.
inline constexpr uint32_t kOrtApiVersion = 23;

// An object of ONNX Runtime with its release function.
template <class T>
using OrtOwned = std::unique_ptr<T, void (*)(T*)>;

// Returns null for success.
OrtStatus* ToOrt(const OrtApi& api, const absl::Status& status);

// Takes ownership of `status`, which is null for success.
absl::Status FromOrt(const OrtApi& api, OrtStatus* status);

// A view of the tensor `value`, which owns the elements. kInvalidArgument if it is not a tensor, or
// a tensor of strings or of an unknown type.
absl::StatusOr<Tensor> TensorOf(const OrtApi& api, const OrtValue* value);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_STATUS_H_
