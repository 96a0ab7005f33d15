#include "engine/software/code_grids.h"

#include <algorithm>
#include <cmath>

#include "math/elementwise/element_steps.h"

namespace anemone {
namespace {

using math::StepKind;

// Units that only move or select values keep them on their grid. Returns the operand before them.
Operand BehindMoves(const Network& network, Operand operand) {
  while (operand.source == Operand::Source::kUnit) {
    const Unit& unit = network.units[operand.index];
    const auto& run = unit.kind->run;
    if (!run.is_view && !run.permutation && !(run.selects && run.selects(unit.params.get()))) break;
    operand = unit.bottoms[0];
  }
  return operand;
}

// If a unit of this elementwise kind computes the operand: its step, and `operand` becomes what it
// reads.
std::optional<math::ElementStep> TakeStep(const Network& network,
                                          absl::Span<const Prepared> prepared, StepKind kind,
                                          Operand& operand) {
  if (operand.source != Operand::Source::kUnit) return std::nullopt;
  const Unit& unit = network.units[operand.index];
  if (!unit.kind->run.step) return std::nullopt;
  const UnitStep step = unit.kind->run.step(unit.params.get(), prepared[operand.index].get());
  if (step.step.kind != kind) return std::nullopt;
  operand = unit.bottoms[step.x];
  return step.step;
}

}  // namespace

std::optional<math::CodeGrid> CodeGridOf(const Network& network,
                                         absl::Span<const Prepared> prepared,
                                         const Operand& operand) {
  constexpr float kMostCode = 255;
  Operand at = BehindMoves(network, operand);
  const auto scaled = TakeStep(network, prepared, StepKind::kAffine, at);
  if (!scaled || scaled->firsts != nullptr || scaled->second != 0) return std::nullopt;
  if (!TakeStep(network, prepared, StepKind::kRound, at)) return std::nullopt;
  const auto clamped = TakeStep(network, prepared, StepKind::kClamp, at);
  if (!clamped) return std::nullopt;
  const float low = clamped->first, high = clamped->second;
  const bool is_grid = std::trunc(low) == low && low <= 0 && high >= 0 && high - low <= kMostCode;
  // Half has a value for each code only if values are not subnormal and not infinite.
  constexpr float kLeastScale = 0x1p-14f, kMostValue = 65504;
  const bool has_halves = scaled->first >= kLeastScale &&
                          scaled->first * std::max(-low, std::round(high)) <= kMostValue;
  if (!is_grid || !has_halves) return std::nullopt;
  return math::CodeGrid{scaled->first, static_cast<int>(low)};
}

}  // namespace anemone
