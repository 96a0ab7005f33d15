// engine/surface.h: a Surface is memory that a port of a program reads or writes. Segments can
// share it. The rules of the device hold on all systems: the layout of a port depends on the route.
// Sources: device.md ("Row strides are multiples of 64 bytes", "Data is packed from byte 0
// regardless"); conflicts.md C-surface-rows.
#ifndef ANEMONE_ENGINE_SURFACE_H_
#define ANEMONE_ENGINE_SURFACE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/dims.h"
#include "engine/unit.h"
#include "engine/verdict.h"
#include "math/move/convert.h"

namespace anemone {

inline constexpr int64_t kSurfaceRowAlignment = 64;

// The layout of a port: element (n, d, c, h, w) is at n*strides[0] + ... + w*strides[4], in
// elements.
struct SurfaceLayout {
  Dims dims;
  Format format = Format::kFloat16;
  std::array<int64_t, kAxisCount> strides = {};

  int64_t bytes() const;  // from the first byte to the end of the last row, padding included
  bool is_dense() const;  // there are no gaps between rows
};

// The same layout in the type that the conversions of math take.
math::Layout MathLayout(const SurfaceLayout& layout);

// The layout of a port of these dims. On route netplist, rows are padded to kSurfaceRowAlignment
// bytes; on route mil, the device reads and writes packed elements from byte 0.
SurfaceLayout LayoutOf(const Dims& dims, Format format, Route route);

// Memory filled with zeros, which begins at a multiple of kSurfaceRowAlignment. It can be moved.
class Surface {
 public:
  // kResourceExhausted if the system cannot provide the memory.
  static absl::StatusOr<Surface> Allocate(int64_t bytes);

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  using Memory = std::unique_ptr<std::byte, void (*)(void*)>;
  Surface(Memory memory, std::byte* data, int64_t bytes)
      : memory_(std::move(memory)), data_(data), bytes_(bytes) {}
  Memory memory_;
  std::byte* data_;
  int64_t bytes_;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SURFACE_H_
