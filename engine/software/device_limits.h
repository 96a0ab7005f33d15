// engine/software/device_limits.h: wraps a device so that it fails where the silicon fails at run
// time. A program that would fail on a Mac then fails on any machine (`anemone run
// --device-limits`).
//
//   auto device = MakeLimitedDevice(MakeSoftwareDevice());
//
// Compile: a process can compile a limited number of times (else kResourceExhausted), and must wait
// after a failed compile (else kUnavailable).
// Run: all input surfaces of a program must have one size, and so must all output surfaces; the
// size must not be below a minimum. Otherwise the run fails with status 0x1d (kFailedPrecondition).
// On the MIL route the ports of a program are in alphabetical order, and surfaces are bound in that
// order (orion.json 3, 19). A caller that uses the order of the network instead gets wrong data and
// no error, as on the silicon.
#ifndef ANEMONE_ENGINE_SOFTWARE_DEVICE_LIMITS_H_
#define ANEMONE_ENGINE_SOFTWARE_DEVICE_LIMITS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_now.h"
#include "engine/device.h"

namespace anemone {

// A row of engine/tables/device_limits.json.
struct DeviceLimit {
  const char* id;
  int64_t value;       // 0 if the limit has no number
  const char* answer;  // the text that the device reports; null if it reports nothing
  const char* remedy;
  const char* source;
};

// Counts the compiles of a process and remembers the last failed one. Safe to use from many
// threads.
class CompileHistory {
 public:
  using Clock = std::function<absl::Time()>;
  explicit CompileHistory(Clock now = SteadyNow) : now_(std::move(now)) {}

  // Counts a compile that is about to start, or returns the error that prevents it. No source says
  // whether a failed compile counts; here it does, which is the safe assumption.
  absl::Status Begin();
  // How long to wait until Begin() does not fail because of the last failed compile.
  absl::Duration PauseLeft();
  // Records that the compile started last failed in the compiler.
  void Fail();
  // Resets to the state of a new process. Tests pass their own clock.
  void Restart(Clock now = SteadyNow);

 private:
  std::mutex mutex_;
  Clock now_;
  int64_t compiles_ = 0;
  absl::Time failed_ = absl::InfinitePast();
};

// The history of this process. All limited devices share it by default.
CompileHistory& ProcessCompiles();

std::unique_ptr<Device> MakeLimitedDevice(std::unique_ptr<Device> device,
                                          CompileHistory& history = ProcessCompiles());

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_DEVICE_LIMITS_H_
