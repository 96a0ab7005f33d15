#include "engine/loops.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/network_builder.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

bool IsLoop(const Unit& unit) { return unit.kind->type == absl::string_view(kLoopType); }

}  // namespace

bool HasLoops(const Network& network) {
  return std::any_of(network.units.begin(), network.units.end(), IsLoop);
}

absl::StatusOr<Network> Unrolled(const Network& network, const Target& target, Route route) {
  NetworkBuilder c(target, route);
  for (const InputPort& port : network.inputs) c.AddInput(port.name, port.dims, port.format);
  for (const Constant& constant : network.constants) c.AddConstant(constant.tensor, constant.dims);
  std::vector<Operand> made;  // by unit
  made.reserve(network.units.size());
  const auto moved = [&](const Operand& operand) {
    return operand.source == Operand::Source::kUnit ? made[operand.index] : operand;
  };
  std::vector<std::string> names;
  for (const Unit& unit : network.units) {
    Unit copy = unit;
    std::transform(copy.bottoms.begin(), copy.bottoms.end(), copy.bottoms.begin(), moved);
    if (IsLoop(unit)) {
      const std::optional<Operand> last = unit.kind->spell.compose(copy.params.get(), copy, c);
      if (!last) return absl::InternalError(absl::StrCat("unit '", unit.name, "': not unrolled"));
      made.push_back(*last);
    } else {
      made.push_back(c.AddUnit(*copy.kind, std::move(copy.params), std::move(copy.bottoms),
                               std::move(copy.weights)));
    }
    ANEMONE_RETURN_IF_ERROR(c.status());
    while (names.size() < c.network().units.size()) {
      const bool is_last = names.size() + 1 == c.network().units.size();
      names.push_back(is_last ? unit.name : absl::StrCat(unit.name, "#", names.size()));
    }
  }
  for (const OutputPort& port : network.outputs) c.AddOutput(port.name, moved(port.from));
  Network unrolled = c.TakeNetwork();
  for (size_t i = 0; i < names.size(); ++i) unrolled.units[i].name = std::move(names[i]);
  CleanUp(unrolled);
  return unrolled;
}

}  // namespace anemone
