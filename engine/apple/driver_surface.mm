// IOSurfaces: width is the number of bytes, height 1, one byte per element (device.md).
#include "engine/apple/driver_parts.h"

namespace anemone::apple {
namespace {

constexpr uint32_t kReadOnly = 1;  // kIOSurfaceLockReadOnly

class FrameworkSurface final : public DriverSurface {
 public:
  FrameworkSurface(const SurfaceFunctions& functions, void* handle)
      : functions_(functions), handle_(handle) {}
  ~FrameworkSurface() override { functions_.release(handle_); }

  size_t bytes() const override { return functions_.size(handle_); }
  std::byte* Lock(bool only_to_read) override {
    if (functions_.lock(handle_, only_to_read ? kReadOnly : 0, nullptr) != 0) return nullptr;
    return static_cast<std::byte*>(functions_.address(handle_));
  }
  void Unlock(bool only_to_read) override {
    functions_.unlock(handle_, only_to_read ? kReadOnly : 0, nullptr);
  }
  void* handle() const { return handle_; }

 private:
  const SurfaceFunctions functions_;
  void* const handle_;
};

}  // namespace

Error MakeSurface(const SurfaceFunctions& functions, size_t bytes,
                  std::unique_ptr<DriverSurface>& surface) {
  return Guard([&]() -> Error {
    NSDictionary* properties = [NSDictionary
        dictionaryWithObjectsAndKeys:NumberOf(bytes), functions.width, NumberOf(1),
                                     functions.height, NumberOf(1), functions.element,
                                     NumberOf(bytes), functions.row, NumberOf(bytes),
                                     functions.bytes, NumberOf(0), functions.format, nil];
    void* const handle = functions.create((void*)properties);
    if (handle == nullptr) return "IOSurfaceCreate returned nothing";
    surface = std::make_unique<FrameworkSurface>(functions, handle);
    if (surface->bytes() >= bytes) return std::nullopt;
    const std::string got = std::to_string(surface->bytes());
    surface.reset();
    return "IOSurfaceCreate made a surface of " + got + " bytes";
  });
}

void* HandleOf(const DriverSurface& surface) {
  return static_cast<const FrameworkSurface&>(surface).handle();
}

}  // namespace anemone::apple
