// engine/apple/apple_device.h: the Apple Neural Engine of a Mac, as a Device. It uses private
// interfaces of macOS (docs/apple.md), which device.md describes.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto device, OpenAppleDevice());
//   auto program = device->Compile(network, target, Route::kNetplist);
//
// Ports have the layouts of engine/surface.h. The values are copied to surfaces with the strides
// that the framework lists, because all surfaces of one side must have one size.
//
// Errors of Compile(): kFailedPrecondition (CheckNetwork or the compiler refuses the network; the
// target is not that of this machine), kUnimplemented (no format can hold the network),
// kResourceExhausted (the limit of compiles of a process is reached; a surface cannot be made),
// kPermissionDenied (a file cannot be written), kAborted (something else writes to the model's
// folder).
// Errors of Run(): kFailedPrecondition (status 0x1d), kInternal (another failure).
// Errors of both: kDeadlineExceeded (a call of the framework has not ended in time), kUnavailable
// (an earlier call has not ended yet).
#ifndef ANEMONE_ENGINE_APPLE_APPLE_DEVICE_H_
#define ANEMONE_ENGINE_APPLE_APPLE_DEVICE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/device.h"
#include "engine/software/device_limits.h"

namespace anemone {

struct AppleOptions {
  absl::Duration compile_timeout = absl::Minutes(5);
  absl::Duration run_timeout = absl::Seconds(30);  // also of load and unload
  CompileHistory* history = &ProcessCompiles();
  // Waits after a failed compile until the device may compile again.
  std::function<void(absl::Duration)> wait = absl::SleepFor;
  bool judges = true;  // false: the device is asked to compile what CheckNetwork() refuses, too
};

// kUnimplemented if this machine has no engine, or its framework lacks something: the message
// names it, and the remedy. The environment variable ANEMONE_ANE_TIMEOUT, 1 to 86400 seconds, goes
// before `run_timeout`; kInvalidArgument if it is something else.
absl::StatusOr<std::unique_ptr<Device>> OpenAppleDevice(const AppleOptions& options = {});

// The compile target of this machine's engine; null if its chip is not known. Errors as above.
absl::StatusOr<const Target*> AppleHostTarget();

// kUnavailable while a call of the framework has not ended in time: only another process can use
// the device.
absl::Status CheckAppleDevice();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_APPLE_APPLE_DEVICE_H_
