#include "kernels/shared/clamps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/activation/neuron.h"

namespace anemone {
namespace {

bool NeedsFiniteInput(const Unit& unit) {
  const absl::string_view type = unit.kind->type;
  return type == "Softmax" || type == "LayerNormalization";
}

}  // namespace

void ClampActivations(Network& network) {
  std::vector<Unit> units;
  std::vector<int> moved(network.units.size());  // by old index: the new one
  std::vector<bool> is_clamp;                    // by new index
  const auto follow = [&](Operand& operand) {
    if (operand.source == Operand::Source::kUnit) operand.index = moved[operand.index];
  };
  for (size_t i = 0; i < network.units.size(); ++i) {
    Unit& unit = network.units[i];
    for (Operand& bottom : unit.bottoms) follow(bottom);
    if (NeedsFiniteInput(unit)) {
      Operand& x = unit.bottoms[0];
      const bool is_unit = x.source == Operand::Source::kUnit;
      if (x.source != Operand::Source::kConstant && !(is_unit && is_clamp[x.index])) {
        const Dims dims = is_unit ? units[x.index].dims : network.DimsOf(x);
        units.push_back(FiniteUnit(x, dims));
        is_clamp.push_back(true);
        x = {Operand::Source::kUnit, static_cast<int>(units.size()) - 1};
      }
    }
    moved[i] = static_cast<int>(units.size());
    units.push_back(std::move(unit));
    is_clamp.push_back(false);
  }
  for (OutputPort& port : network.outputs) follow(port.from);
  network.units = std::move(units);
}

bool HidesSoftmax(const Network& network) {
  return std::any_of(network.units.begin(), network.units.end(),
                     [](const Unit& unit) { return absl::string_view(unit.kind->type) == "SDPA"; });
}

}  // namespace anemone
