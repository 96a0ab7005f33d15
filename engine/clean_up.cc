// CleanUp(Network) removes units that only change layouts. Each lowering converts its operands to
// the layout of its unit and the result back, so neighboring lowerings leave pairs that undo each
// other.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/network.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

bool IsUnit(const Operand& operand) { return operand.source == Operand::Source::kUnit; }

const Unit* UnitOf(const Network& network, const Operand& operand) {
  return IsUnit(operand) ? &network.units[operand.index] : nullptr;
}

std::optional<Permutation> PermutationOf(const Unit& unit) {
  if (!unit.kind->run.permutation) return std::nullopt;
  return unit.kind->run.permutation(unit.params.get());
}

bool IsIdentity(const Permutation& p) {
  for (int i = 0; i < kAxisCount; ++i) {
    if (p[i] != static_cast<Axis>(i)) return false;
  }
  return true;
}

// The permutation that does `first`, then `second`.
Permutation Compose(const Permutation& first, const Permutation& second) {
  Permutation both;
  for (int i = 0; i < kAxisCount; ++i) both[i] = first[static_cast<int>(second[i])];
  return both;
}

// The operand that can replace `unit`, if the unit does nothing.
std::optional<Operand> Shortcut(const Network& network, Unit& unit) {
  if (unit.kind->run.is_view) {
    const Unit* below = UnitOf(network, unit.bottoms[0]);
    if (below != nullptr && below->kind->run.is_view) unit.bottoms[0] = below->bottoms[0];
    if (network.DimsOf(unit.bottoms[0]) == unit.dims) return unit.bottoms[0];
    return std::nullopt;
  }
  auto permutation = PermutationOf(unit);
  if (!permutation) return std::nullopt;
  if (IsIdentity(*permutation)) return unit.bottoms[0];
  const Unit* below = UnitOf(network, unit.bottoms[0]);
  if (below == nullptr) return std::nullopt;
  auto first = PermutationOf(*below);
  if (first && IsIdentity(Compose(*first, *permutation))) return below->bottoms[0];
  return std::nullopt;
}

bool ReadsImage(const Network& network, const Unit& unit) {
  return unit.bottoms.size() == 1 && unit.weights.empty() &&
         unit.bottoms[0].source == Operand::Source::kInput &&
         network.inputs[unit.bottoms[0].index].format == Format::kUInt8;
}

// Finds units that only change the layout, or convert a uint8 port, and do the same to the same
// operand. The lowerings of several readers of one value add such duplicates.
class Layouts {
 public:
  // The first unit so far that does what unit `index` does: perhaps itself. nullopt: the unit is of
  // another kind.
  std::optional<Operand> FirstLike(const Network& network, int index) {
    const Unit& unit = network.units[index];
    const bool is_layout = unit.kind->run.is_view || PermutationOf(unit);
    if (!is_layout && !ReadsImage(network, unit)) return std::nullopt;
    const Operand& from = unit.bottoms[0];
    const Key key(unit.kind, from.source, from.index, unit.dims.extent);
    for (auto [it, end] = seen_.equal_range(key); it != end; ++it) {
      if (ParamsOf(network, it->second) == ParamsOf(network, index)) {
        return Operand{Operand::Source::kUnit, it->second};
      }
    }
    seen_.emplace(key, index);
    return Operand{Operand::Source::kUnit, index};
  }

 private:
  using Key = std::tuple<const UnitKind*, Operand::Source, int, decltype(Dims::extent)>;

  static std::string ParamsOf(const Network& network, int index) {
    const Unit& unit = network.units[index];
    return unit.kind->Write(unit.params.get()).dump();
  }

  std::multimap<Key, int> seen_;  // units
};

// If the only reader of a convolution adds one constant per channel, the constant becomes the bias
// of the convolution. The result is rounded once instead of twice, as in the engine's compiler
// (conflicts.md C-conv-bias). The adding unit is then not read any more.
void FoldBiases(Network& network) {
  const std::vector<int> readers = CountReaders(network);
  std::vector<Operand> stands_for(network.units.size());
  auto resolve = [&](Operand& operand) {
    if (IsUnit(operand)) operand = stands_for[operand.index];
  };
  for (size_t i = 0; i < network.units.size(); ++i) {
    Unit& unit = network.units[i];
    std::for_each(unit.bottoms.begin(), unit.bottoms.end(), resolve);
    stands_for[i] = {Operand::Source::kUnit, static_cast<int>(i)};
    if (unit.bottoms.size() != 2) continue;
    const int added =
        unit.kind->fuse.added_constant.Or(-1, unit.params.get(), network.BottomsOf(unit));
    if (added < 0 || !IsUnit(unit.bottoms[1 - added])) continue;
    const int index = unit.bottoms[1 - added].index;
    Unit& below = network.units[index];
    if (!below.kind->fuse.takes_bias || below.weights.size() != 1 || readers[index] != 1 ||
        below.dims != unit.dims) {
      continue;
    }
    const Tensor& bias = network.constants[unit.bottoms[added].index].tensor;
    below.weights.push_back(bias.Reshaped({bias.elements()}));
    stands_for[i] = unit.bottoms[1 - added];
  }
  for (OutputPort& port : network.outputs) resolve(port.from);
}

// Removes constants that no unit and no output reads, and renumbers the others.
void DropUnreadConstants(Network& network) {
  std::vector<int> moved(network.constants.size(), -1);
  std::vector<Constant> kept;
  const auto keep = [&](Operand& operand) {
    if (operand.source != Operand::Source::kConstant) return;
    int& index = moved[operand.index];
    if (index < 0) {
      index = static_cast<int>(kept.size());
      kept.push_back(std::move(network.constants[operand.index]));
    }
    operand.index = index;
  };
  for (Unit& unit : network.units) std::for_each(unit.bottoms.begin(), unit.bottoms.end(), keep);
  for (OutputPort& port : network.outputs) keep(port.from);
  network.constants = std::move(kept);
}

// Removes units that no output depends on, and renumbers the others.
void DropUnread(Network& network) {
  std::vector<bool> read(network.units.size());
  for (const OutputPort& port : network.outputs) {
    if (IsUnit(port.from)) read[port.from.index] = true;
  }
  for (int i = static_cast<int>(network.units.size()) - 1; i >= 0; --i) {
    if (!read[i]) continue;
    for (const Operand& operand : network.units[i].bottoms) {
      if (IsUnit(operand)) read[operand.index] = true;
    }
  }
  std::vector<int> moved(network.units.size(), -1);
  std::vector<Unit> kept;
  for (size_t i = 0; i < network.units.size(); ++i) {
    if (!read[i]) continue;
    moved[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(network.units[i]));
  }
  auto renumber = [&](Operand& operand) {
    if (IsUnit(operand)) operand.index = moved[operand.index];
  };
  for (Unit& unit : kept) std::for_each(unit.bottoms.begin(), unit.bottoms.end(), renumber);
  for (OutputPort& port : network.outputs) renumber(port.from);
  network.units = std::move(kept);
}

}  // namespace

void CleanUp(Network& network) {
  std::vector<Operand> stands_for(network.units.size());
  Layouts layouts;
  auto resolve = [&](Operand& operand) {
    if (IsUnit(operand)) operand = stands_for[operand.index];
  };
  for (size_t i = 0; i < network.units.size(); ++i) {
    Unit& unit = network.units[i];
    std::for_each(unit.bottoms.begin(), unit.bottoms.end(), resolve);
    Operand self{Operand::Source::kUnit, static_cast<int>(i)};
    stands_for[i] = self;
    if (auto shortcut = Shortcut(network, unit)) {
      stands_for[i] = *shortcut;
    } else if (const auto first = layouts.FirstLike(network, self.index)) {
      stands_for[i] = *first;
    }
  }
  for (OutputPort& port : network.outputs) resolve(port.from);
  FoldBiases(network);
  DropUnread(network);
  DropUnreadConstants(network);
}

}  // namespace anemone
