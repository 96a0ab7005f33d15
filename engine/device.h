// engine/device.h: a Device compiles networks and runs programs. The software engine
// (engine/software) implements it on every machine, by the same rules as the silicon.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto program, device.Compile(network, target, route));
//   ANEMONE_RETURN_IF_ERROR(device.Run(*program, {inputs, outputs}));
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

// A unit that has just run, with its operands and its result (dense fp16).
struct UnitRun {
  const Unit& unit;
  absl::Span<const ConstView> in;
  ConstView out;
};

// The memory of the ports for one run, in the order of the program's ports and in their layouts.
struct Request {
  absl::Span<const std::byte* const> inputs;
  absl::Span<std::byte* const> outputs;
  // Called after each unit that computed something, with its name, type and duration.
  const std::function<void(absl::string_view unit, absl::string_view type, absl::Duration took)>*
      on_unit = nullptr;
  // Called after each unit with its values, if the program was compiled with
  // SoftwareOptions::observed. NaNs and infinities are then those of IEEE arithmetic, in `exact`
  // mode too.
  const std::function<void(const UnitRun&)>* on_values = nullptr;
  // The bytes allocated for each port; if empty, each port has the size of its layout.
  absl::Span<const int64_t> input_bytes = {}, output_bytes = {};
};

// New values for constants of a program's network, of the types and dims that they had.
struct NewConstants {
  struct OfUnit {
    int unit;
    std::vector<Tensor> weights;  // all weights of the unit
  };
  struct Operand {
    int constant;  // an index of Network::constants
    Tensor tensor;
  };
  std::vector<OfUnit> units;
  // All other constants of a unit that reads one are here too.
  std::vector<Operand> operands;
};

// A change of a program's constants in place, of a device that keeps programs outside of the
// process. While one of the functions runs, the program must not. The program outlives it.
class Reload {
 public:
  virtual ~Reload() = default;
  // On an error the program has its old constants, or it is lost: the message says so, and all its
  // runs fail.
  virtual absl::Status Apply() = 0;
  // Back to the old constants, after Apply(). Errors: the program is lost.
  virtual absl::Status Undo() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // The route whose layouts (LayoutOf()) the ports of a program of `route` have.
  virtual Route port_route(Route route) const { return route; }
  // kFailedPrecondition if CheckNetwork refuses the network; kResourceExhausted if it does not fit
  // in memory.
  virtual absl::StatusOr<std::unique_ptr<Program>> Compile(const Network& network,
                                                           const Target& target, Route route) = 0;
  virtual absl::Status Run(const Program& program, const Request& request) = 0;
  // The program with these constants; only they are prepared again. `program` stays as it is.
  // kUnimplemented: the device can only compile.
  virtual absl::StatusOr<std::unique_ptr<Program>> WithConstants(const Program& /*program*/,
                                                                 const NewConstants& /*changed*/) {
    return absl::UnimplementedError(name() + ": cannot change the constants of a program");
  }
  // Whether PrepareReload() may succeed: the device changes programs in place, without compiling.
  virtual bool reloads() const { return false; }
  // `network` is that of the program except for the elements of constants. Changes nothing yet.
  // kUnimplemented: compile the network instead.
  virtual absl::StatusOr<std::unique_ptr<Reload>> PrepareReload(const Program& /*program*/,
                                                                const Network& /*network*/) {
    return absl::UnimplementedError(name() + ": cannot reload a program");
  }
};

// Options of the software engine.
struct SoftwareOptions {
  // `fast`: fp16 storage and rounding at unit boundaries, fp32 sums. `exact`: every rule of
  // numerics.json, by the target's family.
  NumericsMode numerics;
  // Lets Request::on_values see every unit: units are not fused and keep their weights.
  bool observed = false;
  // Rows of ports are packed on every route (Device::port_route()), so that units read and write
  // them in place.
  bool packs_ports = false;
};

// The bytes that a program of the software engine takes, by an estimate that computes nothing.
struct ProgramMemory {
  int64_t weights = 0;
  int64_t arena = 0;  // the values between units, in each run at the same time
};
ProgramMemory EstimateMemory(const Network& network, Route route, const SoftwareOptions& options);

// Makes the software engine. It computes in the caller's oneTBB arena.
std::unique_ptr<Device> MakeSoftwareDevice(const SoftwareOptions& options = {});

}  // namespace anemone

#endif  // ANEMONE_ENGINE_DEVICE_H_
