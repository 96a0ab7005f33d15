#include "anemone/tensor.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/compressed.h"
#include "base/memory_limit.h"
#include "base/tensor_pool.h"

namespace anemone {
namespace {

// The widest element, complex128, has 16 bytes, so this limit keeps sizes in bytes within 2^62.
constexpr int64_t kMostElements = int64_t{1} << 58;
constexpr size_t kAlignment = 64;

struct TypeRow {
  absl::string_view name;
  int bits;
};

// Indexed by DataType.
constexpr TypeRow kTypes[] = {
    {"undefined", 0},
    {"float32", 32},
    {"uint8", 8},
    {"int8", 8},
    {"uint16", 16},
    {"int16", 16},
    {"int32", 32},
    {"int64", 64},
    {"string", 0},
    {"bool", 8},
    {"float16", 16},
    {"float64", 64},
    {"uint32", 32},
    {"uint64", 64},
    {"complex64", 64},
    {"complex128", 128},
    {"bfloat16", 16},
    {"float8_e4m3fn", 8},
    {"float8_e4m3fnuz", 8},
    {"float8_e5m2", 8},
    {"float8_e5m2fnuz", 8},
    {"uint4", 4},
    {"int4", 4},
    {"float4_e2m1", 4},
    {"float8_e8m0", 8},
    {"uint2", 2},
    {"int2", 2},
};
static_assert(std::size(kTypes) == kLastDataType + 1);

const TypeRow& RowOf(DataType type) {
  const auto i = static_cast<int32_t>(type);
  return kTypes[i >= 0 && i <= kLastDataType ? i : 0];
}

// Returns an aligned pointer into a block of `allocate` that is kAlignment bytes longer than
// needed. The pointer owns the block, and its share of the memory limit.
template <class Allocate>
std::shared_ptr<std::byte> Aligned(size_t size, Allocate allocate) {
  std::shared_ptr<const void> taken = TakeMemory(static_cast<int64_t>(size));
  auto* block = static_cast<std::byte*>(allocate(size + kAlignment));
  if (block == nullptr) throw std::bad_alloc();
  const size_t misaligned = reinterpret_cast<uintptr_t>(block) % kAlignment;
  const auto free = [taken = std::move(taken)](void* made) { std::free(made); };
  return {std::shared_ptr<void>(block, free), block + (kAlignment - misaligned)};
}

// Uses calloc because the system gives out zeroed pages lazily for large arrays.
std::shared_ptr<std::byte> AllocateZeroed(size_t size) {
  return Aligned(size, [](size_t bytes) { return std::calloc(bytes, 1); });
}

}  // namespace

absl::string_view DataTypeName(DataType type) { return RowOf(type).name; }

int BitsOf(DataType type) { return RowOf(type).bits; }

bool IsFloating(DataType type) {
  return type == DataType::kFloat || type == DataType::kFloat16 || type == DataType::kBFloat16 ||
         type == DataType::kDouble;
}

absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> dims) {
  // The product of the dimensions that are not 0, so that a 0 cannot hide an overflow.
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", dim, " of shape ", DimsToString(dims), " is negative"));
    }
    if (dim == 0) {
      empty = true;
    } else if (dim > kMostElements / count) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", DimsToString(dims),
                                                     " overflows: more than 2^58 elements; make "
                                                     "its dimensions smaller"));
    } else {
      count *= dim;
    }
  }
  return empty ? 0 : count;
}

std::string DimsToString(absl::Span<const int64_t> dims) {
  constexpr size_t kMostShown = 32;
  if (dims.size() > kMostShown) {
    return absl::StrCat(absl::StrJoin(dims.first(kMostShown), "x"), "x... (", dims.size(),
                        " dimensions)");
  }
  return dims.empty() ? "scalar" : absl::StrJoin(dims, "x");
}

int64_t ByteSize(DataType type, absl::Span<const int64_t> dims) {
  const int64_t count = ElementCount(dims).value();
  const int64_t bits = BitsOf(type);
  return bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
}

Tensor Tensor::View(DataType type, std::vector<int64_t> dims, absl::Span<const std::byte> bytes,
                    std::shared_ptr<const void> owner) {
  Tensor t;
  t.type_ = type;
  t.elements_ = ElementCount(dims).value();
  t.dims_ = std::move(dims);
  t.bytes_ = bytes;
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::Of(std::vector<int64_t> dims, std::shared_ptr<const Compressed> elements) {
  Tensor t = View(elements->type(), std::move(dims), {}, elements);
  t.compressed_ = std::move(elements);
  return t;
}

absl::Span<const std::byte> Tensor::WrittenOut() const { return compressed_->WrittenOut().bytes(); }

Tensor Tensor::Copy() const {
  if (type_ == DataType::kString) return *this;
  Tensor copy = Uninitialized(type_, dims_);
  const absl::Span<const std::byte> from = bytes();
  const size_t size = copy.bytes().size();
  if (is_fill_ && BitsOf(type_) < 8) {  // a byte holds several elements
    const int mask = (1 << BitsOf(type_)) - 1;
    std::memset(copy.storage_.get(), (static_cast<int>(from[0]) & mask) * (255 / mask), size);
    return copy;
  }
  for (size_t at = 0; at < size; at += from.size()) {
    std::memcpy(copy.storage_.get() + at, from.data(), from.size());
  }
  return copy;
}

Tensor Tensor::Zeros(DataType type, std::vector<int64_t> dims) {
  if (type == DataType::kString) {
    const int64_t count = ElementCount(dims).value();
    return Strings(std::move(dims), std::vector<std::string>(count));
  }
  std::shared_ptr<std::byte> storage = AllocateZeroed(ByteSize(type, dims));
  return Owning(type, std::move(dims), std::move(storage));
}

Tensor Tensor::Uninitialized(DataType type, std::vector<int64_t> dims) {
  const auto size = static_cast<size_t>(ByteSize(type, dims));
  const auto allocate = [](size_t bytes) { return Aligned(bytes, std::malloc); };
  const TensorPool* const pool =
      MemoryLimit::Current() == nullptr ? TensorPool::Current() : nullptr;
  std::shared_ptr<std::byte> storage =
      pool == nullptr ? allocate(size) : pool->Take(size, allocate);
  return Owning(type, std::move(dims), std::move(storage));
}

Tensor Tensor::Owning(DataType type, std::vector<int64_t> dims,
                      std::shared_ptr<std::byte> storage) {
  const auto size = static_cast<size_t>(ByteSize(type, dims));
  Tensor t = View(type, std::move(dims), {storage.get(), size}, storage);
  t.storage_ = std::move(storage);
  return t;
}

Tensor Tensor::Fill(DataType type, std::vector<int64_t> dims, absl::Span<const std::byte> element) {
  std::shared_ptr<std::byte> storage = AllocateZeroed(element.size());
  if (!element.empty()) std::memcpy(storage.get(), element.data(), element.size());
  Tensor t = View(type, std::move(dims), {storage.get(), element.size()}, storage);
  t.is_fill_ = true;
  return t;
}

Tensor Tensor::Strings(std::vector<int64_t> dims, std::vector<std::string> strings) {
  auto shared = std::make_shared<const std::vector<std::string>>(std::move(strings));
  Tensor t = View(DataType::kString, std::move(dims), {}, shared);
  t.strings_ = std::move(shared);
  return t;
}

const std::vector<std::string>& Tensor::strings() const {
  static const std::vector<std::string>* const kNoStrings = new std::vector<std::string>;
  return strings_ == nullptr ? *kNoStrings : *strings_;
}

Tensor Tensor::Reshaped(std::vector<int64_t> dims) const {
  Tensor t = *this;
  t.dims_ = std::move(dims);
  return t;
}

}  // namespace anemone
