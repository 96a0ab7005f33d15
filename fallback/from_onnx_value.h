// fallback/from_onnx_value.h: converts an OnnxValue of any kind to ONNX Runtime's value.
#ifndef ANEMONE_FALLBACK_FROM_ONNX_VALUE_H_
#define ANEMONE_FALLBACK_FROM_ONNX_VALUE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "anemone/onnx_value.h"
#include "fallback/cpu_value.h"
#include "fallback/ort_runtime.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// `type` is the ONNX type of the input that takes the value; the value must fit it. A value of kind
// kNothing becomes CpuValue(). ONNX Runtime's C API cannot create an empty sequence, so a session
// of one node creates it. Errors: kUnimplemented (a type that CpuValue does not take, or an empty
// sequence of maps), or ONNX Runtime's.
absl::StatusOr<CpuValue> FromOnnxValue(const std::shared_ptr<const OrtRuntime>& runtime,
                                       const onnx::TypeProto& type, const OnnxValue& value);

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_FROM_ONNX_VALUE_H_
