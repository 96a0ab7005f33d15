#include "engine/constant.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "anemone/compressed.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "math/move/transpose.h"

namespace anemone {

absl::StatusOr<Tensor> ZeroFill(DataType type, std::vector<int64_t> dims) {
  static constexpr std::byte kZero[8] = {};
  ANEMONE_RETURN_IF_ERROR(ElementCount(dims).status());
  return Tensor::Fill(type, std::move(dims), absl::MakeConstSpan(kZero).first(BitsOf(type) / 8));
}

bool IsEngineConstant(DataType type) { return IsFloating(type) || type == DataType::kBool; }

math::Element ElementOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return math::Element::kHalf;
    case DataType::kBFloat16:
      return math::Element::kBFloat16;
    case DataType::kDouble:
      return math::Element::kDouble;
    case DataType::kBool:
      return math::Element::kBool;
    case DataType::kUInt8:
      return math::Element::kUInt8;
    case DataType::kInt8:
      return math::Element::kInt8;
    case DataType::kInt16:
      return math::Element::kInt16;
    case DataType::kUInt32:
      return math::Element::kUInt32;
    case DataType::kUInt16:
      return math::Element::kUInt16;
    case DataType::kInt64:
      return math::Element::kInt64;
    case DataType::kInt32:
      return math::Element::kInt32;
    default:
      assert(type == DataType::kFloat);
      return math::Element::kFloat;
  }
}

namespace {

// Decompresses in parts, so that the whole tensor is never in memory as floats.
void ReadCompressed(const Compressed& stored, int64_t first, absl::Span<math::Half> to,
                    math::NanRule nan) {
  constexpr size_t kPart = 4096;
  std::vector<float> floats(std::min(kPart, to.size()));
  while (!to.empty()) {
    const auto part = absl::MakeSpan(floats).first(std::min(kPart, to.size()));
    stored.Read(first, part);
    math::FloatToHalf(part, to.first(part.size()), nan);
    first += static_cast<int64_t>(part.size());
    to.remove_prefix(part.size());
  }
}

}  // namespace

math::CodedWeights CodedFormOf(const Tensor& tensor) {
  const Compressed* stored = tensor.compressed();
  if (stored == nullptr || stored->type() != DataType::kFloat) return {};
  math::CodedWeights coded;
  if (stored->form() == CompressedForm::kSparse) {
    coded.form = math::WeightForm::kSparse;
    return coded;
  }
  const bool affine = stored->form() == CompressedForm::kAffine;
  coded.form = affine ? math::WeightForm::kAffine : math::WeightForm::kPalette;
  coded.bits = stored->code_bits();
  coded.is_signed = stored->has_signed_codes();
  coded.codes = stored->codes().bytes().data();
  coded.grid = stored->grid();
  coded.scales = stored->scales();
  coded.zero_points = stored->zero_points();
  coded.table = stored->values();
  return coded;
}

void ReadHalves(const Tensor& tensor, int64_t first, absl::Span<math::Half> to, math::NanRule nan) {
  if (to.empty()) return;
  if (tensor.compressed() != nullptr && tensor.type() == DataType::kFloat) {
    return ReadCompressed(*tensor.compressed(), first, to, nan);
  }
  math::Element element = ElementOf(tensor.type());
  const std::byte* from = tensor.bytes().data();
  if (!tensor.is_fill()) {
    math::Convert(static_cast<int64_t>(to.size()), element, from + first * math::SizeOf(element),
                  math::Element::kHalf, to.data(), nan);
    return;
  }
  math::Convert(1, element, from, math::Element::kHalf, to.data(), nan);
  std::fill(to.begin() + 1, to.end(), to.front());
}

std::vector<float> RoundedFloats(const Tensor& tensor) {
  const auto taken = TakeMemory(tensor.elements() * int64_t{sizeof(math::Half) + sizeof(float)});
  std::vector<math::Half> halves(tensor.elements());
  ReadHalves(tensor, 0, absl::MakeSpan(halves));
  std::vector<float> floats(halves.size());
  math::HalfToFloat(halves, absl::MakeSpan(floats));
  return floats;
}

Tensor WithDepthMoved(const Tensor& tensor) {
  const std::vector<int64_t>& d = tensor.dims();
  std::vector<math::Half> from(tensor.elements()), to(from.size());
  ReadHalves(tensor, 0, absl::MakeSpan(from));
  math::Transpose({d[0], d[1], d[2], d[3], d[4]}, {0, 2, 1, 3, 4}, from, absl::MakeSpan(to));
  return Tensor::Of<math::Half>(DataType::kFloat16, {d[0], d[2], d[1], d[3], d[4]}, to);
}

}  // namespace anemone
