#include "engine/surface.h"

#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/saturated.h"

namespace anemone {

int64_t SurfaceLayout::bytes() const {
  return SaturatedProduct(SaturatedProduct(strides[0], dims.n()), BytesOf(format));
}

bool SurfaceLayout::is_dense() const {
  return strides[3] == dims.w() || (dims.d() * dims.c() * dims.h() == 1 && dims.n() == 1);
}

math::Layout MathLayout(const SurfaceLayout& layout) {
  math::Layout result{
      layout.format == Format::kUInt8 ? math::Element::kUInt8 : math::Element::kHalf, {}};
  for (int i = 0; i < kAxisCount; ++i) {
    result.byte_strides[i] = layout.strides[i] * BytesOf(layout.format);
  }
  return result;
}

SurfaceLayout LayoutOf(const Dims& dims, Format format, Route route) {
  SurfaceLayout layout{dims, format, {}};
  const int64_t alignment = route == Route::kMil ? 1 : kSurfaceRowAlignment;
  int64_t row_bytes = dims.w() * BytesOf(format);
  row_bytes = (row_bytes + alignment - 1) / alignment * alignment;
  layout.strides[4] = 1;
  layout.strides[3] = row_bytes / BytesOf(format);
  layout.strides[2] = layout.strides[3] * dims.h();
  layout.strides[1] = layout.strides[2] * dims.c();
  layout.strides[0] = layout.strides[1] * dims.d();
  return layout;
}

absl::StatusOr<Surface> Surface::Allocate(int64_t bytes) {
  // Unlike aligned_alloc() and memset(), calloc() leaves out pages that the system gives as zeros.
  size_t room = static_cast<size_t>(bytes + kSurfaceRowAlignment);
  Memory memory(static_cast<std::byte*>(std::calloc(room, 1)), &std::free);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("surface: cannot allocate ", bytes,
                     " bytes; bind smaller dimensions or close other programs"));
  }
  void* data = memory.get();
  std::align(kSurfaceRowAlignment, bytes, data, room);
  return Surface(std::move(memory), static_cast<std::byte*>(data), bytes);
}

}  // namespace anemone
