#include "provider/buckets/scan_axis.h"

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

int64_t Product(absl::Span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// A tensor as `outer` x `length` blocks of `inner` contiguous elements.
struct Blocks {
  int64_t outer, length, inner;
};

Blocks BlocksOf(absl::Span<const int64_t> dims, int axis) {
  return {Product(dims.first(axis)), dims[axis], Product(dims.subspan(axis + 1))};
}

absl::StatusOr<int64_t> ElementBytes(DataType type) {
  const int bits = BitsOf(type);
  if (bits % 8 == 0 && bits > 0) return bits / 8;
  return absl::UnimplementedError(
      absl::StrCat("a tensor of ", DataTypeName(type), " cannot be split or stacked; cast it"));
}

// Calls copy() for each range of elements of the part at `index`, in the part's order.
template <class Copy>
void EachBlock(const Blocks& blocks, int64_t index, Copy copy) {
  for (int64_t o = 0; o < blocks.outer; ++o) {
    copy(o * blocks.inner, (o * blocks.length + index) * blocks.inner, blocks.inner);
  }
}

Tensor SliceOfStrings(const Tensor& tensor, const Blocks& blocks, int64_t index,
                      std::vector<int64_t> dims) {
  std::vector<std::string> strings;
  EachBlock(blocks, index, [&](int64_t, int64_t from, int64_t count) {
    const auto first = tensor.strings().begin() + from;
    strings.insert(strings.end(), first, first + count);
  });
  return Tensor::Strings(std::move(dims), std::move(strings));
}

Tensor StackOfStrings(absl::Span<const Tensor> parts, const Blocks& blocks,
                      std::vector<int64_t> dims) {
  std::vector<std::string> strings(Product(dims));
  for (size_t i = 0; i < parts.size(); ++i) {
    EachBlock(blocks, static_cast<int64_t>(i), [&](int64_t from, int64_t to, int64_t count) {
      const auto first = parts[i].strings().begin() + from;
      std::copy(first, first + count, strings.begin() + to);
    });
  }
  return Tensor::Strings(std::move(dims), std::move(strings));
}

}  // namespace

absl::StatusOr<Tensor> SliceAt(const Tensor& tensor, int axis, int64_t index) {
  std::vector<int64_t> dims = tensor.dims();
  const Blocks blocks = BlocksOf(dims, axis);
  dims.erase(dims.begin() + axis);
  if (tensor.type() == DataType::kString) {
    return SliceOfStrings(tensor, blocks, index, std::move(dims));
  }
  if (tensor.is_fill()) return Tensor::Fill(tensor.type(), std::move(dims), tensor.bytes());
  ANEMONE_ASSIGN_OR_RETURN(const int64_t size, ElementBytes(tensor.type()));
  if (blocks.outer == 1) {
    const auto bytes = tensor.bytes().subspan(index * blocks.inner * size, blocks.inner * size);
    return Tensor::View(tensor.type(), std::move(dims), bytes,
                        std::make_shared<const Tensor>(tensor));
  }
  Tensor slice = Tensor::Zeros(tensor.type(), std::move(dims));
  EachBlock(blocks, index, [&](int64_t to, int64_t from, int64_t count) {
    std::memcpy(slice.mutable_data<std::byte>() + to * size, tensor.bytes().data() + from * size,
                count * size);
  });
  return slice;
}

absl::StatusOr<Tensor> StackAt(absl::Span<const Tensor> parts, int axis) {
  std::vector<int64_t> dims = parts[0].dims();
  for (const Tensor& part : parts) {
    if (part.dims() == dims && part.type() == parts[0].type()) continue;
    return absl::InvalidArgumentError(absl::StrCat("iterations made it ", DimsToString(dims),
                                                   " and ", DimsToString(part.dims()),
                                                   ", which cannot be stacked"));
  }
  dims.insert(dims.begin() + axis, static_cast<int64_t>(parts.size()));
  ANEMONE_RETURN_IF_ERROR(ElementCount(dims).status());
  const Blocks blocks = BlocksOf(dims, axis);
  if (parts[0].type() == DataType::kString) return StackOfStrings(parts, blocks, std::move(dims));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t size, ElementBytes(parts[0].type()));
  Tensor stack = Tensor::Zeros(parts[0].type(), std::move(dims));
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor part = parts[i].is_fill() ? parts[i].Copy() : parts[i];
    EachBlock(blocks, static_cast<int64_t>(i), [&](int64_t from, int64_t to, int64_t count) {
      std::memcpy(stack.mutable_data<std::byte>() + to * size, part.bytes().data() + from * size,
                  count * size);
    });
  }
  return stack;
}

}  // namespace anemone
