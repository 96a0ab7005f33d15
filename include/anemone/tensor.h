// anemone/tensor.h: a typed array with a shape, or a view of one: the inputs, outputs and weights
// of a model.
//
//   using namespace anemone;
//   Tensor x = Tensor::Zeros(DataType::kFloat, {1, 3, 224, 224});
//   x.mutable_data<float>()[0] = 0.5f;
//   static const float kData[64] = {};
//   Tensor w = Tensor::View(DataType::kFloat, {64},          // borrows kData, copies nothing
//                           absl::MakeConstSpan(reinterpret_cast<const std::byte*>(kData), 256),
//                           /*owner=*/nullptr);
//
// A Tensor is cheap to copy: copies share the bytes. The layout is that of ONNX: dense, row-major
// (last axis fastest), little endian. Types below 8 bits are packed two (4 bits) or four (2 bits)
// to a byte, low bits first.
#ifndef ANEMONE_TENSOR_H_
#define ANEMONE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace anemone {

class Compressed;

// The values equal those of ONNX's TensorProto.DataType.
enum class DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUInt8 = 2,
  kInt8 = 3,
  kUInt16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUInt32 = 12,
  kUInt64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUInt4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUInt2 = 25,
  kInt2 = 26,
};

// The largest value that this version knows. A file may contain larger ones; loading it then fails.
inline constexpr int32_t kLastDataType = static_cast<int32_t>(DataType::kInt2);

// NumPy's name of the type: "float32", "float16", "int64", ...; "undefined" for kUndefined.
absl::string_view DataTypeName(DataType type);

// Bits of one element; 0 for kString and kUndefined.
int BitsOf(DataType type);

// True for float32, float16, bfloat16 and float64.
bool IsFloating(DataType type);

// The number of elements of a tensor with shape `dims`. Errors: kInvalidArgument (a dimension is
// negative, or there are more than 2^58 elements).
absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> dims);

// "1x3x224x224"; "scalar" for rank 0.
std::string DimsToString(absl::Span<const int64_t> dims);

class Tensor {
 public:
  Tensor() = default;  // undefined type, no elements

  // Borrows `bytes`, which must be ByteSize(type, dims) long and need not be aligned (see data()).
  // The tensor holds `owner`, which keeps the bytes alive; if it is null, the caller must.
  static Tensor View(DataType type, std::vector<int64_t> dims, absl::Span<const std::byte> bytes,
                     std::shared_ptr<const void> owner);

  // Owns its bytes, which are zero and 64-byte aligned. ElementCount(dims) must be ok(), here and
  // in all other functions that take dims.
  static Tensor Zeros(DataType type, std::vector<int64_t> dims);
  // The same with undefined contents: the caller must write all bytes. Not for kString.
  static Tensor Uninitialized(DataType type, std::vector<int64_t> dims);

  // All elements equal `element`, the bytes of one element. Only that element is stored.
  static Tensor Fill(DataType type, std::vector<int64_t> dims, absl::Span<const std::byte> element);

  // Row-major, as many strings as elements.
  static Tensor Strings(std::vector<int64_t> dims, std::vector<std::string> strings);
  // A copy that owns its bytes. A fill or compressed tensor is expanded.
  Tensor Copy() const;

  // A tensor with compressed elements (anemone/compressed.h); it has their type and number. bytes()
  // and the functions that use it expand the elements at their first call.
  static Tensor Of(std::vector<int64_t> dims, std::shared_ptr<const Compressed> elements);

  // Copies `values`, as many as elements. T must be the C++ type of `type`.
  template <class T>
  static Tensor Of(DataType type, std::vector<int64_t> dims, absl::Span<const T> values) {
    Tensor t = Zeros(type, std::move(dims));
    if (!values.empty()) std::memcpy(t.storage_.get(), values.data(), values.size() * sizeof(T));
    return t;
  }
  static Tensor Int64s(std::vector<int64_t> dims, absl::Span<const int64_t> values) {
    return Of<int64_t>(DataType::kInt64, std::move(dims), values);
  }
  static Tensor Floats(std::vector<int64_t> dims, absl::Span<const float> values) {
    return Of<float>(DataType::kFloat, std::move(dims), values);
  }

  DataType type() const { return type_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t elements() const { return elements_; }
  bool is_fill() const { return is_fill_; }

  // The compressed elements, or null if the tensor is not compressed.
  const Compressed* compressed() const { return compressed_.get(); }

  // All elements; one element if is_fill(); empty for kString.
  absl::Span<const std::byte> bytes() const {
    return compressed_ == nullptr ? bytes_ : WrittenOut();
  }

  // True if data<T>() may be called: bytes() is aligned for T and the tensor is not a fill.
  template <class T>
  bool aligned() const {
    return !is_fill_ && reinterpret_cast<uintptr_t>(bytes().data()) % alignof(T) == 0;
  }

  // The elements. Requires aligned<T>(); T must be the C++ type of type().
  template <class T>
  absl::Span<const T> data() const {
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }

  // Element `i` in row-major order. Also works for fills and unaligned views. T as for data(); not
  // for types below 8 bits.
  template <class T>
  T at(int64_t i) const {
    T value;
    std::memcpy(&value, bytes().data() + (is_fill_ ? 0 : i * static_cast<int64_t>(sizeof(T))),
                sizeof(T));
    return value;
  }

  // For writing a Tensor made by Zeros(), Uninitialized(), Of(type, ...) or Copy() before it is
  // copied: copies share the bytes.
  template <class T>
  T* mutable_data() {
    return reinterpret_cast<T*>(storage_.get());
  }

  // The elements of a kString tensor; empty for other types.
  const std::vector<std::string>& strings() const;

  // The same elements with another shape of the same element count.
  Tensor Reshaped(std::vector<int64_t> dims) const;

  // The object that keeps the bytes alive, or null if the caller of View() does.
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  static Tensor Owning(DataType type, std::vector<int64_t> dims,
                       std::shared_ptr<std::byte> storage);
  absl::Span<const std::byte> WrittenOut() const;

  DataType type_ = DataType::kUndefined;
  bool is_fill_ = false;
  std::vector<int64_t> dims_;
  int64_t elements_ = 0;
  absl::Span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<std::byte> storage_;  // set if the tensor allocated its bytes
  std::shared_ptr<const std::vector<std::string>> strings_;
  std::shared_ptr<const Compressed> compressed_;
};

// The size in bytes of a dense array; sub-byte types are rounded up to whole bytes.
int64_t ByteSize(DataType type, absl::Span<const int64_t> dims);

}  // namespace anemone

#endif  // ANEMONE_TENSOR_H_
