// engine/apple/open_driver.h: finds the driver of this machine, and its chip.
//
//   ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<apple::Driver> driver, apple::OpenDriver());
//   const Target* host = apple::TargetOfChip(driver->Chip());   // "Apple M1 Pro" -> h13g
#ifndef ANEMONE_ENGINE_APPLE_OPEN_DRIVER_H_
#define ANEMONE_ENGINE_APPLE_OPEN_DRIVER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/apple/driver.h"
#include "engine/target.h"

namespace anemone::apple {

// The driver of AppleNeuralEngine.framework. It is opened once in a process. The environment
// variable ANEMONE_ANE_FRAMEWORK names another library that takes the framework's place; on
// systems other than macOS, ANEMONE_ANE_DRIVER names the library with driver.mm. Both are for
// tests. kUnimplemented if there is no framework, or it lacks a class, message or symbol; the
// message names the first.
absl::StatusOr<std::shared_ptr<Driver>> OpenDriver();

// The compile target of a chip ("Apple M1 Pro"); null if it is not known.
const Target* TargetOfChip(absl::string_view chip);

}  // namespace anemone::apple

#endif  // ANEMONE_ENGINE_APPLE_OPEN_DRIVER_H_
