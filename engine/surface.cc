#include "engine/surface.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "device_limit_table.h"  // generated

namespace anemone {
namespace {

// A descriptor of shared memory without a name or size yet; -1, with errno, if there is none.
int OpenSharedMemory() {
#ifdef __linux__
  return memfd_create("anemone-surface", MFD_CLOEXEC);
#else
  // macOS has only named memory, whose name has at most 30 characters. It is closed by exec().
  static std::atomic<unsigned> count = 0;
  const std::string name = absl::StrCat("/anemone-", getpid(), "-", ++count);
  const int handle = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (handle >= 0) shm_unlink(name.c_str());
  return handle;
#endif
}

}  // namespace

int64_t SurfaceLayout::bytes() const { return strides[0] * dims.n() * BytesOf(format); }

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
  bytes = std::max(bytes, device_limit::kSurfaceFloor.value);
  const int handle = OpenSharedMemory();
  if (handle < 0 || ftruncate(handle, bytes) != 0) {
    absl::Status status = absl::ResourceExhaustedError(
        absl::StrCat("surface: cannot allocate ", bytes, " bytes: ", std::strerror(errno),
                     "; close other programs or raise the limit of open files"));
    if (handle >= 0) close(handle);
    return status;
  }
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
  if (data == MAP_FAILED) {
    close(handle);
    return absl::ResourceExhaustedError(
        absl::StrCat("surface: cannot map ", bytes, " bytes; bind smaller dimensions"));
  }
  return Surface(static_cast<std::byte*>(data), bytes, handle);
}

Surface::Surface(Surface&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      handle_(std::exchange(other.handle_, -1)) {}

Surface& Surface::operator=(Surface&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(handle_, other.handle_);
  return *this;
}

Surface::~Surface() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (handle_ >= 0) close(handle_);
}

}  // namespace anemone
