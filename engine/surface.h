// engine/surface.h: memory that a program's port reads or writes, shared between segments and,
// where the system can, between processes. IOSurface's rules hold everywhere: rows start at
// multiples of 64 bytes, and an allocation is at least 48 KiB.
// Sources: device.md ("Row strides are multiples of 64 bytes", "under about 48 KiB").
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
#include "math/move/convert.h"

namespace anemone {

inline constexpr int64_t kSurfaceRowAlignment = 64;
inline constexpr int64_t kSurfaceMinimumBytes = 48 * 1024;

// Where element (n, d, c, h, w) of a port lies: base + n*strides[0] + ... + w*strides[4], in
// elements.
struct SurfaceLayout {
  Dims dims;
  Format format = Format::kFloat16;
  std::array<int64_t, kAxisCount> strides = {};

  int64_t bytes() const;  // from the first byte to behind the last row
  bool is_dense() const;  // rows follow each other without gaps
};

// The same, as the conversions of math take it.
math::Layout MathLayout(const SurfaceLayout& layout);

SurfaceLayout LayoutOf(const Dims& dims, Format format);

// A zeroed shared mapping (memfd on Linux). Movable; unmapped when it goes.
class Surface {
 public:
  // At least `bytes`, and at least kSurfaceMinimumBytes.
  static absl::StatusOr<Surface> Allocate(int64_t bytes);

  Surface(Surface&& other) noexcept;
  Surface& operator=(Surface&& other) noexcept;
  Surface(const Surface&) = delete;
  Surface& operator=(const Surface&) = delete;
  ~Surface();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // A file descriptor that maps to the same memory in another process; -1 where there is none.
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
