// engine/surface.h: a Surface is memory that a port of a program reads or writes. It can be shared
// between segments and, where the system supports it, between processes. The rules of the device
// hold on all systems: the layout of a port depends on the route, and an allocation has at least
// 48 KiB. Sources: device.md ("Row strides are multiples of 64 bytes", "Data is packed from byte 0
// regardless", "under about 48 KiB"); conflicts.md C-surface-rows.
#ifndef ANEMONE_ENGINE_SURFACE_H_
#define ANEMONE_ENGINE_SURFACE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

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

// A shared mapping filled with zeros (memfd on Linux). It can be moved; the destructor unmaps it.
class Surface {
 public:
  // Allocates `bytes`, or the limit "surface-floor" of device_limits.json if that is more.
  // kResourceExhausted if the system cannot provide the memory.
  static absl::StatusOr<Surface> Allocate(int64_t bytes);

  Surface(Surface&& other) noexcept;
  Surface& operator=(Surface&& other) noexcept;
  Surface(const Surface&) = delete;
  Surface& operator=(const Surface&) = delete;
  ~Surface();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // A file descriptor by which another process can map the same memory; -1 if there is none.
  int handle() const { return handle_; }

 private:
  Surface(std::byte* data, int64_t bytes, int handle)
      : data_(data), bytes_(bytes), handle_(handle) {}
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  int handle_ = -1;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SURFACE_H_
