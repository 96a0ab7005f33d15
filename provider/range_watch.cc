#include "provider/range_watch.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/printable.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

// A unit is named after the value that its node computes, perhaps with '#' and a number.
WatchedNode NodeOf(const Unit& unit) {
  absl::string_view name = unit.name;
  const size_t mark = name.rfind('#');
  const bool is_numbered = mark != absl::string_view::npos && mark + 1 < name.size() &&
                           std::all_of(name.begin() + mark + 1, name.end(), absl::ascii_isdigit);
  return {"", std::string(is_numbered ? name.substr(0, mark) : name)};
}

}  // namespace

WatchedNode ReaderOf(const Network& network, int input) {
  for (const Unit& unit : network.units) {
    for (const Operand& bottom : unit.bottoms) {
      if (bottom.source == Operand::Source::kInput && bottom.index == input) return NodeOf(unit);
    }
  }
  return {};
}

WatchedNode MakerOf(const Network& network, int output) {
  Operand from = network.outputs[output].from;
  while (from.source == Operand::Source::kUnit) {
    const Unit& unit = network.units[from.index];
    if (unit.kind == nullptr || !unit.kind->run.is_view || unit.bottoms.empty()) {
      return NodeOf(unit);
    }
    from = unit.bottoms[0];
  }
  return {};
}

std::string RangeWatch::Advice(const WatchedNode& node) const {
  if (node.makes.empty()) return "";
  const std::string makes = Printable(node.makes);
  return absl::StrCat("; to keep the ", node.op_type.empty() ? "node" : node.op_type,
                      " that makes '", makes, "' off the engine, give ", option_,
                      "refuse:node:", makes);
}

void RangeWatch::Input(const math::Tally& tally, int64_t elements, absl::string_view name,
                       const WatchedNode& node) {
  if (tally.overflowed == 0 || input_told_.exchange(true)) return;
  warn_(absl::StrCat(tally.overflowed, " of ", elements, " values of '", Printable(name),
                     "' are above ", fp16::kLargest,
                     ", the largest number of fp16, and are infinite on the engine", Advice(node)));
}

void RangeWatch::Output(const math::Tally& tally, int64_t elements, absl::string_view name,
                        const WatchedNode& node) {
  if (tally.not_finite == 0 || output_told_.exchange(true)) return;
  warn_(absl::StrCat(tally.not_finite, " of ", elements, " values of '", Printable(name),
                     "' are not finite, because the engine computes in fp16 or because an input is "
                     "not; `anemone run --hazards` says where it starts",
                     Advice(node)));
}

}  // namespace anemone
