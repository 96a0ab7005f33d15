#include "provider/crossing.h"

#include <cstring>
#include <utility>
#include <vector>

#include "engine/constant.h"
#include "engine/dims.h"
#include "math/move/convert.h"

namespace anemone {
namespace {

// The layout of a dense ONNX tensor, by the engine's axes.
math::Layout HostLayout(DataType type, const std::vector<int64_t>& dims) {
  math::Layout layout{ElementOf(type), {}};
  int64_t stride = math::SizeOf(layout.element);
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    int axis = static_cast<int>(ToEngineAxis(static_cast<int>(dims.size()), i));
    layout.byte_strides[axis] = stride;
    stride *= dims[i];
  }
  if (dims.empty()) layout.byte_strides[math::kAxisW] = stride;
  return layout;
}

}  // namespace

void ToSurface(const Tensor& tensor, const SurfaceLayout& layout, std::byte* surface,
               math::Tally* tally) {
  if (tensor.is_fill()) {  // rows must be contiguous for the conversion, so repeat the element
    Tensor full = Tensor::Uninitialized(tensor.type(), tensor.dims());
    size_t size = tensor.bytes().size();
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      std::memcpy(full.mutable_data<std::byte>() + i * size, tensor.bytes().data(), size);
    }
    return ToSurface(full, layout, surface, tally);
  }
  math::ConvertStrided(layout.dims.extent, tensor.bytes().data(),
                       HostLayout(tensor.type(), tensor.dims()), surface, MathLayout(layout),
                       math::NanRule::kToInfinity, tally);
}

Tensor FromSurface(const std::byte* surface, const SurfaceLayout& layout, DataType type,
                   std::vector<int64_t> dims, math::Tally* tally) {
  Tensor tensor = Tensor::Uninitialized(type, std::move(dims));
  FromSurface(surface, layout, type, tensor.dims(), tensor.mutable_data<std::byte>(), tally);
  return tensor;
}

void FromSurface(const std::byte* surface, const SurfaceLayout& layout, DataType type,
                 const std::vector<int64_t>& dims, std::byte* to, math::Tally* tally) {
  math::ConvertStrided(layout.dims.extent, surface, MathLayout(layout), to, HostLayout(type, dims),
                       math::NanRule::kKeep, tally);
}

void ReplaceNans(const SurfaceLayout& layout, std::byte* surface) {
  if (layout.format != Format::kFloat16) return;
  constexpr uint16_t kMagnitude = 0x7fff, kInfinity = 0x7c00;
  const std::array<int64_t, kAxisCount>& extent = layout.dims.extent;
  const int64_t width = extent[math::kAxisW];
  int64_t rows = 1;
  for (int axis = 0; axis < math::kAxisW; ++axis) rows *= extent[axis];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t offset = 0, rest = row;
    for (int axis = math::kAxisW - 1; axis >= 0; --axis) {
      offset += rest % extent[axis] * layout.strides[axis];
      rest /= extent[axis];
    }
    auto* halves = reinterpret_cast<uint16_t*>(surface) + offset;
    for (int64_t i = 0; i < width; ++i) {  // vectorized by the compiler
      halves[i] = (halves[i] & kMagnitude) > kInfinity ? kInfinity : halves[i];
    }
  }
}

}  // namespace anemone
