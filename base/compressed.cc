#include "anemone/compressed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/nibbles.h"
#include "base/transpose_bytes.h"

namespace anemone {
namespace {

// Element `i` of a tensor of codes.
int CodeOf(const Tensor& codes, const std::byte* bytes, int64_t i) {
  switch (codes.type()) {
    case DataType::kInt8:
      return static_cast<int8_t>(bytes[i]);
    case DataType::kUInt8:
      return static_cast<uint8_t>(bytes[i]);
    default: {
      const int nibble = NibbleAt(bytes, i);
      return codes.type() == DataType::kInt4 && nibble > 7 ? nibble - 16 : nibble;
    }
  }
}

bool AllZero(const std::vector<int16_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](int16_t x) { return x == 0; });
}

// Expands a fill to one code per element.
Tensor Dense(const Tensor& codes) { return codes.is_fill() ? codes.Copy() : codes; }

// Calls body(i, j) for every `step`-th row and column, in squares that fit into the L1 cache in
// both orders.
template <class Body>
void ForEachInSquares(int64_t rows, int64_t columns, int64_t step, Body body) {
  constexpr int64_t kSquare = 64;
  for (int64_t top = 0; top < rows; top += kSquare) {
    for (int64_t left = 0; left < columns; left += kSquare) {
      for (int64_t j = left; j < std::min(left + kSquare, columns); j += step) {
        for (int64_t i = top; i < std::min(top + kSquare, rows); i += step) body(i, j);
      }
    }
  }
}

Tensor TransposedCodes(const Tensor& codes, int64_t rows, int64_t columns) {
  Tensor result = Tensor::Zeros(codes.type(), {columns, rows});
  const std::byte* from = codes.bytes().data();
  auto* to = result.mutable_data<std::byte>();
  if (BitsOf(codes.type()) != 4) {
    TransposeBytes(from, rows, columns, to);
  } else if (rows % 2 == 0 && columns % 2 == 0) {  // two rows of two codes are two bytes
    constexpr std::byte kLow{0x0f}, kHigh{0xf0};
    ForEachInSquares(rows, columns, 2, [&](int64_t i, int64_t j) {
      const std::byte a = from[(i * columns + j) / 2], b = from[((i + 1) * columns + j) / 2];
      to[(j * rows + i) / 2] = (a & kLow) | (b << 4);
      to[((j + 1) * rows + i) / 2] = (a >> 4) | (b & kHigh);
    });
  } else {
    ForEachInSquares(rows, columns, 1, [&](int64_t i, int64_t j) {
      PutNibble(to, j * rows + i, NibbleAt(from, i * columns + j));
    });
  }
  return result;
}

}  // namespace

bool IsCodeType(DataType type) {
  return type == DataType::kInt8 || type == DataType::kUInt8 || type == DataType::kInt4 ||
         type == DataType::kUInt4;
}

absl::StatusOr<Compressed::Ptr> Compressed::Affine(Tensor codes, const Tensor& scales,
                                                   const Tensor& zero_points, ScaleGrid grid) {
  if (!IsCodeType(codes.type()) || scales.type() != DataType::kFloat) {
    return absl::InvalidArgumentError("want codes of 4 or 8 bits and float32 scales");
  }
  auto made = std::shared_ptr<Compressed>(
      new Compressed(CompressedForm::kAffine, DataType::kFloat, codes.elements()));
  if (!grid.Fits(codes.elements(), scales.elements())) {
    return absl::InvalidArgumentError("want a scale for every element");
  }
  made->scales_.resize(scales.elements());
  for (size_t i = 0; i < made->scales_.size(); ++i) {
    made->scales_[i] = scales.at<float>(static_cast<int64_t>(i));
    if (!std::isfinite(made->scales_[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("scale ", i, " is ", made->scales_[i],
                       ", which is not finite; quantize the model again"));
    }
  }
  if (zero_points.type() != DataType::kUndefined) {
    if (zero_points.type() != codes.type() || zero_points.elements() != scales.elements()) {
      return absl::InvalidArgumentError("zero points: want the type of the codes, one per scale");
    }
    const Tensor zeros = Dense(zero_points);
    const std::byte* bytes = zeros.bytes().data();
    made->zero_points_.resize(scales.elements());
    for (size_t i = 0; i < made->zero_points_.size(); ++i) {
      made->zero_points_[i] = static_cast<int16_t>(CodeOf(zeros, bytes, static_cast<int64_t>(i)));
    }
    if (AllZero(made->zero_points_)) made->zero_points_.clear();
  }
  made->codes_ = Dense(codes);
  made->grid_ = grid;
  return made;
}

absl::StatusOr<Compressed::Ptr> Compressed::Palette(Tensor codes, const Tensor& table) {
  if ((codes.type() != DataType::kUInt8 && codes.type() != DataType::kUInt4) ||
      table.type() != DataType::kFloat) {
    return absl::InvalidArgumentError("want uint4 or uint8 indices and a float32 table");
  }
  auto made = std::shared_ptr<Compressed>(
      new Compressed(CompressedForm::kPalette, DataType::kFloat, codes.elements()));
  made->codes_ = Dense(codes);
  for (int64_t i = 0; i < table.elements(); ++i) made->values_.push_back(table.at<float>(i));
  if (table.elements() >> BitsOf(codes.type()) == 0) {
    const std::byte* bytes = made->codes_.bytes().data();
    for (int64_t i = 0; i < made->elements_; ++i) {
      const int code = CodeOf(made->codes_, bytes, i);
      if (code < table.elements()) continue;
      return absl::OutOfRangeError(absl::StrCat("index ", i, " is ", code, ", but the table has ",
                                                table.elements(), " entries"));
    }
  }
  return made;
}

Compressed::Ptr Compressed::Sparse(int64_t elements, absl::Span<const int64_t> positions,
                                   absl::Span<const float> values) {
  BitMask mask(elements);
  for (int64_t at : positions) mask.Set(at);
  return *Masked(elements, mask.words(), {values.begin(), values.end()});
}

absl::StatusOr<Compressed::Ptr> Compressed::Masked(int64_t elements, std::vector<uint64_t> mask,
                                                   std::vector<float> values) {
  const auto words = static_cast<int64_t>(mask.size());
  constexpr int64_t kWordBits = BitMask::kWordBits;
  const bool is_whole = elements % kWordBits == 0;
  if (words != (elements + kWordBits - 1) / kWordBits ||
      (!is_whole && mask.back() >> elements % kWordBits != 0)) {
    return absl::InvalidArgumentError("want a mask with one bit for each element");
  }
  auto made = std::shared_ptr<Compressed>(
      new Compressed(CompressedForm::kSparse, DataType::kFloat, elements));
  made->mask_ = BitMask(std::move(mask));
  if (made->mask_.CountSet() != static_cast<int64_t>(values.size())) {
    return absl::InvalidArgumentError("want a value for each bit that is set");
  }
  made->values_ = std::move(values);
  return made;
}

Compressed::Ptr Compressed::Integers(Tensor codes, DataType type) {
  auto made =
      std::shared_ptr<Compressed>(new Compressed(CompressedForm::kAffine, type, codes.elements()));
  made->grid_ = ScaleGrid::OfTensor(codes.elements());
  made->codes_ = Dense(codes);
  made->scales_ = {1};
  return made;
}

Compressed::Ptr Compressed::Transposed(int64_t rows, int64_t columns) const {
  if (form_ == CompressedForm::kSparse) {
    const std::vector<int64_t> positions = Positions();
    std::vector<std::pair<int64_t, float>> moved;
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t at = positions[i];
      moved.emplace_back(at % columns * rows + at / columns, values_[i]);
    }
    std::sort(moved.begin(), moved.end());
    std::vector<int64_t> places;
    std::vector<float> values;
    for (const auto& [place, value] : moved) {
      places.push_back(place);
      values.push_back(value);
    }
    return Sparse(elements_, places, values);
  }
  const bool by_row = grid_.inner == columns && grid_.axis == rows;
  const bool by_column = grid_.inner == 1 && grid_.axis == columns;
  if (scales_.size() > 1 && !by_row && !by_column) return nullptr;
  auto made = std::shared_ptr<Compressed>(new Compressed(form_, type_, elements_));
  made->codes_ = TransposedCodes(codes_, rows, columns);
  made->scales_ = scales_;
  made->zero_points_ = zero_points_;
  made->values_ = values_;
  // The scales run along one of the two axes of the matrix. Transposing swaps outer and inner.
  made->grid_ = grid_;
  if (scales_.size() <= 1) {
    made->grid_ = ScaleGrid::OfTensor(elements_);
  } else {
    made->grid_.inner = grid_.inner == 1 ? rows : 1;
    std::swap(made->grid_.outer_stride, made->grid_.inner_stride);
  }
  return made;
}

Compressed::Ptr Compressed::Part(int64_t first, int64_t count) const {
  const bool is_affine = form_ == CompressedForm::kAffine && !is_plain();
  if (!is_affine || code_bits() != 8 || count <= 0) return nullptr;
  const bool within = first / grid_.inner == (first + count - 1) / grid_.inner;
  const bool whole = first % grid_.inner == 0 && count % grid_.inner == 0;
  if (grid_.inner_stride != 0 || (!within && !whole)) return nullptr;
  const int64_t rows = within ? 1 : count / grid_.inner;
  auto part = std::shared_ptr<Compressed>(new Compressed(form_, type_, count));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = grid_.IndexOf(first + i * grid_.inner);
    part->scales_.push_back(scales_[at]);
    if (!zero_points_.empty()) part->zero_points_.push_back(zero_points_[at]);
  }
  if (AllZero(part->zero_points_)) part->zero_points_.clear();
  std::shared_ptr<const void> owner = codes_.owner();
  if (owner == nullptr) owner = std::make_shared<const Tensor>(codes_);
  part->codes_ =
      Tensor::View(codes_.type(), {count}, codes_.bytes().subspan(first, count), std::move(owner));
  part->grid_ = within ? ScaleGrid::OfTensor(count) : ScaleGrid{rows, grid_.inner, 1, 0, 1, 0};
  return part;
}

int64_t Compressed::stored_bytes() const {
  const size_t codes = codes_.type() == DataType::kUndefined ? 0 : codes_.bytes().size();
  return static_cast<int64_t>(codes + (scales_.size() + values_.size()) * sizeof(float) +
                              zero_points_.size() * sizeof(int16_t) +
                              mask_.words().size() * sizeof(uint64_t));
}

bool Compressed::has_signed_codes() const {
  return codes_.type() == DataType::kInt8 || codes_.type() == DataType::kInt4;
}

std::vector<int64_t> Compressed::Positions() const {
  std::vector<int64_t> positions;
  const std::vector<uint64_t>& words = mask_.words();
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint64_t word = words[i]; word != 0; word &= word - 1) {
      positions.push_back(static_cast<int64_t>(i) * BitMask::kWordBits + std::countr_zero(word));
    }
  }
  return positions;
}

void Compressed::Read(int64_t first, absl::Span<float> to) const {
  switch (form_) {
    case CompressedForm::kAffine:
      return ReadAffine(first, to);
    case CompressedForm::kPalette: {
      const std::byte* bytes = codes_.bytes().data();
      for (size_t i = 0; i < to.size(); ++i) {
        to[i] = values_[CodeOf(codes_, bytes, first + static_cast<int64_t>(i))];
      }
      return;
    }
    case CompressedForm::kSparse:
      return ReadSparse(first, to);
  }
}

// Reads in runs within which the index of the scale is constant or increases by inner_stride.
void Compressed::ReadAffine(int64_t first, absl::Span<float> to) const {
  const std::byte* bytes = codes_.bytes().data();
  while (!to.empty()) {
    const int64_t row = first / grid_.inner, within = first % grid_.inner;
    const int64_t at = row % grid_.axis;
    const int64_t left = grid_.inner > 1
                             ? grid_.inner - within
                             : std::min(grid_.block - at % grid_.block, grid_.axis - at);
    const size_t count = std::min<size_t>(to.size(), left);
    const int64_t index = grid_.IndexOf(first);
    const int64_t step = grid_.inner > 1 ? grid_.inner_stride : 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t s = index + static_cast<int64_t>(i) * step;
      const int zero = zero_points_.empty() ? 0 : zero_points_[s];
      const int code = CodeOf(codes_, bytes, first + static_cast<int64_t>(i));
      to[i] = static_cast<float>(code - zero) * scales_[s];
    }
    first += static_cast<int64_t>(count);
    to.remove_prefix(count);
  }
}

void Compressed::ReadSparse(int64_t first, absl::Span<float> to) const {
  int64_t value = to.empty() ? 0 : mask_.SetBefore(first);
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = mask_.Has(first + static_cast<int64_t>(i)) ? values_[value++] : 0.0f;
  }
}

const Tensor& Compressed::WrittenOut() const {
  std::call_once(once_, [&] {
    Tensor dense = Tensor::Zeros(type_, {elements_});
    const std::byte* bytes = is_plain() ? codes_.bytes().data() : nullptr;
    if (type_ == DataType::kInt32) {
      auto* to = dense.mutable_data<int32_t>();
      for (int64_t i = 0; i < elements_; ++i) to[i] = CodeOf(codes_, bytes, i);
    } else if (type_ == DataType::kInt64) {
      auto* to = dense.mutable_data<int64_t>();
      for (int64_t i = 0; i < elements_; ++i) to[i] = CodeOf(codes_, bytes, i);
    } else {
      Read(0, {dense.mutable_data<float>(), static_cast<size_t>(elements_)});
    }
    written_out_ = std::move(dense);
  });
  return written_out_;
}

}  // namespace anemone
