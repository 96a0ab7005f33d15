// The software engine (engine/device.h). Compile asks CheckNetwork, prepares every unit's constants
// and plans one arena for all intermediate tensors; Run walks the units.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "engine/device.h"
#include "engine/math/convert.h"
#include "engine/math/half.h"
#include "engine/software/exact_plan.h"
#include "engine/software/memory_plan.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

using math::Half;

struct AlignedFree {
  void operator()(Half* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<Half[], AlignedFree>;

Buffer AllocateHalves(int64_t count) {
  constexpr size_t kAlign = 64;
  size_t bytes = (std::max<int64_t>(count, 1) * sizeof(Half) + kAlign - 1) / kAlign * kAlign;
  return Buffer(static_cast<Half*>(std::aligned_alloc(kAlign, bytes)));
}

// Where a tensor lies during a run.
struct Place {
  enum class In : uint8_t { kArena, kConstant, kInput, kOutput };
  In in = In::kArena;
  int64_t index = 0;  // offset in halves, or the number of the constant or port
};

class SoftwareProgram final : public Program {
 public:
  Network network;  // without its weights once they are prepared, but in exact mode
  std::optional<math::Numerics> exact;
  std::vector<ExactStep> steps;  // by unit, in exact mode
  std::vector<Prepared> prepared;
  std::vector<Buffer> constants;
  std::vector<Place> units;          // by unit
  std::vector<Place> staged_inputs;  // by port: kInput if read in place
  std::vector<bool> direct_outputs;  // by port: the producing unit writes into it
  int64_t arena_halves = 0;

  void set_ports(std::vector<ProgramPort> inputs, std::vector<ProgramPort> outputs) {
    inputs_ = std::move(inputs);
    outputs_ = std::move(outputs);
  }

  // Arenas are kept for the next run; there are as many as runs that overlapped.
  Buffer TakeArena() const {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return AllocateHalves(arena_halves);
    Buffer arena = std::move(free_.back());
    free_.pop_back();
    return arena;
  }
  void GiveBack(Buffer arena) const {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(arena));
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<Buffer> free_;
};

absl::StatusOr<Buffer> ToHalves(const Constant& constant) {
  int64_t count = constant.dims.elements();
  Buffer halves = AllocateHalves(count);
  if (halves == nullptr) return absl::ResourceExhaustedError("constant: out of memory");
  ReadHalves(constant.tensor, 0, {halves.get(), static_cast<size_t>(count)});
  return halves;
}

std::vector<ProgramPort> InputPorts(const Network& network) {
  std::vector<ProgramPort> ports;
  for (const InputPort& p : network.inputs) ports.push_back({p.name, LayoutOf(p.dims, p.format)});
  return ports;
}

std::vector<ProgramPort> OutputPorts(const Network& network) {
  std::vector<ProgramPort> ports;
  for (const OutputPort& p : network.outputs) {
    ports.push_back({p.name, LayoutOf(network.DimsOf(p.from), Format::kFloat16)});
  }
  return ports;
}

// Follows views down to the operand that owns the bytes.
Operand RootOf(const Network& network, Operand operand) {
  while (operand.source == Operand::Source::kUnit && network.units[operand.index].kind->is_view()) {
    operand = network.units[operand.index].bottoms[0];
  }
  return operand;
}

// Decides where every tensor lies: ports in place where their rows are dense, the rest in one
// arena in which tensors whose lives do not meet share bytes.
void PlanMemory(SoftwareProgram& program) {
  const Network& network = program.network;
  MemoryPlan plan;
  int end = static_cast<int>(network.units.size());
  std::vector<int> unit_block(network.units.size(), -1);
  std::vector<int> input_block(network.inputs.size(), -1);

  program.units.resize(network.units.size());
  program.direct_outputs.resize(network.outputs.size());
  std::vector<bool> placed(network.units.size());
  for (size_t i = 0; i < network.outputs.size(); ++i) {
    Operand root = RootOf(network, network.outputs[i].from);
    if (root.source != Operand::Source::kUnit || placed[root.index]) continue;
    if (!program.outputs()[i].layout.is_dense()) continue;
    placed[root.index] = true;
    program.direct_outputs[i] = true;
    program.units[root.index] = {Place::In::kOutput, static_cast<int64_t>(i)};
  }
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    const SurfaceLayout& layout = program.inputs()[i].layout;
    // In exact mode a port's numbers are not those outside: see Stage().
    bool in_place = layout.is_dense() && layout.format == Format::kFloat16 && !program.exact;
    program.staged_inputs.push_back(
        {in_place ? Place::In::kInput : Place::In::kArena, static_cast<int64_t>(i)});
    if (!in_place) input_block[i] = plan.Add(layout.dims.elements(), -1);
  }
  auto extend = [&](const Operand& operand, int when) {
    Operand root = RootOf(network, operand);
    int block = root.source == Operand::Source::kUnit    ? unit_block[root.index]
                : root.source == Operand::Source::kInput ? input_block[root.index]
                                                         : -1;
    if (block >= 0) plan.Extend(block, when);
  };
  for (int i = 0; i < end; ++i) {
    const Unit& unit = network.units[i];
    if (!unit.kind->is_view() && !placed[i]) unit_block[i] = plan.Add(unit.dims.elements(), i);
    for (const Operand& operand : unit.bottoms) extend(operand, i);
  }
  for (const OutputPort& port : network.outputs) extend(port.from, end);

  program.arena_halves = plan.Pack();
  for (size_t i = 0; i < input_block.size(); ++i) {
    if (input_block[i] >= 0) program.staged_inputs[i].index = plan.offset(input_block[i]);
  }
  for (int i = 0; i < end; ++i) {
    if (unit_block[i] >= 0) program.units[i] = {Place::In::kArena, plan.offset(unit_block[i])};
  }
}

// What the engine answers where IEEE has no number (numerics.json st-nan-gen).
void ReplaceNan(View view) {
  for (Half& half : view.span()) {
    if (math::IsNan(half)) half = math::kHalfZero;
  }
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
    if (options_.exact) {
      program->exact = options_.numerics ? *options_.numerics : math::NumericsOf(target.family());
    }
    for (const Constant& constant : network.constants) {
      if (constant.tensor.type() == DataType::kUInt16) {
        program->constants.push_back(nullptr);  // an index table: its unit prepares it
        continue;
      }
      if (!IsEngineConstant(constant.tensor.type())) {
        return absl::UnimplementedError(absl::StrCat(
            "a constant of ", DataTypeName(constant.tensor.type()), ": judged, but not run"));
      }
      ANEMONE_ASSIGN_OR_RETURN(Buffer halves, ToHalves(constant));
      program->constants.push_back(std::move(halves));
    }
    for (const Unit& unit : network.units) {
      if (!unit.kind->computes()) {
        return absl::UnimplementedError(absl::StrCat("unit '", unit.name, "': ", unit.kind->type(),
                                                     " is judged, but not run by this device"));
      }
      auto prepared = unit.kind->Prepare(unit.params.get(), network.BottomsOf(unit), unit.weights);
      if (!prepared.ok()) {
        return absl::Status(prepared.status().code(),
                            absl::StrCat("unit '", unit.name, "': ", prepared.status().message()));
      }
      program->prepared.push_back(*std::move(prepared));
    }
    if (program->exact) {
      program->steps = PlanExact(network, *program->exact);
    } else {
      for (Unit& unit : program->network.units) unit.weights.clear();
    }
    for (Constant& constant : program->network.constants) constant.tensor = Tensor();
    program->set_ports(InputPorts(network), OutputPorts(network));
    PlanMemory(*program);
    return program;
  }

  absl::Status Run(const Program& base, const Request& request) override {
    const auto& program = static_cast<const SoftwareProgram&>(base);
    Buffer arena = program.TakeArena();
    if (arena == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("run: cannot have ", program.arena_halves * 2, " bytes"));
    }
    Walk(program, request, arena.get());
    program.GiveBack(std::move(arena));
    return absl::OkStatus();
  }

 private:
  static Half* At(const SoftwareProgram&, const Place& place, const Request& request, Half* arena) {
    switch (place.in) {
      case Place::In::kInput:
        return reinterpret_cast<Half*>(const_cast<std::byte*>(request.inputs[place.index]));
      case Place::In::kOutput:
        return reinterpret_cast<Half*>(request.outputs[place.index]);
      default:
        return arena + place.index;
    }
  }

  static const Half* Read(const SoftwareProgram& program, const Operand& operand,
                          const Request& request, Half* arena) {
    Operand root = RootOf(program.network, operand);
    switch (root.source) {
      case Operand::Source::kConstant:
        return program.constants[root.index].get();
      case Operand::Source::kInput:
        return At(program, program.staged_inputs[root.index], request, arena);
      default:
        return At(program, program.units[root.index], request, arena);
    }
  }

  // A port's numbers as the units see them: in exact mode no NaN (numerics.json st-nan-in), and no
  // -0 where the sign of a zero is dropped everywhere (st-zero).
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

  static void RunExact(const SoftwareProgram& program, size_t i, const Request& request,
                       absl::Span<const ConstView> in, View out) {
    const Unit& unit = program.network.units[i];
    const ExactStep& step = program.steps[i];
    if (step.passes_on) {
      std::copy(in[0].span().begin(), in[0].span().end(), out.data);
    } else if (!unit.kind->has_exact()) {
      unit.kind->Compute(unit.params.get(), program.prepared[i].get(), in, out);
      ReplaceNan(out);
    } else {
      ExactUnit exact = {*program.exact, unit.weights, program.prepared[i].get()};
      exact.epilogue = step.epilogue ? &*step.epilogue : nullptr;
      exact.squares = step.squares;
      exact.is_image = step.is_image;
      std::vector<Half> port;  // NaN and all
      if (step.port >= 0) {
        const SurfaceLayout& layout = program.inputs()[step.port].layout;
        port.resize(layout.dims.elements());
        math::ConvertStrided(layout.dims.extent, request.inputs[step.port], MathLayout(layout),
                             port.data(),
                             math::DenseLayout(math::Element::kHalf, layout.dims.extent));
        exact.port = port.data();
      }
      unit.kind->Exact(unit.params.get(), exact, in, out);
    }
  }

  static void Walk(const SoftwareProgram& program, const Request& request, Half* arena) {
    const Network& network = program.network;
    for (size_t i = 0; i < network.inputs.size(); ++i) {
      if (program.staged_inputs[i].in == Place::In::kInput) continue;
      const SurfaceLayout& layout = program.inputs()[i].layout;
      Half* staged = At(program, program.staged_inputs[i], request, arena);
      Stage(program, layout, request.inputs[i], staged);
    }
    std::vector<ConstView> in;
    for (size_t i = 0; i < network.units.size(); ++i) {
      const Unit& unit = network.units[i];
      if (unit.kind->is_view()) continue;
      in.clear();
      for (const Operand& operand : unit.bottoms) {
        in.push_back({network.DimsOf(operand), Read(program, operand, request, arena)});
      }
      absl::Time start = request.on_unit != nullptr ? absl::Now() : absl::Time();
      const View out{unit.dims, At(program, program.units[i], request, arena)};
      if (program.exact) {
        RunExact(program, i, request, in, out);
      } else {
        unit.kind->Compute(unit.params.get(), program.prepared[i].get(), in, out);
      }
      if (request.on_unit != nullptr) {
        (*request.on_unit)(unit.name, unit.kind->type(), absl::Now() - start);
      }
    }
    for (size_t i = 0; i < network.outputs.size(); ++i) {
      if (program.direct_outputs[i]) continue;
      const SurfaceLayout& layout = program.outputs()[i].layout;
      math::ConvertStrided(layout.dims.extent,
                           Read(program, network.outputs[i].from, request, arena),
                           math::DenseLayout(math::Element::kHalf, layout.dims.extent),
                           request.outputs[i], MathLayout(layout));
    }
  }

  SoftwareOptions options_;
};

}  // namespace

std::unique_ptr<Device> MakeSoftwareDevice(const SoftwareOptions& options) {
  return std::make_unique<SoftwareDevice>(options);
}

}  // namespace anemone
