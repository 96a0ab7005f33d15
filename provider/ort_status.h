// provider/ort_status.h: where our code is called by ONNX Runtime: its status and values as ours.
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

// The version of the C API that we call, that of ONNX Runtime 1.23; a newer one still answers to
// it.
inline constexpr uint32_t kOrtApiVersion = 23;

// What ONNX Runtime's create and release functions come in pairs for.
template <class T>
using OrtOwned = std::unique_ptr<T, void (*)(T*)>;

// Null for success.
OrtStatus* ToOrt(const OrtApi& api, const absl::Status& status);

// Takes `status`, which is null for success.
absl::Status FromOrt(const OrtApi& api, OrtStatus* status);

// Type, dims and a view of the elements, which belong to `value`. kInvalidArgument: no tensor, or
// one of strings or of a type that we do not know.
absl::StatusOr<Tensor> TensorOf(const OrtApi& api, const OrtValue* value);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_STATUS_H_
