#include "engine/software/exact_plan.h"

#include <algorithm>
#include <utility>

namespace anemone {
namespace {

// The unit that computes the first bottom of `unit`, if no other unit or output reads it; else -1.
// x * x reads x twice, but is one reader.
int OnlySource(const Unit& unit, const std::vector<int>& readers) {
  const Operand& operand = unit.bottoms[0];
  if (operand.source != Operand::Source::kUnit) return -1;
  const auto own = std::count(unit.bottoms.begin(), unit.bottoms.end(), operand);
  return readers[operand.index] == own ? operand.index : -1;
}

}  // namespace

std::vector<ExactStep> PlanExact(const Network& network, const math::Numerics& numerics) {
  const std::vector<int> readers = CountReaders(network);
  std::vector<ExactStep> steps(network.units.size());
  for (size_t i = 0; i < network.units.size(); ++i) {
    const Unit& unit = network.units[i];
    if (unit.bottoms.empty()) continue;
    const Operand& bottom = unit.bottoms[0];
    if (bottom.source == Operand::Source::kInput) {
      steps[i].is_image = network.inputs[bottom.index].format == Format::kUInt8;
      if (unit.kind->exact.reads_port) steps[i].port = bottom.index;
    }
    const int source = OnlySource(unit, readers);
    if (source < 0) continue;
    const Unit& before = network.units[source];
    if (unit.kind->fuse.takes_squares.Or(false, unit.params.get(), numerics) &&
        before.kind->fuse.squares.Or(false, before.params.get(), before.bottoms)) {
      steps[i].squares = true;
      steps[source].passes_on = true;
    }
    // A unit takes at most one epilogue.
    if (steps[source].epilogue ||
        !before.kind->fuse.takes_epilogue.Or(false, before.params.get(), numerics)) {
      continue;
    }
    std::optional<GainOffset> epilogue =
        unit.kind->fuse.epilogue.Or(std::nullopt, unit.params.get(), unit.weights);
    // Only units that take a bias per channel take an epilogue with one gain per channel.
    if (!epilogue || (epilogue->gain.size() > 1 && !before.kind->fuse.takes_bias)) continue;
    steps[source].epilogue = std::move(epilogue);
    steps[i].passes_on = true;
  }
  return steps;
}

}  // namespace anemone
