// provider/devices.h: the device that the settings of a user name.
#ifndef ANEMONE_PROVIDER_DEVICES_H_
#define ANEMONE_PROVIDER_DEVICES_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "engine/device.h"
#include "engine/target.h"

namespace anemone {

// "software": the software engine. "apple": the engine of this Mac; an error if it has none, or if
// a segment fails there. "auto": the engine of this Mac, and the software engine for segments that
// fail there, each with a note; the software engine alone if there is no engine, if it is not
// `target`'s, or if the settings are about the software engine (exact numerics, device limits,
// hazards).
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const Settings& settings, const Target& target,
                                                   const SoftwareOptions& software,
                                                   std::function<void(const std::string&)> note);

// Which of the two engines these settings choose, in words: "software engine on this CPU". The
// settings are valid.
std::string DeviceText(const Settings& settings);

// Whether the software engine alone runs the programs. The settings are valid.
bool IsSoftwareOnly(const Settings& settings);

// What the devices of a session tell. Thread-safe.
class DeviceNotes {
 public:
  void Add(const std::string& note) {
    const std::lock_guard<std::mutex> lock(mutex_);
    notes_.push_back(note);
  }
  std::vector<std::string> Texts() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return notes_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_DEVICES_H_
