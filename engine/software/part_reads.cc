#include "engine/software/part_reads.h"

#include <memory>
#include <utility>

namespace anemone {
namespace {

// A type of its own tells PartReads from the data of other kinds.
struct DeleteReads {
  void operator()(const PartReads* reads) const { delete reads; }
};

const Unit* UnitOf(const Network& network, const Operand& operand) {
  return operand.source == Operand::Source::kUnit ? &network.units[operand.index] : nullptr;
}

bool SwapsRows(const Unit& unit) {
  constexpr Permutation kSwap = {Axis::kN, Axis::kD, Axis::kH, Axis::kC, Axis::kW};
  return unit.kind->run.permutation && unit.kind->run.permutation(unit.params.get()) == kSwap;
}

// Whether the unit is a Concat of two along `axis`.
bool AppendsRows(const Network& network, const Unit& unit, Axis axis) {
  if (!unit.kind->run.joins || unit.bottoms.size() != 2) return false;
  Dims first = network.DimsOf(unit.bottoms[0]), second = network.DimsOf(unit.bottoms[1]);
  if (first[axis] + second[axis] != unit.dims[axis]) return false;
  first[axis] = second[axis] = unit.dims[axis];
  return first == unit.dims && second == unit.dims;
}

// Appends the operands of a bottom to `bottoms`.
void ReadPart(const Network& network, Operand operand, PartRead& read,
              std::vector<Operand>& bottoms) {
  const Unit* unit = read.is_readable ? UnitOf(network, operand) : nullptr;
  if (unit != nullptr && SwapsRows(*unit)) {
    read.swapped = true;
    operand = unit->bottoms[0];
    unit = UnitOf(network, operand);
  }
  if (unit != nullptr && AppendsRows(network, *unit, read.swapped ? Axis::kH : Axis::kC)) {
    read.split = true;
    bottoms.insert(bottoms.end(), unit->bottoms.begin(), unit->bottoms.end());
    return;
  }
  bottoms.push_back(operand);
}

void DropUnread(Network& network, const std::vector<int>& before) {
  std::vector<int> readers = CountReaders(network);
  for (size_t i = network.units.size(); i-- > 0;) {
    if (readers[i] > 0 || before[i] == 0) continue;
    for (const Operand& operand : network.units[i].bottoms) {
      if (operand.source == Operand::Source::kUnit) --readers[operand.index];
    }
    network.units[i].bottoms.clear();
  }
}

}  // namespace

Prepared MakePartReads(PartReads reads) {
  return Prepared(std::make_unique<const PartReads>(std::move(reads)).release(), DeleteReads());
}

const PartReads* AsPartReads(const Prepared& prepared) {
  if (std::get_deleter<DeleteReads>(prepared) == nullptr) return nullptr;
  return static_cast<const PartReads*>(prepared.get());
}

void ReadParts(Network& network, std::vector<Prepared>& prepared) {
  const std::vector<int> before = CountReaders(network);
  for (size_t i = 0; i < network.units.size(); ++i) {
    const PartReads* reads = AsPartReads(prepared[i]);
    if (reads == nullptr) continue;
    Unit& unit = network.units[i];
    PartReads found = *reads;
    std::vector<Operand> bottoms;
    for (size_t b = 0; b < unit.bottoms.size(); ++b) {
      PartRead other;
      ReadPart(network, unit.bottoms[b], b < found.size() ? found[b] : other, bottoms);
    }
    unit.bottoms = std::move(bottoms);
    prepared[i] = MakePartReads(std::move(found));
  }
  DropUnread(network, before);
}

}  // namespace anemone
