#include "engine/software/unit_program.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/constant_id.h"
#include "engine/repeats.h"
#include "engine/software/code_grids.h"
#include "engine/software/part_reads.h"
#include "engine/unit_kind.h"
#include "math/core/shared_pack.h"

namespace anemone {
namespace {

using math::Half;

// Releases the mapped pages of a constant: the program has its own copy in another form.
void DropPages(const Tensor& constant) {
  if (constant.compressed() == nullptr) MappedFile::GiveBack(constant.bytes());
}

// Products use the grids of their operands.
bool ReadsGrids(const Unit& unit) { return static_cast<bool>(unit.kind->macs); }

// Whether the operands of two units that are otherwise equal have equal grids.
bool SameGrids(const Network& network, absl::Span<const Prepared> prepared, const Unit& a,
               const Unit& b) {
  const auto same = [&](const Operand& x, const Operand& y) {
    return CodeGridOf(network, prepared, x) == CodeGridOf(network, prepared, y);
  };
  return !ReadsGrids(a) ||
         std::equal(a.bottoms.begin(), a.bottoms.end(), b.bottoms.begin(), b.bottoms.end(), same);
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
    if (before >= 0 && SameWeights(unit, network.units[before]) &&
        SameGrids(network, all, unit, network.units[before])) {
      all.push_back(all[before]);
      continue;
    }
    if (!unit.kind->computes()) {
      return absl::UnimplementedError(
          absl::StrCat("unit '", unit.name, "': ", unit.kind->type, " can be checked but not run"));
    }
    ANEMONE_ASSIGN_OR_RETURN(Prepared prepared, PrepareUnit(network, unit, all));
    all.push_back(std::move(prepared));
    for (const Tensor& weight : unit.weights) DropPages(weight);
  }
  return all;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const HalfBuffer>> ToHalves(const Constant& constant) {
  const int64_t count = constant.dims.elements();
  auto halves = math::SharedPack<HalfBuffer>({.id = IdOf(constant.tensor), .layout = {count}}, [&] {
    HalfBuffer made = AllocateHalves(count);
    if (made != nullptr) {
      ReadHalves(constant.tensor, 0, {made.get(), static_cast<size_t>(count)});
    }
    return made;
  });
  if (*halves == nullptr) return absl::ResourceExhaustedError("constant: out of memory");
  return halves;
}

absl::StatusOr<Prepared> PrepareUnit(const Network& network, const Unit& unit,
                                     absl::Span<const Prepared> prepared) {
  std::vector<Bottom> bottoms = network.BottomsOf(unit);
  if (ReadsGrids(unit)) {
    for (size_t i = 0; i < bottoms.size(); ++i) {
      bottoms[i].grid = CodeGridOf(network, prepared, unit.bottoms[i]);
    }
  }
  auto made = unit.kind->Prepare(unit.params.get(), bottoms, unit.weights);
  if (made.ok()) return made;
  return absl::Status(made.status().code(),
                      absl::StrCat("unit '", unit.name, "': ", made.status().message()));
}

absl::Status UnitProgram::Prepare(const Network& from) {
  network = std::make_shared<Network>(from);
  for (const Constant& constant : network->constants) {
    // Units that use indices prepare them from the tensor; other readers get them as fp16 numbers.
    if (!IsEngineConstant(constant.tensor.type()) && constant.tensor.type() != DataType::kUInt16) {
      return absl::UnimplementedError(absl::StrCat(
          "a constant of ", DataTypeName(constant.tensor.type()), " can be checked but not run"));
    }
    ANEMONE_ASSIGN_OR_RETURN(auto halves, ToHalves(constant));
    DropPages(constant.tensor);
    constants.push_back(std::move(halves));
  }
  ANEMONE_ASSIGN_OR_RETURN(prepared, PrepareUnits(*network));
  return absl::OkStatus();
}

void UnitProgram::Place(absl::Span<const ProgramPort> inputs, absl::Span<const ProgramPort> outputs,
                        bool fuses, bool inputs_in_place) {
  if (fuses) ReadParts(*network, prepared);
  Views views(*network, fuses ? absl::MakeConstSpan(prepared) : absl::Span<const Prepared>());
  std::vector<Chain> chains = FuseUnits(*network, views, fuses);
  SlotPlan placement = PlaceTensors(*network, views, chains, inputs, outputs, inputs_in_place);
  order = std::make_shared<const Order>(
      Order{std::move(views), std::move(chains), std::move(placement)});
}

Slot UnitProgram::SlotOf(const Operand& operand) const {
  const Root root = order->views.RootOf(operand);
  const int index = root.operand.index;
  Slot place = {Slot::In::kConstant, index};
  if (root.operand.source == Operand::Source::kInput) place = order->placement.inputs[index];
  if (root.operand.source == Operand::Source::kUnit) place = order->placement.units[index];
  place.offset += root.offset;
  return place;
}

Half* UnitProgram::At(const Slot& place, Half* arena, const Request* request) const {
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

void UnitProgram::SetPorts(RunMemory& memory, const Request& request) const {
  Half* const arena = memory.arena.data.get();
  for (const auto& use : memory.reads) *use.data = At(use.place, arena, &request);
  for (const auto& use : memory.writes) *use.data = At(use.place, arena, &request);
}

RunMemory UnitProgram::TakeMemory() const {
  std::optional<RunMemory> idle = idle_.Take();
  Arena arena = arenas->Take(order->placement.arena_halves, idle ? idle->in : nullptr);
  if (!idle || idle->of != number_.value || idle->in != arena.data.get()) {
    return MakeMemory(std::move(arena));
  }
  idle->arena = std::move(arena);
  return *std::move(idle);
}

void UnitProgram::GiveBack(RunMemory memory) const {
  arenas->GiveBack(std::move(memory.arena));
  idle_.GiveBack(std::move(memory));
}

RunMemory UnitProgram::MakeMemory(Arena taken) const {
  Half* const arena = taken.data.get();
  RunMemory memory = {.arena = std::move(taken), .of = number_.value, .in = arena};
  if (arena == nullptr) return memory;
  const auto set = [&](auto& view, const Dims& dims, const Slot& place, auto& uses) {
    view.dims = dims;
    if (place.in == Slot::In::kInput || place.in == Slot::In::kOutput) {
      uses.push_back({&view.data, place});
    } else {
      view.data = At(place, arena, nullptr);
    }
  };
  for (const Chain& chain : order->chains) {
    std::vector<UnitCall>& calls = memory.calls.emplace_back(chain.size());
    for (size_t i = 0; i < chain.size(); ++i) {
      const Unit& unit = network->units[chain[i].unit];
      UnitCall& call = calls[i];
      call.unit = &unit;
      call.prepared = prepared[chain[i].unit].get();
      call.is_inner = chain[i].is_inner;
      call.in.resize(unit.bottoms.size());
      for (size_t k = 0; k < call.in.size(); ++k) {
        const Operand& operand = unit.bottoms[k];
        set(call.in[k], network->DimsOf(operand), SlotOf(operand), memory.reads);
      }
      set(call.out, unit.dims, order->placement.units[chain[i].unit], memory.writes);
    }
  }
  return memory;
}

}  // namespace anemone
