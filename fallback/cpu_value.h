// fallback/cpu_value.h: a value of ONNX Runtime's, of any kind: what flows between CPU segments.
//
//   ASSIGN_OR_RETURN(CpuValue x, CpuValue::FromTensor(runtime, tensor));   // borrows the bytes
//   ASSIGN_OR_RETURN(Tensor y, outputs[0].ToTensor());                     // a view, not a copy
//
// A CpuValue is cheap to copy: copies share the value, which nobody changes once a session has made
// it. It keeps alive what it needs: the runtime, and the bytes of the Tensor it came from; so does
// a Tensor made from it.
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

  // True if a tensor of this type can be handed over; complex ones cannot, and the newest types
  // not to an older ONNX Runtime.
  static bool Takes(const OrtRuntime& runtime, DataType type);

  // Bytes are borrowed, but copied if they are misaligned for their type, or a fill; strings are
  // copied. Errors: kUnimplemented (a type that is not taken).
  static absl::StatusOr<CpuValue> FromTensor(std::shared_ptr<const OrtRuntime> runtime,
                                             const Tensor& tensor);

  // A tensor over memory that the caller keeps alive and unchanged by others while a session may
  // write it: `bytes` must be aligned for `type` and exactly as long as `dims` say.
  static absl::StatusOr<CpuValue> OverMemory(std::shared_ptr<const OrtRuntime> runtime,
                                             DataType type, absl::Span<const int64_t> dims,
                                             absl::Span<std::byte> bytes);

  // Tensors of one type or maps, at least one: ONNX Runtime makes no empty sequence from outside.
  static absl::StatusOr<CpuValue> Sequence(std::shared_ptr<const OrtRuntime> runtime,
                                           absl::Span<const CpuValue> elements);

  // Of two tensors of one length.
  static absl::StatusOr<CpuValue> Map(std::shared_ptr<const OrtRuntime> runtime,
                                      const CpuValue& keys, const CpuValue& values);

  // Takes `value`, as a session's Run() made it.
  static CpuValue Adopt(std::shared_ptr<const OrtRuntime> runtime, OrtValue* value);

  Kind kind() const;

  // Errors: kFailedPrecondition (another kind), kUnimplemented (a type that is not taken).
  absl::StatusOr<Tensor> ToTensor() const;

  // Errors: kUnimplemented (a type that is not taken, or kOther).
  absl::StatusOr<OnnxValue> ToValue() const;

  // The elements of a sequence, or the keys and the values of a map, as two. Each is shared or
  // copied as ONNX Runtime sees fit. Errors: kFailedPrecondition (another kind).
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
