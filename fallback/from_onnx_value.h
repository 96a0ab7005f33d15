// fallback/from_onnx_value.h: a value of any kind, as ONNX Runtime has it.
#ifndef ANEMONE_FALLBACK_FROM_ONNX_VALUE_H_
#define ANEMONE_FALLBACK_FROM_ONNX_VALUE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "anemone/onnx_value.h"
#include "fallback/cpu_value.h"
#include "fallback/ort_runtime.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// `type` is ONNX's of what holds the value, which must fit it. Nothing is CpuValue(). ONNX Runtime
// lets nobody make a sequence without elements from outside: a session of one node does.
// Errors: kUnimplemented (a type that is not taken), else what ONNX Runtime says.
absl::StatusOr<CpuValue> FromOnnxValue(const std::shared_ptr<const OrtRuntime>& runtime,
                                       const onnx::TypeProto& type, const OnnxValue& value);

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_FROM_ONNX_VALUE_H_
