// engine/device.h: what compiles networks and runs programs. Two implementations: the software
// engine (engine/software), which obeys the same rules on any machine, and the silicon.
//
//   ASSIGN_OR_RETURN(auto program, device.Compile(network, target, route));
//   device.Run(*program, {inputs, outputs});
#ifndef ANEMONE_ENGINE_DEVICE_H_
#define ANEMONE_ENGINE_DEVICE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/network.h"
#include "engine/numerics_mode.h"
#include "engine/surface.h"
#include "engine/target.h"
#include "engine/unit_kind.h"

namespace anemone {

struct ProgramPort {
  std::string name;
  SurfaceLayout layout;
};

// A network compiled for a target. Immutable; may be run from many threads at once.
class Program {
 public:
  virtual ~Program() = default;
  const std::vector<ProgramPort>& inputs() const { return inputs_; }
  const std::vector<ProgramPort>& outputs() const { return outputs_; }

 protected:
  std::vector<ProgramPort> inputs_;
  std::vector<ProgramPort> outputs_;
};

// A unit that has just run: dense fp16 operands and result.
struct UnitRun {
  const Unit& unit;
  absl::Span<const ConstView> in;
  ConstView out;
};

// Port memory for one run, in the order of the program's ports, laid out as they say.
struct Request {
  absl::Span<const std::byte* const> inputs;
  absl::Span<std::byte* const> outputs;
  // Called after each unit that computed something, with its name, type and duration.
  const std::function<void(absl::string_view unit, absl::string_view type, absl::Duration took)>*
      on_unit = nullptr;
  // Called likewise with its values, of a program that SoftwareOptions::observed made. A NaN or an
  // infinity is then seen as IEEE has it, in `exact` too.
  const std::function<void(const UnitRun&)>* on_values = nullptr;
  // What is allocated behind each port; empty: as much as its layout takes.
  absl::Span<const int64_t> input_bytes = {}, output_bytes = {};
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // kFailedPrecondition if CheckNetwork refuses the network; kResourceExhausted if it does not fit
  // in memory.
  virtual absl::StatusOr<std::unique_ptr<Program>> Compile(const Network& network,
                                                           const Target& target, Route route) = 0;
  virtual absl::Status Run(const Program& program, const Request& request) = 0;
};

// How the software engine computes.
struct SoftwareOptions {
  // `fast`: fp16 storage and rounding at unit boundaries, fp32 sums. `exact`: every rule of
  // numerics.json, by the target's family.
  NumericsMode numerics;
  // Runs can be watched (Request::on_values): every unit runs by itself and keeps its weights.
  bool observed = false;
};

// It computes in the caller's oneTBB arena.
std::unique_ptr<Device> MakeSoftwareDevice(const SoftwareOptions& options = {});

}  // namespace anemone

#endif  // ANEMONE_ENGINE_DEVICE_H_
