// fallback/cpu_value.h: an OrtValue of any kind (tensor, sequence, map), shared and kept alive.
// Inputs and outputs of CPU segments are CpuValues.
//
//   // Borrows the bytes.
//   ANEMONE_ASSIGN_OR_RETURN(CpuValue x, CpuValue::FromTensor(runtime, tensor));
//   ANEMONE_ASSIGN_OR_RETURN(Tensor y, outputs[0].ToTensor());  // a view, not a copy
//
// A CpuValue is cheap to copy: copies share the value, which does not change after a session has
// produced it. It keeps the runtime alive, and the bytes of the Tensor that it was created from. A
// Tensor created from it does the same.
#ifndef ANEMONE_FALLBACK_CPU_VALUE_H_
#define ANEMONE_FALLBACK_CPU_VALUE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/onnx_value.h"
#include "anemone/tensor.h"
#include "fallback/ort_runtime.h"

struct OrtValue;

namespace anemone {

class CpuValue {
 public:
  // kNothing: no value at all, or an optional without one. kOther: sparse or opaque.
  enum class Kind { kNothing, kTensor, kSequence, kMap, kOther };

  CpuValue() = default;  // kNothing

  // True if ONNX Runtime's C API takes tensors of this type. It takes no complex types; an older
  // ONNX Runtime does not take the newest types.
  static bool Takes(const OrtRuntime& runtime, DataType type);

  // Borrows the bytes. Copies them if they are misaligned for their type; copies strings, and
  // writes out a tensor that is a fill. Errors: kUnimplemented (a type that Takes() rejects).
  static absl::StatusOr<CpuValue> FromTensor(std::shared_ptr<const OrtRuntime> runtime,
                                             const Tensor& tensor);

  // A tensor over the caller's memory. The caller keeps it alive, and must not change it while a
  // session may write it. `bytes` must be aligned for `type` and have exactly the size of `dims`.
  static absl::StatusOr<CpuValue> OverMemory(std::shared_ptr<const OrtRuntime> runtime,
                                             DataType type, absl::Span<const int64_t> dims,
                                             absl::Span<std::byte> bytes);

  // `elements` are tensors of one type, or maps. At least one: ONNX Runtime's C API cannot create
  // an empty sequence (from_onnx_value.h can).
  static absl::StatusOr<CpuValue> Sequence(std::shared_ptr<const OrtRuntime> runtime,
                                           absl::Span<const CpuValue> elements);

  // `keys` and `values` are tensors of the same length.
  static absl::StatusOr<CpuValue> Map(std::shared_ptr<const OrtRuntime> runtime,
                                      const CpuValue& keys, const CpuValue& values);

  // Takes ownership of `value`, a result of a session's Run().
  static CpuValue Adopt(std::shared_ptr<const OrtRuntime> runtime, OrtValue* value);

  Kind kind() const;

  // Errors: kFailedPrecondition (another kind), kUnimplemented (a type that Takes() rejects).
  absl::StatusOr<Tensor> ToTensor() const;

  // Errors: kUnimplemented (a type that Takes() rejects, or kOther).
  absl::StatusOr<OnnxValue> ToValue() const;

  // The elements of a sequence; or, of a map, two values: the keys and the values. ONNX Runtime
  // decides whether each is shared or copied. Errors: kFailedPrecondition (another kind).
  absl::StatusOr<std::vector<CpuValue>> Elements() const;

  OrtValue* get() const { return value_.get(); }

 private:
  CpuValue(std::shared_ptr<const OrtRuntime> runtime, std::shared_ptr<OrtValue> value)
      : runtime_(std::move(runtime)), value_(std::move(value)) {}
  static absl::StatusOr<CpuValue> OverBytes(std::shared_ptr<const OrtRuntime> runtime,
                                            DataType type, absl::Span<const int64_t> dims,
                                            absl::Span<std::byte> bytes,
                                            std::shared_ptr<const void> owner);
  static absl::StatusOr<CpuValue> Compose(std::shared_ptr<const OrtRuntime> runtime, int onnx_type,
                                          absl::Span<const CpuValue> parts);
  static absl::StatusOr<CpuValue> FromStrings(std::shared_ptr<const OrtRuntime> runtime,
                                              const Tensor& tensor);
  absl::StatusOr<std::vector<std::string>> Strings(int64_t count) const;

  std::shared_ptr<const OrtRuntime> runtime_;
  std::shared_ptr<OrtValue> value_;
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_CPU_VALUE_H_
