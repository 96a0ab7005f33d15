// The software engine (engine/device.h). Compile calls CheckNetwork, prepares the constants of
// every unit, and plans one arena for all intermediate tensors. Run executes the units in order, in
// an arena that the programs of the device share.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/deadline.h"
#include "base/saturated.h"
#include "base/status_macros.h"
#include "base/steady_now.h"
#include "engine/device.h"
#include "engine/loops.h"
#include "engine/software/arena_pool.h"
#include "engine/software/exact_plan.h"
#include "engine/software/fusion.h"
#include "engine/software/part_reads.h"
#include "engine/software/placement.h"
#include "engine/software/unit_program.h"
#include "engine/software/views.h"
#include "engine/unit_kind.h"
#include "math/core/half.h"
#include "math/move/convert.h"

namespace anemone {
namespace {

using math::Half;

class SoftwareProgram final : public Program {
 public:
  UnitProgram units;  // its weights are dropped, except in exact mode
  std::optional<math::Numerics> exact;
  std::vector<ExactStep> steps;  // by unit, in exact mode

  void set_ports(std::vector<ProgramPort> inputs, std::vector<ProgramPort> outputs) {
    inputs_ = std::move(inputs);
    outputs_ = std::move(outputs);
  }
};

std::vector<ProgramPort> InputPorts(const Network& network, Route route) {
  std::vector<ProgramPort> ports;
  for (const InputPort& p : network.inputs) {
    ports.push_back({p.name, LayoutOf(p.dims, p.format, route)});
  }
  return ports;
}

std::vector<ProgramPort> OutputPorts(const Network& network, Route route) {
  std::vector<ProgramPort> ports;
  for (const OutputPort& p : network.outputs) {
    ports.push_back({p.name, LayoutOf(network.DimsOf(p.from), Format::kFloat16, route)});
  }
  return ports;
}

// The engine returns +0 where IEEE arithmetic returns NaN (numerics.json st-nan-gen).
void ReplaceNan(View view) {
  for (Half& half : view.span()) {
    if (math::IsNan(half)) half = math::kHalfZero;
  }
}

// Units are fused, and slices read in place, unless values must be seen or rounded one by one.
bool Fuses(const SoftwareOptions& options) {
  return !options.numerics.is_exact() && !options.observed;
}

// Device::port_route().
Route PortRoute(Route route, const SoftwareOptions& options) {
  return options.packs_ports ? Route::kMil : route;
}

SlotPlan PlacementOf(const Network& network, const Views& views, absl::Span<const Chain> chains,
                     Route route, const SoftwareOptions& options) {
  const Route ports = PortRoute(route, options);
  return PlaceTensors(network, views, chains, InputPorts(network, ports),
                      OutputPorts(network, ports),
                      /*inputs_in_place=*/!options.numerics.is_exact());
}

class SoftwareDevice final : public Device {
 public:
  explicit SoftwareDevice(const SoftwareOptions& options) : options_(options) {}
  std::string name() const override { return "software"; }
  Route port_route(Route route) const override { return PortRoute(route, options_); }

  absl::StatusOr<std::unique_ptr<Program>> Compile(const Network& network, const Target& target,
                                                   Route route) override {
    NetworkVerdict checked = CheckNetwork(network, target, route);
    if (!checked.verdict.accepted) {
      return absl::FailedPreconditionError(absl::StrCat(
          checked.unit < 0 ? "network"
                           : absl::StrCat("unit '", network.units[checked.unit].name, "'"),
          ": ", target.option_name(), " refuses it: ", checked.verdict.message));
    }
    const bool fuses = Fuses(options_);
    if (!fuses && HasLoops(network)) {  // values in a loop cannot be seen or rounded one by one
      ANEMONE_ASSIGN_OR_RETURN(const Network unrolled, Unrolled(network, target, route));
      return Compile(unrolled, target, route);
    }
    auto program = std::make_unique<SoftwareProgram>();
    if (options_.numerics.is_exact()) program->exact = options_.numerics.On(target);
    program->units.arenas = arenas_;
    ANEMONE_RETURN_IF_ERROR(program->units.Prepare(network));
    const Route ports = port_route(route);
    program->set_ports(InputPorts(network, ports), OutputPorts(network, ports));
    program->units.Place(program->inputs(), program->outputs(), fuses,
                         /*inputs_in_place=*/!options_.numerics.is_exact());
    Network& own = *program->units.network;
    if (program->exact) {
      program->steps = PlanExact(network, *program->exact);
    } else if (!options_.observed) {
      for (Unit& unit : own.units) unit.weights.clear();
    }
    for (Constant& constant : own.constants) constant.tensor = Tensor();
    return program;
  }

  absl::StatusOr<std::unique_ptr<Program>> WithConstants(const Program& base,
                                                         const NewConstants& changed) override {
    auto program = std::make_unique<SoftwareProgram>(static_cast<const SoftwareProgram&>(base));
    UnitProgram& units = program->units;
    const bool keeps_weights = program->exact || options_.observed;
    if (keeps_weights || !changed.operands.empty()) {
      units.network = std::make_shared<Network>(*units.network);
    }
    Network& network = *units.network;
    std::map<int, Unit> stale;
    for (const NewConstants::OfUnit& unit : changed.units) {
      const auto at = stale.emplace(unit.unit, network.units[unit.unit]).first;
      at->second.weights = unit.weights;
      if (keeps_weights) network.units[unit.unit].weights = unit.weights;
    }
    std::vector<bool> is_new(network.constants.size());
    for (const NewConstants::Operand& operand : changed.operands) {
      Constant& constant = network.constants[operand.constant];
      constant.tensor = operand.tensor;
      ANEMONE_ASSIGN_OR_RETURN(units.constants[operand.constant], ToHalves(constant));
      is_new[operand.constant] = true;
    }
    for (size_t i = 0; !changed.operands.empty() && i < network.units.size(); ++i) {
      const std::vector<Operand>& bottoms = network.units[i].bottoms;
      const bool reads = std::any_of(bottoms.begin(), bottoms.end(), [&](const Operand& bottom) {
        return bottom.source == Operand::Source::kConstant && is_new[bottom.index];
      });
      if (reads) stale.emplace(static_cast<int>(i), network.units[i]);
    }
    for (const auto& [i, unit] : stale) {
      // Reads in parts depend on no constant.
      if (AsPartReads(units.prepared[i]) != nullptr) continue;
      ANEMONE_ASSIGN_OR_RETURN(units.prepared[i], PrepareUnit(network, unit, units.prepared));
    }
    if (program->exact) program->steps = PlanExact(network, *program->exact);
    for (const NewConstants::Operand& operand : changed.operands) {
      network.constants[operand.constant].tensor = Tensor();
    }
    return program;
  }

  absl::Status Run(const Program& base, const Request& request) override {
    const auto& program = static_cast<const SoftwareProgram&>(base);
    RunMemory memory = program.units.TakeMemory();
    if (memory.arena.data == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "run: cannot allocate ", program.units.order->placement.arena_halves * 2, " bytes"));
    }
    absl::Status status = Walk(program, request, memory);
    program.units.GiveBack(std::move(memory));
    return status;
  }

 private:
  // Copies the values of a port to `staged`. In exact mode a NaN becomes +infinity (numerics.json
  // st-nan-in), and -0 becomes +0 if the target drops the sign of zero everywhere (st-zero).
  static void Stage(const SoftwareProgram& program, const SurfaceLayout& layout,
                    const std::byte* port, Half* staged) {
    math::ConvertStrided(layout.dims.extent, port, MathLayout(layout), staged,
                         math::DenseLayout(math::Element::kHalf, layout.dims.extent),
                         program.exact ? math::NanRule::kToInfinity : math::NanRule::kKeep);
    if (!program.exact || program.exact->st_zero != math::StZero::kDropEverywhere) return;
    for (int64_t i = 0; i < layout.dims.elements(); ++i) {
      if (staged[i].bits == 0x8000) staged[i] = math::kHalfZero;
    }
  }

  static void RunExact(const SoftwareProgram& program, int index, const Request& request,
                       const UnitCall& call) {
    const Unit& unit = *call.unit;
    const ExactStep& step = program.steps[index];
    if (step.passes_on) {
      std::copy(call.in[0].span().begin(), call.in[0].span().end(), call.out.data);
    } else if (!unit.kind->exact.compute) {
      unit.kind->Compute(unit.params.get(), call.prepared, call.in, call.out);
      ReplaceNan(call.out);
    } else {
      ExactUnit exact = {*program.exact, unit.weights, call.prepared};
      exact.epilogue = step.epilogue ? &*step.epilogue : nullptr;
      exact.squares = step.squares;
      exact.is_image = step.is_image;
      std::vector<Half> port;  // with its NaNs
      if (step.port >= 0) {
        const SurfaceLayout& layout = program.inputs()[step.port].layout;
        port.resize(layout.dims.elements());
        math::ConvertStrided(layout.dims.extent, request.inputs[step.port], MathLayout(layout),
                             port.data(),
                             math::DenseLayout(math::Element::kHalf, layout.dims.extent));
        exact.port = port.data();
      }
      unit.kind->exact.compute(unit.params.get(), exact, call.in, call.out);
    }
  }

  static absl::Status Walk(const SoftwareProgram& program, const Request& request,
                           RunMemory& memory) {
    const UnitProgram& units = program.units;
    const Network& network = *units.network;
    Half* const arena = memory.arena.data.get();
    units.SetPorts(memory, request);
    for (size_t i = 0; i < network.inputs.size(); ++i) {
      if (units.order->placement.inputs[i].in == Slot::In::kInput) continue;
      const SurfaceLayout& layout = program.inputs()[i].layout;
      Stage(program, layout, request.inputs[i],
            units.At(units.order->placement.inputs[i], arena, &request));
    }
    for (size_t i = 0; i < units.order->chains.size(); ++i) {
      const std::vector<UnitCall>& calls = memory.calls[i];
      ANEMONE_RETURN_IF_ERROR(
          CheckTime(Phase::kRun, [&] { return absl::StrCat("unit '", calls[0].unit->name, "'"); }));
      absl::Time start = request.on_unit != nullptr ? SteadyNow() : absl::Time();
      if (program.exact && request.on_values == nullptr) {
        RunExact(program, units.order->chains[i][0].unit, request, calls[0]);
      } else {
        RunChain(calls);
      }
      if (request.on_unit != nullptr) {
        (*request.on_unit)(calls[0].unit->name, calls[0].unit->kind->type, SteadyNow() - start);
      }
      if (request.on_values != nullptr) {
        const UnitCall& call = calls[0];
        (*request.on_values)({*call.unit, call.in, {call.out.dims, call.out.data}});
      }
    }
    for (size_t i = 0; i < network.outputs.size(); ++i) {
      if (units.order->placement.direct_outputs[i]) continue;
      const SurfaceLayout& layout = program.outputs()[i].layout;
      math::ConvertStrided(layout.dims.extent,
                           units.At(units.SlotOf(network.outputs[i].from), arena, &request),
                           math::DenseLayout(math::Element::kHalf, layout.dims.extent),
                           request.outputs[i], MathLayout(layout));
    }
    return absl::OkStatus();
  }

  SoftwareOptions options_;
  std::shared_ptr<ArenaPool> arenas_ = std::make_shared<ArenaPool>();
};

}  // namespace

ProgramMemory EstimateMemory(const Network& network, Route route, const SoftwareOptions& options) {
  constexpr int64_t kBytes = sizeof(Half);
  ProgramMemory memory;
  for (const Constant& constant : network.constants) {
    memory.weights =
        SaturatedSum(memory.weights, SaturatedProduct(constant.dims.elements(), kBytes));
  }
  for (const Unit& unit : network.units) {
    for (const Tensor& weight : unit.weights) {
      const int64_t bytes = weight.compressed() != nullptr
                                ? weight.compressed()->stored_bytes()
                                : SaturatedProduct(weight.elements(), kBytes);
      memory.weights = SaturatedSum(memory.weights, bytes);
    }
  }
  const Views views(network, {});  // slices are counted as if they were computed
  const std::vector<Chain> chains = FuseUnits(network, views, Fuses(options));
  memory.arena =
      SaturatedProduct(PlacementOf(network, views, chains, route, options).arena_halves, kBytes);
  return memory;
}

std::unique_ptr<Device> MakeSoftwareDevice(const SoftwareOptions& options) {
  return std::make_unique<SoftwareDevice>(options);
}

}  // namespace anemone
