// engine/apple/fallback_device.h: a device that uses another one for programs that the first cannot
// compile or run. Each time, a note says so.
//
//   auto device = MakeFallbackDevice(std::move(first), MakeSoftwareDevice(),
//                                    [](const std::string& note) { Warn(note); });
#ifndef ANEMONE_ENGINE_APPLE_FALLBACK_DEVICE_H_
#define ANEMONE_ENGINE_APPLE_FALLBACK_DEVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "engine/device.h"

namespace anemone {

// A program keeps its network, so that the second device can compile it after a run or a reload
// that failed; from then on the second device runs it. Errors are those of the second device.
// `note` may be called from several threads at a time.
std::unique_ptr<Device> MakeFallbackDevice(std::unique_ptr<Device> first,
                                           std::unique_ptr<Device> second,
                                           std::function<void(const std::string&)> note);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_APPLE_FALLBACK_DEVICE_H_
