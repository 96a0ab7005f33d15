// engine/software/device_limits.h: a device with the silicon's manners at run time, so that a
// program that would fail on a Mac fails on any machine (`anemone run --device-limits`).
//
//   auto device = MakeLimitedDevice(MakeSoftwareDevice());
//
// Compile: a process has so many compiles, and after a failed one the device wants a pause; a
// compile beyond either is refused (kResourceExhausted, kUnavailable).
// Run: the surfaces of one side of a program must be of one size, and not below a floor, else
// evaluation fails with status 0x1d (kFailedPrecondition). On the MIL route a program's ports are
// listed, and so surfaces bound, in alphabetical order (orion.json 3, 19): whoever takes the
// network's order for the program's gets wrong data and no error, as on the silicon.
#ifndef ANEMONE_ENGINE_SOFTWARE_DEVICE_LIMITS_H_
#define ANEMONE_ENGINE_SOFTWARE_DEVICE_LIMITS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/device.h"

namespace anemone {

// A row of engine/tables/device_limits.json.
struct DeviceLimit {
  const char* id;
  int64_t value;       // 0: the manner has none
  const char* answer;  // what the device says; null: nothing
  const char* remedy;
  const char* source;
};

// What a process has asked of the device's compiler. Safe from many threads.
class CompileHistory {
 public:
  using Clock = std::function<absl::Time()>;
  explicit CompileHistory(Clock now = absl::Now) : now_(std::move(now)) {}

  // Counts a compile that is about to start, or says why the device would not do it. Whether a
  // failed compile counts is in no source: here it does, which errs on the safe side.
  absl::Status Begin();
  // The compile that began last failed in the compiler.
  void Fail();
  // As in a process that has just started; for tests, with a clock of their own.
  void Restart(Clock now = absl::Now);

 private:
  std::mutex mutex_;
  Clock now_;
  int64_t compiles_ = 0;
  absl::Time failed_ = absl::InfinitePast();
};

// That of this process, which all limited devices share unless told otherwise.
CompileHistory& ProcessCompiles();

std::unique_ptr<Device> MakeLimitedDevice(std::unique_ptr<Device> device,
                                          CompileHistory& history = ProcessCompiles());

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_DEVICE_LIMITS_H_
