// The software engine (engine/device.h). Compile calls CheckNetwork, prepares the constants of
// every unit, and plans one arena for all intermediate tensors. Run executes the units in order.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "anemone/compressed.h"
#include "base/deadline.h"
#include "base/idle_pool.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/constant_id.h"
#include "engine/device.h"
#include "engine/repeats.h"
#include "engine/software/exact_plan.h"
#include "engine/software/fusion.h"
#include "engine/software/placement.h"
#include "engine/software/views.h"
#include "engine/unit_kind.h"
#include "math/core/half.h"
#include "math/core/scratch.h"
#include "math/core/shared_pack.h"
#include "math/move/convert.h"

namespace anemone {
namespace {

using math::Half;

using Buffer = std::unique_ptr<Half[], math::AlignedFree>;

Buffer AllocateHalves(int64_t count) {
  const auto bytes = count * static_cast<int64_t>(sizeof(Half));
  return Buffer(static_cast<Half*>(math::AllocateAligned(bytes, true)));
}

// A pointer into the memory of a port. It is set in every run, because the caller's memory changes.
template <class T>
struct PortUse {
  T** data;
  Slot place;
};

// The memory and the prepared calls of one run.
struct RunMemory {
  Buffer arena;
  std::vector<std::vector<UnitCall>> calls;  // by chain
  std::vector<PortUse<const Half>> reads;    // operands that are in ports
  std::vector<PortUse<Half>> writes;         // results that are in ports
};

class SoftwareProgram final : public Program {
 public:
  Network network;  // its weights are dropped after they are prepared, except in exact mode
  std::optional<math::Numerics> exact;
  std::vector<ExactStep> steps;  // by unit, in exact mode
  std::vector<Prepared> prepared;
  std::vector<std::shared_ptr<const Buffer>> constants;
  std::optional<Views> views;
  std::vector<Chain> chains;  // of units, in the order they run
  SlotPlan placement;

  void set_ports(std::vector<ProgramPort> inputs, std::vector<ProgramPort> outputs) {
    inputs_ = std::move(inputs);
    outputs_ = std::move(outputs);
  }

  Slot SlotOf(const Operand& operand) const {
    const Root root = views->RootOf(operand);
    const int index = root.operand.index;
    Slot place = {Slot::In::kConstant, index};
    if (root.operand.source == Operand::Source::kInput) place = placement.inputs[index];
    if (root.operand.source == Operand::Source::kUnit) place = placement.units[index];
    place.offset += root.offset;
    return place;
  }

  // `request` may be null if the place is not in a port.
  Half* At(const Slot& place, Half* arena, const Request* request) const {
    switch (place.in) {
      case Slot::In::kConstant:
        return constants[place.port]->get() + place.offset;
      case Slot::In::kInput:
        return reinterpret_cast<Half*>(const_cast<std::byte*>(request->inputs[place.port])) +
               place.offset;
      case Slot::In::kOutput:
        return reinterpret_cast<Half*>(request->outputs[place.port]) + place.offset;
      case Slot::In::kArena:
        break;
    }
    return arena + place.offset;
  }

  RunMemory TakeMemory() const {
    if (auto idle = idle_.Take()) return *std::move(idle);
    return MakeMemory();
  }
  void GiveBack(RunMemory memory) const { idle_.GiveBack(std::move(memory)); }

 private:
  RunMemory MakeMemory() const;

  mutable IdlePool<RunMemory> idle_;
};

RunMemory SoftwareProgram::MakeMemory() const {
  RunMemory memory = {.arena = AllocateHalves(placement.arena_halves)};
  Half* const arena = memory.arena.get();
  if (arena == nullptr) return memory;
  const auto set = [&](auto& view, const Dims& dims, const Slot& place, auto& uses) {
    view.dims = dims;
    if (place.in == Slot::In::kInput || place.in == Slot::In::kOutput) {
      uses.push_back({&view.data, place});
    } else {
      view.data = At(place, arena, nullptr);
    }
  };
  for (const Chain& chain : chains) {
    std::vector<UnitCall>& calls = memory.calls.emplace_back(chain.size());
    for (size_t i = 0; i < chain.size(); ++i) {
      const Unit& unit = network.units[chain[i].unit];
      UnitCall& call = calls[i];
      call.unit = &unit;
      call.prepared = prepared[chain[i].unit].get();
      call.in.resize(unit.bottoms.size());
      for (size_t k = 0; k < call.in.size(); ++k) {
        const Operand& operand = unit.bottoms[k];
        set(call.in[k], network.DimsOf(operand), SlotOf(operand), memory.reads);
      }
      set(call.out, unit.dims, placement.units[chain[i].unit], memory.writes);
    }
  }
  return memory;
}

absl::StatusOr<std::shared_ptr<const Buffer>> ToHalves(const Constant& constant) {
  const int64_t count = constant.dims.elements();
  auto halves = math::SharedPack<Buffer>({.id = IdOf(constant.tensor), .layout = {count}}, [&] {
    Buffer made = AllocateHalves(count);
    if (made != nullptr) {
      ReadHalves(constant.tensor, 0, {made.get(), static_cast<size_t>(count)});
    }
    return made;
  });
  if (*halves == nullptr) return absl::ResourceExhaustedError("constant: out of memory");
  return halves;
}

absl::StatusOr<Prepared> PrepareUnit(const Network& network, const Unit& unit) {
  auto prepared = unit.kind->Prepare(unit.params.get(), network.BottomsOf(unit), unit.weights);
  if (prepared.ok()) return prepared;
  return absl::Status(prepared.status().code(),
                      absl::StrCat("unit '", unit.name, "': ", prepared.status().message()));
}

// Releases the mapped pages of a constant: the program has its own copy in another form.
void GiveBack(const Tensor& constant) {
  if (constant.compressed() == nullptr) MappedFile::GiveBack(constant.bytes());
}

// The prepared data of every unit.
absl::StatusOr<std::vector<Prepared>> PrepareUnits(const Network& network) {
  std::vector<Prepared> all;
  all.reserve(network.units.size());
  Repeats repeats(network);
  for (size_t i = 0; i < network.units.size(); ++i) {
    const Unit& unit = network.units[i];
    ANEMONE_RETURN_IF_ERROR(
        CheckTime(Phase::kCompile, [&] { return absl::StrCat("unit '", unit.name, "'"); }));
    const int before = repeats.Of(static_cast<int>(i));
    if (before >= 0 && SameWeights(unit, network.units[before])) {
      all.push_back(all[before]);
      continue;
    }
    if (!unit.kind->computes()) {
      return absl::UnimplementedError(
          absl::StrCat("unit '", unit.name, "': ", unit.kind->type, " can be checked but not run"));
    }
    ANEMONE_ASSIGN_OR_RETURN(Prepared prepared, PrepareUnit(network, unit));
    all.push_back(std::move(prepared));
    for (const Tensor& weight : unit.weights) GiveBack(weight);
  }
  return all;
}

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

SlotPlan PlacementOf(const Network& network, const Views& views, absl::Span<const Chain> chains,
                     Route route, const SoftwareOptions& options) {
  return PlaceTensors(network, views, chains, InputPorts(network, route),
                      OutputPorts(network, route),
                      /*inputs_in_place=*/!options.numerics.is_exact());
}

class SoftwareDevice final : public Device {
 public:
  explicit SoftwareDevice(const SoftwareOptions& options) : options_(options) {}
  std::string name() const override { return "software"; }

  absl::StatusOr<std::unique_ptr<Program>> Compile(const Network& network, const Target& target,
                                                   Route route) override {
    NetworkVerdict checked = CheckNetwork(network, target, route);
    if (!checked.verdict.accepted) {
      return absl::FailedPreconditionError(absl::StrCat(
          checked.unit < 0 ? "network"
                           : absl::StrCat("unit '", network.units[checked.unit].name, "'"),
          ": ", target.option_name(), " refuses it: ", checked.verdict.message));
    }
    auto program = std::make_unique<SoftwareProgram>();
    program->network = network;
    if (options_.numerics.is_exact()) program->exact = options_.numerics.On(target);
    for (const Constant& constant : network.constants) {
      // Units that use indices prepare them from the tensor; other readers get them as fp16
      // numbers.
      if (!IsEngineConstant(constant.tensor.type()) &&
          constant.tensor.type() != DataType::kUInt16) {
        return absl::UnimplementedError(absl::StrCat(
            "a constant of ", DataTypeName(constant.tensor.type()), " can be checked but not run"));
      }
      ANEMONE_ASSIGN_OR_RETURN(auto halves, ToHalves(constant));
      GiveBack(constant.tensor);
      program->constants.push_back(std::move(halves));
    }
    ANEMONE_ASSIGN_OR_RETURN(program->prepared, PrepareUnits(network));
    if (program->exact) {
      program->steps = PlanExact(network, *program->exact);
    } else if (!options_.observed) {
      for (Unit& unit : program->network.units) unit.weights.clear();
    }
    for (Constant& constant : program->network.constants) constant.tensor = Tensor();
    program->set_ports(InputPorts(network, route), OutputPorts(network, route));
    const bool fuses = Fuses(options_);
    program->views.emplace(
        network, fuses ? absl::MakeConstSpan(program->prepared) : absl::Span<const Prepared>());
    program->chains = FuseUnits(network, *program->views, fuses);
    program->placement = PlacementOf(network, *program->views, program->chains, route, options_);
    return program;
  }

  absl::StatusOr<std::unique_ptr<Program>> WithConstants(const Program& base,
                                                         const NewConstants& changed) override {
    auto program = std::make_unique<SoftwareProgram>(static_cast<const SoftwareProgram&>(base));
    Network& network = program->network;
    std::vector<int> stale;  // units
    for (const NewConstants::OfUnit& unit : changed.units) {
      network.units[unit.unit].weights = unit.weights;
      stale.push_back(unit.unit);
    }
    std::vector<bool> is_new(network.constants.size());
    for (const NewConstants::Operand& operand : changed.operands) {
      Constant& constant = network.constants[operand.constant];
      constant.tensor = operand.tensor;
      ANEMONE_ASSIGN_OR_RETURN(program->constants[operand.constant], ToHalves(constant));
      is_new[operand.constant] = true;
    }
    for (size_t i = 0; !changed.operands.empty() && i < network.units.size(); ++i) {
      const std::vector<Operand>& bottoms = network.units[i].bottoms;
      const bool reads = std::any_of(bottoms.begin(), bottoms.end(), [&](const Operand& bottom) {
        return bottom.source == Operand::Source::kConstant && is_new[bottom.index];
      });
      if (reads) stale.push_back(static_cast<int>(i));
    }
    for (int i : stale) {
      ANEMONE_ASSIGN_OR_RETURN(program->prepared[i], PrepareUnit(network, network.units[i]));
    }
    if (program->exact) {
      program->steps = PlanExact(network, *program->exact);
    } else if (!options_.observed) {
      for (int i : stale) network.units[i].weights.clear();
    }
    for (const NewConstants::Operand& operand : changed.operands) {
      network.constants[operand.constant].tensor = Tensor();
    }
    return program;
  }

  absl::Status Run(const Program& base, const Request& request) override {
    const auto& program = static_cast<const SoftwareProgram&>(base);
    RunMemory memory = program.TakeMemory();
    if (memory.arena == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("run: cannot allocate ", program.placement.arena_halves * 2, " bytes"));
    }
    absl::Status status = Walk(program, request, memory);
    program.GiveBack(std::move(memory));
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
    const Network& network = program.network;
    Half* const arena = memory.arena.get();
    for (const auto& use : memory.reads) *use.data = program.At(use.place, arena, &request);
    for (const auto& use : memory.writes) *use.data = program.At(use.place, arena, &request);
    for (size_t i = 0; i < network.inputs.size(); ++i) {
      if (program.placement.inputs[i].in == Slot::In::kInput) continue;
      const SurfaceLayout& layout = program.inputs()[i].layout;
      Stage(program, layout, request.inputs[i],
            program.At(program.placement.inputs[i], arena, &request));
    }
    for (size_t i = 0; i < program.chains.size(); ++i) {
      const std::vector<UnitCall>& calls = memory.calls[i];
      ANEMONE_RETURN_IF_ERROR(
          CheckTime(Phase::kRun, [&] { return absl::StrCat("unit '", calls[0].unit->name, "'"); }));
      absl::Time start = request.on_unit != nullptr ? absl::Now() : absl::Time();
      if (program.exact && request.on_values == nullptr) {
        RunExact(program, program.chains[i][0].unit, request, calls[0]);
      } else {
        RunChain(calls);
      }
      if (request.on_unit != nullptr) {
        (*request.on_unit)(calls[0].unit->name, calls[0].unit->kind->type, absl::Now() - start);
      }
      if (request.on_values != nullptr) {
        const UnitCall& call = calls[0];
        (*request.on_values)({*call.unit, call.in, {call.out.dims, call.out.data}});
      }
    }
    for (size_t i = 0; i < network.outputs.size(); ++i) {
      if (program.placement.direct_outputs[i]) continue;
      const SurfaceLayout& layout = program.outputs()[i].layout;
      math::ConvertStrided(layout.dims.extent,
                           program.At(program.SlotOf(network.outputs[i].from), arena, &request),
                           math::DenseLayout(math::Element::kHalf, layout.dims.extent),
                           request.outputs[i], MathLayout(layout));
    }
    return absl::OkStatus();
  }

  SoftwareOptions options_;
};

}  // namespace

ProgramMemory EstimateMemory(const Network& network, Route route, const SoftwareOptions& options) {
  constexpr int64_t kBytes = sizeof(Half);
  ProgramMemory memory;
  for (const Constant& constant : network.constants) {
    memory.weights += constant.dims.elements() * kBytes;
  }
  for (const Unit& unit : network.units) {
    for (const Tensor& weight : unit.weights) {
      memory.weights += weight.compressed() != nullptr ? weight.compressed()->stored_bytes()
                                                       : weight.elements() * kBytes;
    }
  }
  const Views views(network, {});  // slices are counted as if they were computed
  const std::vector<Chain> chains = FuseUnits(network, views, Fuses(options));
  memory.arena = PlacementOf(network, views, chains, route, options).arena_halves * kBytes;
  return memory;
}

std::unique_ptr<Device> MakeSoftwareDevice(const SoftwareOptions& options) {
  return std::make_unique<SoftwareDevice>(options);
}

}  // namespace anemone
