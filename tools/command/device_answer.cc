#include "tools/command/device_answer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "engine/apple/apple_device.h"
#include "tools/command/commands.h"

namespace anemone {
namespace {

absl::Status RunZeros(Device& device, const Program& program) {
  std::vector<std::vector<std::byte>> memory;
  const auto add = [&](const std::vector<ProgramPort>& ports) {
    for (const ProgramPort& port : ports) memory.emplace_back(port.layout.bytes());
  };
  add(program.inputs());
  add(program.outputs());
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (i < program.inputs().size()) {
      inputs.push_back(memory[i].data());
    } else {
      outputs.push_back(memory[i].data());
    }
  }
  return device.Run(program, {.inputs = inputs, .outputs = outputs});
}

// The network of the operation; without outputs if no target builds one.
Network NetworkToAsk(const MilCall& call, Route route, const OperationVerdict& judged) {
  if (!judged.network.outputs.empty()) return judged.network;
  for (const Target& target : AllTargets()) {
    auto other = JudgeOperation(call, target, route, /*rewrites=*/false);
    if (other.ok() && !other->network.outputs.empty()) return std::move(other->network);
  }
  return {};
}

// The answer, and why.
std::pair<const char*, std::string> Answer(Device& device, const Network& network,
                                           const Target& target, Route route) {
  if (network.outputs.empty()) return {"not-asked", "no target builds a network of it"};
  const auto host = AppleHostTarget();
  if (host.ok() && *host != nullptr && *host != &target) {
    return {"not-asked", absl::StrCat("this machine has ", (*host)->option_name())};
  }
  const auto program = device.Compile(network, target, route);
  if (!program.ok()) {
    const std::string why(program.status().message());
    if (absl::IsUnimplemented(program.status())) return {"not-asked", why};
    return {absl::IsFailedPrecondition(program.status()) ? "refuses" : "fails", why};
  }
  const absl::Status run = RunZeros(device, **program);
  if (!run.ok()) return {"fails", std::string(run.message())};
  return {"runs", ""};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> DeviceToAsk() {
  auto device = OpenAppleDevice({.judges = false});
  return device.ok() ? std::move(device) : Annotated(device.status(), "device 'apple'");
}

Json AskDevice(Device& device, const MilCall& call, const Target& target, Route route,
               const OperationVerdict& judged) {
  const auto [answer, why] = Answer(device, NetworkToAsk(call, route, judged), target, route);
  const absl::string_view name = answer;
  Json differs;
  if (name == "runs" || name == "refuses") differs = judged.verdict.accepted != (name == "runs");
  return {{"device", device.name()},
          {"answer", answer},
          {"message", why.empty() ? Json(nullptr) : Json(why)},
          {"differs", differs}};
}

std::string DeviceAnswerText(const Json& answer) {
  const std::string name = Cell(answer["answer"]), message = Cell(answer["message"]);
  const bool differs = answer["differs"].is_boolean() && answer["differs"].get<bool>();
  const std::string what = name == "runs"      ? "the device runs it"
                           : name == "refuses" ? "the device refuses it"
                           : name == "fails"   ? "the device does not run it"
                                               : "the device was not asked";
  return absl::StrCat(differs ? "DIFFERS: " : "", what, message.empty() ? "" : ": ", message);
}

}  // namespace anemone
