// tools/command/device_answer.h: asks the engine of this Mac whether it runs one operation, to
// compare its answer with JudgeOperation()'s.
#ifndef ANEMONE_TOOLS_COMMAND_DEVICE_ANSWER_H_
#define ANEMONE_TOOLS_COMMAND_DEVICE_ANSWER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/device.h"
#include "engine/field.h"
#include "engine/target.h"
#include "engine/verdict.h"
#include "kernels/mil.h"

namespace anemone {

// The engine of this Mac, which also compiles networks that CheckNetwork() refuses. Errors: those
// of OpenAppleDevice().
absl::StatusOr<std::unique_ptr<Device>> DeviceToAsk();

// Compiles, loads and runs the operation with inputs of zeros. The network is that of the answer;
// if the target refuses the operation before a network is built, that of a target which accepts it.
// {"device": its name, "answer": "runs", "refuses" (the compiler), "fails" (anything after it) or
// "not-asked" (no target builds a network, it has no text for the device, or the target is not this
// Mac's), "message": what the device or Anemone says, "differs": whether the answer contradicts the
// verdict; null if that is not known}.
Json AskDevice(Device& device, const MilCall& call, const Target& target, Route route,
               const OperationVerdict& judged);

// "the device runs it", "DIFFERS: the device refuses it: ...".
std::string DeviceAnswerText(const Json& answer);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_DEVICE_ANSWER_H_
