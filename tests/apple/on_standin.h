// tests/apple/on_standin.h: the stand-in (standin/standin.h) as the framework of a test program.
#ifndef ANEMONE_TESTS_APPLE_ON_STANDIN_H_
#define ANEMONE_TESTS_APPLE_ON_STANDIN_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/apple/apple_device.h"
#include "engine/device.h"
#include "engine/network.h"
#include "tests/apple/standin/standin.h"

namespace anemone {

// Sets the stand-in's fault. The process uses the stand-in from the first call on.
void SetFault(const std::string& fault);
// Lets calls that hang return.
void ReleaseCalls();
// The counts after all calls have ended.
StandinCounts CountsOfStandin();
// A short text of the counts: "objects 0, surfaces 0, loaded 0, mapped 0".
std::string LiveText();

const Target& HostTarget();  // of the stand-in, h13

// A network x, a -> Sub -> y, or Sub and Sigmoid. `weight` is that of a scale that the result is
// multiplied with.
Network SmallNetwork(Route route, const Dims& x, const Dims& a, float weight = 2);

// Results for inputs that follow from the port's number: one string of bytes for each output.
absl::StatusOr<std::vector<std::string>> Results(Device& device, const Program& program);

// The device of the test, whose waits after failed compiles are added to `waited`.
std::unique_ptr<Device> TestDevice(CompileHistory& history, absl::Duration& waited,
                                   absl::Duration timeout = absl::Seconds(20));

// A software device in exact mode.
std::unique_ptr<Device> ExactDevice();

}  // namespace anemone

#endif  // ANEMONE_TESTS_APPLE_ON_STANDIN_H_
