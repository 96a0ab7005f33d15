#include "provider/range_watch.h"

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/printable.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

absl::string_view TypeOf(const Unit& unit) { return unit.kind == nullptr ? "" : unit.kind->type; }

}  // namespace

absl::string_view ReaderOf(const Network& network, int input) {
  for (const Unit& unit : network.units) {
    for (const Operand& bottom : unit.bottoms) {
      if (bottom.source == Operand::Source::kInput && bottom.index == input) return TypeOf(unit);
    }
  }
  return "";
}

absl::string_view MakerOf(const Network& network, int output) {
  Operand from = network.outputs[output].from;
  while (from.source == Operand::Source::kUnit) {
    const Unit& unit = network.units[from.index];
    if (unit.kind == nullptr || !unit.kind->run.is_view || unit.bottoms.empty()) {
      return TypeOf(unit);
    }
    from = unit.bottoms[0];
  }
  return "";
}

std::string RangeWatch::Advice(absl::string_view unit) const {
  if (unit.empty()) return "";
  return absl::StrCat("; to keep ", unit, " off the engine, give ", option_, "refuse:", unit);
}

void RangeWatch::Input(const math::Tally& tally, int64_t elements, absl::string_view name,
                       absl::string_view unit) {
  if (tally.overflowed == 0 || input_told_.exchange(true)) return;
  warn_(absl::StrCat(tally.overflowed, " of ", elements, " values of '", Printable(name),
                     "' are above ", fp16::kLargest,
                     ", the largest number of fp16, and are infinite on the engine", Advice(unit)));
}

void RangeWatch::Output(const math::Tally& tally, int64_t elements, absl::string_view name,
                        absl::string_view unit) {
  if (tally.not_finite == 0 || output_told_.exchange(true)) return;
  warn_(absl::StrCat(tally.not_finite, " of ", elements, " values of '", Printable(name),
                     "' are not finite, because the engine computes in fp16 or because an input is "
                     "not; `anemone run --hazards` says where it starts",
                     Advice(unit)));
}

}  // namespace anemone
