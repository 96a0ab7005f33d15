#include "kernels/layout/channels_first.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/network_builder.h"
#include "engine/unit_kind.h"
#include "kernels/layout/chains.h"
#include "kernels/layout/layout_cost.h"
#include "kernels/layout/moves.h"
#include "kernels/shared/permuted.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

// If the chains touch more units than this, relative to those of the network, they are carried
// together or not at all, which bounds the time.
constexpr size_t kMostTouched = 32;

// Makes a network of `units` (sorted), in which those of `carried` are carried. Values of other
// units become input ports, and those that other units read become output ports.
class Rewriter {
 public:
  Rewriter(const Chains& from, absl::Span<const int> units, absl::Span<const int> carried)
      : from_(from),
        network_(from.network()),
        c_(from.target(), from.route()),
        units_(units),
        inside_(carried.begin(), carried.end()) {}

  // The network, cleaned up; nullopt if that fails.
  std::optional<Network> Rewrite() {
    const bool is_whole = units_.size() == network_.units.size();
    for (int i = 0; is_whole && i < static_cast<int>(network_.inputs.size()); ++i) {
      Outside({Operand::Source::kInput, i});
    }
    for (int i : units_) {
      const Unit& unit = network_.units[i];
      if (inside_.contains(i)) {
        carried_.emplace(Key(Operand::Source::kUnit, i), AddCarried(i));
        continue;
      }
      std::vector<Operand> bottoms = unit.bottoms;
      for (Operand& bottom : bottoms) bottom = Plain(bottom);
      plain_.emplace(
          Key(Operand::Source::kUnit, i),
          c_.AddUnit(*unit.kind, unit.params, std::move(bottoms), unit.weights, unit.name));
    }
    if (is_whole) {
      for (const OutputPort& port : network_.outputs) c_.AddOutput(port.name, Plain(port.from));
    } else {
      for (int i : units_) {
        if (from_.IsReadOutside(i, units_)) c_.AddOutput("", Plain({Operand::Source::kUnit, i}));
      }
    }
    if (!c_.ok()) return std::nullopt;
    Network made = c_.TakeNetwork();
    for (auto& [index, name] : named_) made.units[index].name = name;
    CleanUp(made);
    made = JoinTransposes(made, from_.target(), from_.route());
    CleanUp(made);
    return made;
  }

 private:
  using Key = std::pair<Operand::Source, int>;

  static Key KeyOf(const Operand& operand) { return {operand.source, operand.index}; }

  // A value that no unit of the new network makes.
  Operand Outside(const Operand& operand) {
    const auto [made, is_new] = plain_.try_emplace(KeyOf(operand));
    if (!is_new) return made->second;
    if (operand.source == Operand::Source::kConstant) {
      const Constant& constant = network_.constants[operand.index];
      made->second = c_.AddConstant(constant.tensor, constant.dims);
    } else if (operand.source == Operand::Source::kInput) {
      const InputPort& port = network_.inputs[operand.index];
      made->second = c_.AddInput(port.name, port.dims, port.format);
    } else {
      made->second = c_.AddInput("", network_.DimsOf(operand));
    }
    return made->second;
  }

  // The value as it was.
  Operand Plain(const Operand& operand) {
    const auto known = plain_.find(KeyOf(operand));
    if (known != plain_.end()) return known->second;
    const auto carried = carried_.find(KeyOf(operand));
    if (carried == carried_.end() || operand.source != Operand::Source::kUnit) {
      return Outside(operand);
    }
    Operand x = ReshapeToDims(c_, carried->second, from_.MatricesOf(operand).by_column());
    x = SwapAxes(c_, x, Axis::kC, Axis::kW);
    x = ReshapeToDims(c_, x, network_.DimsOf(operand));
    plain_.emplace(KeyOf(operand), x);
    return x;
  }

  // The value carried, under CarriedDims().
  Operand Carried(const Operand& operand) {
    const auto known = carried_.find(KeyOf(operand));
    if (known != carried_.end()) return known->second;
    Operand x = ReshapeToDims(c_, Plain(operand), from_.MatricesOf(operand).by_row());
    x = SwapAxes(c_, x, Axis::kC, Axis::kW);
    x = ReshapeToDims(c_, x, from_.CarriedDims(operand));
    carried_.emplace(KeyOf(operand), x);
    return x;
  }

  Operand AddCarried(int index) {
    const Unit& unit = network_.units[index];
    const Operand self = {Operand::Source::kUnit, index};
    const Dims to = from_.CarriedDims(self);
    if (from_.is_layer(index)) {
      Operand x = CarriedAs(unit.bottoms[0], from_.CarriedDims(unit.bottoms[0]));
      Operand y = from_.AddConvolution(c_, index, x);
      named_.emplace_back(y.index, unit.name);
      return ReshapeToDims(c_, y, to);
    }
    if (unit.kind->run.is_view) return CarriedAs(unit.bottoms[0], to);
    const Permutation order = OrderFor(unit.dims);
    std::vector<Operand> bottoms;
    bottoms.reserve(unit.bottoms.size());
    for (const Operand& operand : unit.bottoms) {
      bottoms.push_back(CarriedAs(operand, Permute(network_.DimsOf(operand), order)));
    }
    return c_.AddUnit(*unit.kind, from_.PermutedParams(unit, order), std::move(bottoms),
                      unit.weights, unit.name);
  }

  // The value carried under these dims, whose elements are in the same order.
  Operand CarriedAs(const Operand& operand, const Dims& dims) {
    if (operand.source != Operand::Source::kConstant) {
      return ReshapeToDims(c_, Carried(operand), dims);
    }
    const Dims& from = network_.DimsOf(operand);
    std::optional<Constant> constant = from_.Permuted(operand.index, OrderFor(from));
    if (!constant) return c_.Fail(absl::InternalError("a constant that cannot be permuted"));
    return c_.AddConstant(constant->tensor, dims);
  }

  const Chains& from_;
  const Network& network_;
  NetworkBuilder c_;
  const absl::Span<const int> units_;
  const absl::flat_hash_set<int> inside_;              // carried
  absl::flat_hash_map<Key, Operand> plain_, carried_;  // by operand of network_
  std::vector<std::pair<int, std::string>> named_;     // new units that replace one
};

struct Trial {
  std::optional<Network> network;  // if it is better
  std::string why_not;
};

class Decision {
 public:
  explicit Decision(const Chains& chains)
      : chains_(chains), costs_(LayoutCost::For(chains.target())), all_(UnitsOf(chains.network())) {
    saved_ = Saved(all_);
  }

  // Tries the chain in a network of the units that it touches. Transposes that are joined
  // elsewhere, which TryAll() does too, count for each chain.
  Trial Try(absl::Span<const int> chain) const {
    const std::vector<int> units = chains_.TouchedBy(chain);
    Size elsewhere = saved_;
    elsewhere -= Saved(units);
    return Judged(units, chain, elsewhere);
  }
  // Tries chains in the whole network.
  Trial TryAll(absl::Span<const int> chains) const { return Judged(all_, chains, {}); }

 private:
  // Units that are not views, and their time by the rates.
  struct Size {
    int64_t units = 0;
    double time = 0;
    Size& operator-=(const Size& other) {
      units -= other.units;
      time -= other.time;
      return *this;
    }
  };

  static std::vector<int> UnitsOf(const Network& network) {
    std::vector<int> all(network.units.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  void Add(const Network& network, const Unit& unit, Size& size) const {
    if (unit.kind->run.is_view) return;
    ++size.units;
    if (costs_) size.time += costs_->Of(network, unit);
  }
  Size SizeOf(absl::Span<const int> units) const {
    Size size;
    for (int i : units) Add(chains_.network(), chains_.network().units[i], size);
    return size;
  }
  Size SizeOf(const Network& network) const {
    Size size;
    for (const Unit& unit : network.units) Add(network, unit, size);
    return size;
  }

  // What joining the transposes of these units saves.
  Size Saved(absl::Span<const int> units) const {
    const std::vector<int> joinable = chains_.JoinableOf(units);
    if (joinable.empty()) return {};
    const std::optional<Network> made = Rewriter(chains_, joinable, {}).Rewrite();
    if (!made) return {};
    Size saved = SizeOf(joinable);
    saved -= SizeOf(*made);
    return saved;
  }

  Trial Judged(absl::Span<const int> units, absl::Span<const int> carried,
               const Size& elsewhere) const {
    std::optional<Network> made = Rewriter(chains_, units, carried).Rewrite();
    if (!made) return {std::nullopt, "the chain cannot be written in that layout"};
    const NetworkVerdict judged = CheckNetwork(*made, chains_.target(), chains_.route());
    if (!judged.verdict.accepted) {
      const char* type = judged.unit < 0 ? "port" : made->units[judged.unit].kind->type;
      return {std::nullopt,
              absl::StrCat("in that layout, ", type, " is refused: ", judged.verdict.message)};
    }
    Size more = SizeOf(*made);
    more -= SizeOf(units);
    more -= elsewhere;
    if (more.units > 0) {
      return {std::nullopt, absl::StrCat("with transposes, its chain would have ", more.units,
                                         more.units == 1 ? " unit more" : " units more")};
    }
    if (costs_ && more.time >= 0) {
      return {std::nullopt, "by the target's rates, its chain would take longer"};
    }
    return {std::move(made), ""};
  }

  const Chains& chains_;
  const std::optional<LayoutCost> costs_;
  const std::vector<int> all_;  // units
  Size saved_;                  // by joining transposes alone
};

// Names the units that have no name, after the next unit that has one, as JoinNetwork() does
// (partitioner/segments.h): the name of a value, '#' and a number.
void NameUnits(Network& network) {
  absl::flat_hash_set<std::string> used;
  for (const Unit& unit : network.units) used.insert(unit.name);
  std::string base;
  int number = 0;
  const auto visit = [&](Unit& unit) {
    if (!unit.name.empty()) {
      base = unit.name.substr(0, unit.name.rfind('#'));
      number = 0;
      return;
    }
    if (base.empty()) return;
    while (!used.insert(absl::StrCat(base, "#", number)).second) ++number;
    unit.name = absl::StrCat(base, "#", number);
  };
  std::for_each(network.units.rbegin(), network.units.rend(), visit);
  std::for_each(network.units.begin(), network.units.end(), visit);
}

// Carries the chains that are better carried. False if there are none; then `kept` has all linear
// layers that are products.
bool CarrySome(Network& network, const Target& target, Route route, std::vector<KeptLayer>& kept) {
  const Chains chains(network, target, route);
  std::vector<std::vector<int>> found = chains.Find();
  kept = chains.kept();
  size_t touched = 0;
  for (const std::vector<int>& chain : found) touched += chains.CountTouched(chain);
  if (touched > kMostTouched * network.units.size()) {
    std::vector<int> all;
    for (const std::vector<int>& chain : found) all.insert(all.end(), chain.begin(), chain.end());
    std::sort(all.begin(), all.end());
    found = {std::move(all)};
  }
  const Decision decision(chains);
  const auto keep = [&](absl::Span<const int> chain, const std::string& why) {
    for (int i : chain) {
      if (chains.is_layer(i)) kept.push_back({network.units[i].name, why});
    }
  };
  std::vector<int> carried;
  for (const std::vector<int>& chain : found) {
    std::vector<int> taken = chains.Trimmed(chain);
    Trial trial = decision.Try(taken);
    if (!trial.network && taken != chain) {
      taken = chain;
      trial = decision.Try(taken);
    }
    if (!trial.network) {
      keep(chain, trial.why_not);
      continue;
    }
    carried.insert(carried.end(), taken.begin(), taken.end());
  }
  if (carried.empty()) return false;
  std::sort(carried.begin(), carried.end());
  Trial trial = decision.TryAll(carried);
  if (!trial.network) {
    keep(carried, trial.why_not);
    return false;
  }
  network = *std::move(trial.network);
  NameUnits(network);
  return true;
}

}  // namespace

std::vector<KeptLayer> CarryChannelsFirst(Network& network, const Target& target, Route route) {
  const auto is_layer = [&](const Unit& unit) { return LayerOf(network, unit).has_value(); };
  if (std::none_of(network.units.begin(), network.units.end(), is_layer)) return {};
  // What is carried can make the transposes of another chain unnecessary.
  constexpr int kMostRounds = 8;
  std::vector<KeptLayer> kept;
  for (int round = 0; round < kMostRounds; ++round) {
    if (!CarrySome(network, target, route, kept)) break;
  }
  return kept;
}

}  // namespace anemone
