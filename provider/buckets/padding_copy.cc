#include "provider/buckets/padding_copy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/elements.h"

namespace anemone {
namespace {

// Calls run(from, to, count) for each row of a box at the origin of two arrays; from and to are
// element offsets.
template <class F>
void ForEachRow(const std::vector<int64_t>& box, const std::vector<int64_t>& from_dims,
                const std::vector<int64_t>& to_dims, F run) {
  if (box.empty()) return run(0, 0, 1);
  const size_t last = box.size() - 1;
  std::vector<int64_t> at(box.size());
  while (true) {
    int64_t from = 0, to = 0;
    for (size_t a = 0; a <= last; ++a) {
      from = from * from_dims[a] + at[a];
      to = to * to_dims[a] + at[a];
    }
    run(from, to, box[last]);
    size_t a = last;
    while (a > 0 && ++at[a - 1] == box[a - 1]) at[--a] = 0;
    if (a == 0) return;
  }
}

// Copies the box at the origin of `tensor` (its dims read as `from_dims`) to zeros of `to_dims`.
absl::StatusOr<Tensor> CopyBox(const Tensor& tensor, const std::vector<int64_t>& box,
                               const std::vector<int64_t>& from_dims,
                               const std::vector<int64_t>& to_dims) {
  ANEMONE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(to_dims));
  if (tensor.type() == DataType::kString) {
    std::vector<std::string> strings(elements);
    ForEachRow(box, from_dims, to_dims, [&](int64_t from, int64_t to, int64_t count) {
      std::copy_n(tensor.strings().begin() + from, count, strings.begin() + to);
    });
    return Tensor::Strings(to_dims, std::move(strings));
  }
  const int bits = BitsOf(tensor.type());
  if (bits < 8) {
    return absl::UnimplementedError(absl::StrCat("elements of type ", DataTypeName(tensor.type()),
                                                 " are not padded in this version"));
  }
  const int64_t size = bits / 8;
  const Tensor source = tensor.is_fill() ? tensor.Copy() : tensor;
  Tensor made = Tensor::Zeros(tensor.type(), to_dims);
  ForEachRow(box, from_dims, to_dims, [&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(made.mutable_data<std::byte>() + to * size, source.bytes().data() + from * size,
                static_cast<size_t>(count * size));
  });
  return made;
}

bool IsZero(const Tensor& tensor, int64_t i) {
  const auto size = static_cast<int64_t>(BitsOf(tensor.type()) / 8);
  const std::byte* element = tensor.bytes().data() + (tensor.is_fill() ? 0 : i * size);
  return std::all_of(element, element + size, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

absl::StatusOr<Tensor> PadTensor(const Tensor& tensor, const std::vector<int64_t>& dims) {
  if (tensor.dims() == dims) return tensor;
  return CopyBox(tensor, tensor.dims(), tensor.dims(), dims);
}

absl::StatusOr<Tensor> CropTensor(const Tensor& tensor, const PaddedLayout& layout) {
  std::vector<int64_t> whole, full, used, dims;
  for (const std::vector<Stretch>& axis : layout) {
    whole.push_back(1);
    dims.push_back(1);
    for (const Stretch& s : axis) {
      full.push_back(s.full);
      used.push_back(s.used);
      whole.back() *= s.full;
      dims.back() *= s.used;
    }
  }
  if (tensor.dims() != whole) {
    return absl::InternalError(absl::StrCat("made as ", DimsToString(tensor.dims()),
                                            ", planned as ", DimsToString(whole),
                                            "; please report this"));
  }
  if (full == used) return tensor;
  ANEMONE_ASSIGN_OR_RETURN(Tensor cropped, CopyBox(tensor, used, full, used));
  return cropped.Reshaped(std::move(dims));
}

bool Holds(const MaskCondition& condition, const Tensor& mask) {
  if (BitsOf(mask.type()) < 8) return false;
  const std::vector<int64_t>& dims = mask.dims();
  if (condition.not_negative) {
    const NumberReader read = NumberReaderOf(mask.type());
    for (int64_t i = 0; i < mask.elements(); ++i) {
      if (!(read(mask, i) >= 0)) return false;
    }
    return true;
  }
  if (condition.all) {
    for (int64_t i = 0; i < mask.elements(); ++i) {
      if (IsZero(mask, i)) return false;
    }
    return true;
  }
  int64_t inner = 1;
  for (size_t a = static_cast<size_t>(condition.axis) + 1; a < dims.size(); ++a) inner *= dims[a];
  const int64_t length = dims[condition.axis];
  for (int64_t row = 0; row < mask.elements() / length; ++row) {
    const int64_t first = row / inner * length * inner + row % inner;
    bool keeps = false;
    for (int64_t i = 0; i < length && !keeps; ++i) keeps = !IsZero(mask, first + i * inner);
    if (!keeps) return false;
  }
  return true;
}

}  // namespace anemone
