#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/formats/netplist.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

// The composition of the unit as a separate network; nullopt if its kind has none.
std::optional<Network> ComposedAlone(const Network& network, const Unit& unit,
                                     const Target& target) {
  if (!unit.kind->spell.compose) return std::nullopt;
  NetworkBuilder c(target, Route::kNetplist);
  Unit alone = unit;
  for (Operand& operand : alone.bottoms) {
    const Bottom bottom = network.BottomOf(operand);
    operand = bottom.is_constant() ? c.AddConstant(*bottom.constant, bottom.dims)
                                   : c.AddInput("", bottom.dims, bottom.format);
  }
  for (Tensor& weight : alone.weights) {  // their values do not matter
    if (auto zeros = ZeroFill(weight.type(), weight.dims()); zeros.ok()) weight = *std::move(zeros);
  }
  if (!unit.kind->spell.compose(alone.params.get(), alone, c) || !c.ok()) return std::nullopt;
  return c.TakeNetwork();
}

// Copies a network unit by unit. A unit without a form is replaced by its composition, if there is
// one.
class Composer {
 public:
  Composer(const Network& from, const Target& target) : from_(from), c_(target, Route::kNetplist) {}

  absl::StatusOr<Network> Compose(FormStatus least) {
    for (const InputPort& port : from_.inputs) c_.AddInput(port.name, port.dims, port.format);
    for (const Constant& constant : from_.constants) c_.AddConstant(constant.tensor, constant.dims);
    for (const Unit& unit : from_.units) {
      made_.push_back(Copy(unit, least));
    }
    ANEMONE_RETURN_IF_ERROR(c_.status());
    for (const OutputPort& port : from_.outputs) c_.AddOutput(port.name, Moved(port.from));
    Network network = c_.TakeNetwork();
    for (size_t i = 0; i < names_.size(); ++i) network.units[i].name = std::move(names_[i]);
    return network;
  }

 private:
  Operand Moved(const Operand& operand) const {
    return operand.source == Operand::Source::kUnit ? made_[operand.index] : operand;
  }

  Operand Copy(const Unit& unit, FormStatus least) {
    Unit moved = unit;
    for (Operand& operand : moved.bottoms) operand = Moved(operand);
    std::optional<Operand> made;
    if (FormOf(unit, from_.BottomsOf(unit)).status < least &&
        ComposedAlone(from_, unit, c_.target())) {
      made = unit.kind->spell.compose(moved.params.get(), moved, c_);
    }
    if (!made) made = c_.AddUnit(*moved.kind, moved.params, moved.bottoms, moved.weights);
    while (names_.size() < c_.network().units.size()) {
      const bool is_last = names_.size() + 1 == c_.network().units.size();
      names_.push_back(is_last ? unit.name : absl::StrCat(unit.name, "#", names_.size()));
    }
    return *made;
  }

  const Network& from_;
  NetworkBuilder c_;
  std::vector<Operand> made_;
  std::vector<std::string> names_;
};

}  // namespace

UnitForm ComposedForm(const Network& network, const Unit& unit, const Target& target) {
  UnitForm own = FormOf(unit, network.BottomsOf(unit));
  if (own.status == FormStatus::kKnown) return own;
  const std::optional<Network> parts = ComposedAlone(network, unit, target);
  if (!parts) return own;
  UnitForm least;
  for (const Unit& part : parts->units) {
    UnitForm form = FormOf(part, parts->BottomsOf(part));
    if (form.status < least.status) least = std::move(form);
  }
  return least;
}

absl::StatusOr<Network> ComposeForms(const Network& network, FormStatus least,
                                     const Target& target) {
  return Composer(network, target).Compose(least);
}

}  // namespace anemone
