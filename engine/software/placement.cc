#include "engine/software/placement.h"

#include <algorithm>
#include <utility>

#include "engine/software/memory_plan.h"
#include "engine/software/part_reads.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

class Placer {
 public:
  Placer(const Network& network, const Views& views, absl::Span<const Chain> chains)
      : network_(network),
        views_(views),
        runs_(network.units.size(), -1),
        owner_(network.units.size(), -1),
        port_(network.units.size(), -1),
        whole_(network.units.size(), -1),
        offset_(network.units.size()),
        block_(network.units.size(), -1) {
    for (const Chain& chain : chains) {
      for (const Link& link : chain) {
        runs_[link.unit] = chain.back().unit;
        owner_[link.unit] = link.place;
      }
    }
  }

  SlotPlan Run(absl::Span<const ProgramPort> inputs, absl::Span<const ProgramPort> outputs,
               bool inputs_in_place) {
    PlaceOutputs(outputs);
    for (int i = 0; i < Count(); ++i) Join(i);
    AddBlocks();
    PlaceInputs(inputs, inputs_in_place);
    for (int i = 0; i < Count(); ++i) {
      for (const Operand& operand : network_.units[i].bottoms) Read(operand, std::max(runs_[i], i));
    }
    for (const OutputPort& port : network_.outputs) Read(port.from, Count());
    placement_.arena_halves = plan_.Pack();
    for (int i = 0; i < Count(); ++i) {
      placement_.units.push_back(owner_[i] < 0 ? Slot() : SlotOf(owner_[i]));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (input_block_[i] >= 0) placement_.inputs[i].offset = plan_.offset(input_block_[i]);
    }
    return std::move(placement_);
  }

 private:
  int Count() const { return static_cast<int>(network_.units.size()); }
  bool Owns(int unit) const { return owner_[unit] == unit; }

  void PlaceOutputs(absl::Span<const ProgramPort> outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Operand root = views_.RootOf(network_.outputs[i].from).operand;
      const bool direct = root.source == Operand::Source::kUnit && port_[root.index] < 0 &&
                          outputs[i].layout.is_dense();
      placement_.direct_outputs.push_back(direct);
      if (direct) port_[root.index] = static_cast<int>(i);
    }
  }

  // If unit `i` concatenates its operands, places them inside its output.
  void Join(int i) {
    const Unit& unit = network_.units[i];
    if (IsUnread(unit)) return;
    if (!unit.kind->run.joins.Or(false, unit.params.get(), network_.BottomsOf(unit))) return;
    int64_t offset = 0;
    for (const Operand& operand : unit.bottoms) {
      const bool alone = std::count(unit.bottoms.begin(), unit.bottoms.end(), operand) == 1;
      if (operand.source == Operand::Source::kUnit && alone && Owns(operand.index) &&
          port_[operand.index] < 0 && whole_[operand.index] < 0) {
        whole_[operand.index] = i;
        offset_[operand.index] = offset;
      }
      offset += network_.DimsOf(operand).elements();
    }
  }

  // The unit whose output contains that of `unit`. Adds the position inside it to `offset`.
  int WholeOf(int unit, int64_t& offset) const {
    for (; whole_[unit] >= 0; unit = whole_[unit]) offset += offset_[unit];
    return unit;
  }

  void AddBlocks() {
    std::vector<int> born(Count(), Count());
    for (int i = 0; i < Count(); ++i) {
      int64_t offset = 0;
      if (!Owns(i)) continue;
      const int whole = WholeOf(i, offset);
      born[whole] = std::min(born[whole], i);
    }
    for (int i = 0; i < Count(); ++i) {
      if (!Owns(i) || whole_[i] >= 0 || port_[i] >= 0) continue;
      block_[i] = plan_.Add(network_.units[i].dims.elements(), born[i]);
      plan_.Extend(block_[i], runs_[i]);
    }
  }

  void PlaceInputs(absl::Span<const ProgramPort> inputs, bool inputs_in_place) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const SurfaceLayout& layout = inputs[i].layout;
      const bool in_place =
          inputs_in_place && layout.is_dense() && layout.format == Format::kFloat16;
      input_block_.push_back(in_place ? -1 : plan_.Add(layout.dims.elements(), -1));
      placement_.inputs.push_back(
          {in_place ? Slot::In::kInput : Slot::In::kArena, static_cast<int64_t>(i)});
    }
  }

  void Read(const Operand& operand, int when) {
    const Operand root = views_.RootOf(operand).operand;
    int block = -1;
    if (root.source == Operand::Source::kInput) block = input_block_[root.index];
    if (root.source == Operand::Source::kUnit) {
      int64_t offset = 0;
      block = block_[WholeOf(owner_[root.index], offset)];
    }
    if (block >= 0) plan_.Extend(block, when);
  }

  Slot SlotOf(int unit) const {
    int64_t offset = 0;
    const int whole = WholeOf(unit, offset);
    if (port_[whole] >= 0) return {Slot::In::kOutput, port_[whole], offset};
    return {Slot::In::kArena, -1, plan_.offset(block_[whole]) + offset};
  }

  const Network& network_;
  const Views& views_;
  std::vector<int> runs_;        // by unit: the last unit of its chain; -1 for a view
  std::vector<int> owner_;       // by unit: the unit to whose place it writes; -1 for a view
  std::vector<int> port_;        // by unit: the output port that it writes, or -1
  std::vector<int> whole_;       // by unit: the unit whose output contains it, or -1
  std::vector<int64_t> offset_;  // by unit: its position in the output of `whole_`
  std::vector<int> block_;       // by unit: its block of the plan, or -1
  std::vector<int> input_block_;
  MemoryPlan plan_;
  SlotPlan placement_;
};

}  // namespace

SlotPlan PlaceTensors(const Network& network, const Views& views, absl::Span<const Chain> chains,
                      absl::Span<const ProgramPort> inputs, absl::Span<const ProgramPort> outputs,
                      bool inputs_in_place) {
  return Placer(network, views, chains).Run(inputs, outputs, inputs_in_place);
}

}  // namespace anemone
