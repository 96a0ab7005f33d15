// anemone/tensor.h: a typed array, or a view of one. The type of inputs, outputs and weights.
//
//   Tensor x = Tensor::Zeros(DataType::kFloat, {1, 3, 224, 224});
//   x.mutable_data<float>()[0] = 0.5f;
//   Tensor w = Tensor::View(DataType::kFloat, {64}, mapped_bytes, mapping);  // nothing is copied
//
// A Tensor is cheap to copy: copies share the bytes. Layout is dense, last axis fastest, little
// endian, as in ONNX. Sub-byte types are packed two (or four) to a byte, low bits first.
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

// The numbers are those of ONNX's TensorProto.DataType.
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

// The largest number this version knows; a file may hold others, which are refused by name.
inline constexpr int32_t kLastDataType = static_cast<int32_t>(DataType::kInt2);

// "float32", "float16", "int64", ...: NumPy's names; "undefined" for kUndefined.
absl::string_view DataTypeName(DataType type);

// Bits of one element; 0 for strings and undefined.
int BitsOf(DataType type);

// float32, float16, bfloat16, double.
bool IsFloating(DataType type);

// The number of elements of `dims`; an error if a dimension is negative or the product, or its
// size in bytes, passes 2^62.
absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> dims);

// "1x3x224x224"; "scalar" for rank 0.
std::string DimsToString(absl::Span<const int64_t> dims);

class Tensor {
 public:
  Tensor() = default;  // undefined type, no elements

  // Borrows `bytes`, kept alive by `owner` (which may be null if the caller sees to it). `bytes`
  // must be exactly ByteSize(type, dims) long; they need not be aligned (see data()).
  static Tensor View(DataType type, std::vector<int64_t> dims, absl::Span<const std::byte> bytes,
                     std::shared_ptr<const void> owner);

  // Owns its bytes, zeroed, 64-byte aligned. The dims must be countable (ElementCount).
  static Tensor Zeros(DataType type, std::vector<int64_t> dims);
  // Likewise, but with any bytes: the caller writes them all. Not of strings.
  static Tensor Uninitialized(DataType type, std::vector<int64_t> dims);

  // Every element equals `element` (one element's bytes): a constant fill stays one value.
  static Tensor Fill(DataType type, std::vector<int64_t> dims, absl::Span<const std::byte> element);

  static Tensor Strings(std::vector<int64_t> dims, std::vector<std::string> strings);
  // With bytes of its own, written out if it is a fill or compressed.
  Tensor Copy() const;

  // Elements kept in a form that takes less memory (anemone/compressed.h), whose type and number
  // they are. bytes() and what reads through it write them out, once, when first asked.
  static Tensor Of(std::vector<int64_t> dims, std::shared_ptr<const Compressed> elements);

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

  // The form that the elements are kept in; null: as they are.
  const Compressed* compressed() const { return compressed_.get(); }

  // All elements, or one element when is_fill(). Empty for strings.
  absl::Span<const std::byte> bytes() const {
    return compressed_ == nullptr ? bytes_ : WrittenOut();
  }

  // True if bytes() may be read as T's in place: it is aligned and not a fill.
  template <class T>
  bool aligned() const {
    return !is_fill_ && reinterpret_cast<uintptr_t>(bytes().data()) % alignof(T) == 0;
  }

  // The elements in place. Requires aligned<T>() and that T is the element's type.
  template <class T>
  absl::Span<const T> data() const {
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }

  // Element `i`, from a fill or an unaligned view too.
  template <class T>
  T at(int64_t i) const {
    T value;
    std::memcpy(&value, bytes().data() + (is_fill_ ? 0 : i * static_cast<int64_t>(sizeof(T))),
                sizeof(T));
    return value;
  }

  // For a Tensor made by Zeros(), Uninitialized() or Of(), before it is shared.
  template <class T>
  T* mutable_data() {
    return reinterpret_cast<T*>(storage_.get());
  }

  const std::vector<std::string>& strings() const;

  // The same bytes under other dims of the same element count.
  Tensor Reshaped(std::vector<int64_t> dims) const;

  // What keeps the bytes alive; null for a borrowed view.
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
  std::shared_ptr<std::byte> storage_;  // set when the bytes are this tensor's own
  std::shared_ptr<const std::vector<std::string>> strings_;
  std::shared_ptr<const Compressed> compressed_;
};

// Bytes of a dense array of these dims, which must be countable.
int64_t ByteSize(DataType type, absl::Span<const int64_t> dims);

}  // namespace anemone

#endif  // ANEMONE_TENSOR_H_
