#include "provider/devices.h"

#include <utility>

#include "absl/strings/match.h"
#include "base/annotated.h"
#include "base/status_macros.h"
#include "engine/apple/apple_device.h"
#include "engine/apple/fallback_device.h"
#include "engine/software/device_limits.h"

namespace anemone {
namespace {

// Whether `auto` may use the engine of this machine.
bool WantsApple(const Settings& settings, const Target& target, bool is_exact) {
  if (is_exact || settings.hazards || settings.device_limits) return false;
  const auto host = AppleHostTarget();
  return host.ok() && *host == &target;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const Settings& settings, const Target& target,
                                                   const SoftwareOptions& software,
                                                   std::function<void(const std::string&)> note) {
  if (settings.device == "apple") {
    auto device = OpenAppleDevice();
    return device.ok() ? std::move(device) : Annotated(device.status(), "device 'apple'");
  }
  SoftwareOptions options = software;
  options.packs_ports =
      IsSoftwareOnly(settings) && !settings.device_limits && !settings.heed_limits;
  std::unique_ptr<Device> device = MakeSoftwareDevice(options);
  if (settings.device_limits) device = MakeLimitedDevice(std::move(device));
  if (settings.device != "auto" || !WantsApple(settings, target, software.numerics.is_exact())) {
    return device;
  }
  ANEMONE_ASSIGN_OR_RETURN(auto apple, OpenAppleDevice());
  return MakeFallbackDevice(std::move(apple), std::move(device), std::move(note));
}

bool IsSoftwareOnly(const Settings& settings) {
  if (settings.device != "auto") return settings.device == "software";
  const auto target = FindTarget(settings.target);
  const bool is_exact = absl::StartsWith(settings.numerics, "exact");
  return !target.ok() || !WantsApple(settings, **target, is_exact);
}

std::string DeviceText(const Settings& settings) {
  return IsSoftwareOnly(settings) ? "software engine on this CPU" : "the engine of this Mac";
}

}  // namespace anemone
