#include "engine/warning.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "anemone/compressed.h"
#include "engine/formats/netplist.h"
#include "engine/repeats.h"
#include "engine/surface.h"
#include "engine/unit_kind.h"
#include "warning_table.h"  // generated

namespace anemone {
namespace {

int64_t BytesOfDims(const Dims& dims) { return dims.elements() * BytesOf(Format::kFloat16); }

// Whether no interleave factor of the target except 1 divides the number of channels.
bool LeavesLanes(int64_t channels, const Target& target) {
  if (channels == 1) return false;
  absl::Span<const int> factors = target.list(LimitList::kInterleaveSet);
  return !factors.empty() && std::none_of(factors.begin(), factors.end(), [&](int factor) {
    return factor > 1 && channels % factor == 0;
  });
}

// Warnings about operands, which apply to units of every kind.
void WarnOfOperands(const Network& network, const Unit& unit, const Target& target,
                    WarningList& list) {
  int64_t largest = BytesOfDims(unit.dims);
  for (const Operand& operand : unit.bottoms) {
    largest = std::max(largest, BytesOfDims(network.DimsOf(operand)));
  }
  for (const Tensor& weight : unit.weights) {
    largest = std::max(largest, weight.elements() * BytesOf(Format::kFloat16));
  }
  auto held = target.limit(Limit::kMatmulWorkingSetBytes);
  if (held && largest > held->value) list.Add(warning::kWorkingSet, largest, held->value);
  if (LeavesLanes(unit.dims.c(), target)) list.Add(warning::kInterleave, unit.dims.c());
  auto granule = target.limit(Limit::kDmaWidthGranuleBytes);
  // A plane of one element has no longer axis, so the remedy could not be followed.
  const bool has_plane = unit.dims.w() > 1 || unit.dims.h() > 1;
  if (granule && has_plane && unit.dims.w() * BytesOf(Format::kFloat16) % granule->value != 0 &&
      unit.dims.elements() > unit.dims.w()) {
    list.Add(warning::kWidthGranule, unit.dims.w(), granule->value);
  }
  if (static_cast<int64_t>(unit.bottoms.size()) >= warning::kFanIn.limit)
    list.Add(warning::kFanIn, unit.bottoms.size());
}

void WarnOfWeights(const Unit& unit, const Target& target, WarningList& list) {
  for (const Tensor& weight : unit.weights) {
    if (weight.compressed() == nullptr) continue;
    const absl::string_view form = StreamedFormOf(*weight.compressed());
    if (target.Streams(form).value_or(true)) continue;
    list.Add(warning::kFoldedWeight, weight.compressed()->stored_bytes(), form,
             weight.elements() * BytesOf(Format::kFloat16));
  }
}

// Warns if a netplist cannot hold the unit, neither directly nor composed of other units, or if
// that form is unverified.
void WarnOfForm(const Network& network, const Unit& unit, const Target& target, WarningList& list) {
  const UnitForm form = ComposedForm(network, unit, target);
  if (form.status == FormStatus::kKnown) return;
  const bool none = form.status == FormStatus::kNone;
  list.Add(none ? warning::kNoNetplistForm : warning::kUnverifiedNetplistForm, form.why);
}

// Whether the operand is the result of a unit with this arithmetic.
bool IsResultOf(Arithmetic::Kind operation, const Network& network, const Operand& operand) {
  if (operand.source != Operand::Source::kUnit) return false;
  const Unit& unit = network.units[operand.index];
  if (!unit.kind->arithmetic) return false;
  const auto arithmetic = unit.kind->arithmetic.Or(std::nullopt, unit.params.get(),
                                                   network.BottomsOf(unit), unit.weights);
  return arithmetic && arithmetic->kind == operation;
}

// Whether two units of one node, which is warned of once, have the same warnings about themselves.
bool IsWarnedOf(const Unit& unit, const Unit& before) {
  const auto value = [](const Unit& of) {  // units are named after it: "y", "y#2"
    return absl::string_view(of.name).substr(0, of.name.rfind('#'));
  };
  return SameWeights(unit, before) && value(unit) == value(before);
}

// Warns of a sum over the result of a subtraction, whose terms have both signs.
void WarnOfCancellation(const Network& network, int unit, WarningList& list) {
  if (!IsResultOf(Arithmetic::Kind::kReduction, network, {Operand::Source::kUnit, unit})) return;
  const Unit& sum = network.units[unit];
  if (!IsResultOf(Arithmetic::Kind::kDifference, network, sum.bottoms[0])) return;
  const int64_t terms = network.DimsOf(sum.bottoms[0]).elements() / sum.dims.elements();
  list.Add(warning::kCancellingSum, terms);
}

// Warns of a sum of squares of a value that may be large: of a port, a layer, a sum or a
// difference. Other element-wise units bound their results, or scale them for this purpose.
void WarnOfSquares(const Network& network, int unit, WarningList& list) {
  const std::vector<Operand>& bottoms = network.units[unit].bottoms;
  if (bottoms.empty() || bottoms[0].source != Operand::Source::kUnit) return;
  const Operand& from = bottoms[0];
  const Unit& square = network.units[from.index];
  if (!square.kind->fuse.squares.Or(false, square.params.get(), square.bottoms)) return;
  const Operand self{Operand::Source::kUnit, unit};
  const bool sums = IsResultOf(Arithmetic::Kind::kReduction, network, self) ||
                    IsResultOf(Arithmetic::Kind::kContraction, network, self);
  if (!sums) return;
  const Operand& x = square.bottoms[0];
  const bool is_guarded = x.source == Operand::Source::kUnit &&
                          network.units[x.index].kind->run.step &&
                          !IsResultOf(Arithmetic::Kind::kSum, network, x) &&
                          !IsResultOf(Arithmetic::Kind::kDifference, network, x);
  if (!is_guarded) list.Add(warning::kSquares);
}

// The input ports or the output ports of a program: their sizes and names.
struct Side {
  std::vector<int64_t> bytes;
  std::vector<std::string> names;
};

void WarnOfSide(const Side& side, WarningList& list) {
  if (side.bytes.empty()) return;
  auto [least, most] = std::minmax_element(side.bytes.begin(), side.bytes.end());
  if (*least != *most) list.Add(warning::kOrionSurfaceSize, *least, *most);
  for (size_t i = 0; i < side.bytes.size(); ++i) {
    if (side.bytes[i] < warning::kOrionSurfaceFloor.limit) {
      list.Add(warning::kOrionSurfaceFloor, side.names[i], side.bytes[i]);
    }
  }
  if (!std::is_sorted(side.names.begin(), side.names.end())) {
    list.Add(warning::kOrionPortOrder, absl::StrJoin(side.names, ", "));
  }
}

// Limits of the conversion route that Orion found: those of the program, then those of its
// surfaces.
void WarnOfProgram(const Network& network, WarningList& list) {
  size_t weights = network.constants.size();
  for (size_t i = 0; i < network.units.size(); ++i) {
    const Unit& unit = network.units[i];
    weights += unit.weights.size();
    list.unit = static_cast<int>(i);
    const int64_t bytes = BytesOfDims(unit.dims);
    if (bytes > warning::kOrionSram.limit) list.Add(warning::kOrionSram, bytes);
  }
  list.unit = -1;
  if (weights > warning::kOrionWeightSlots.limit) list.Add(warning::kOrionWeightSlots, weights);
  Side in, out;
  for (const InputPort& port : network.inputs) {
    in.bytes.push_back(LayoutOf(port.dims, port.format, Route::kMil).bytes());
    in.names.push_back(port.name);
  }
  for (const OutputPort& port : network.outputs) {
    out.bytes.push_back(LayoutOf(network.DimsOf(port.from), Format::kFloat16, Route::kMil).bytes());
    out.names.push_back(port.name);
  }
  WarnOfSide(in, list);
  WarnOfSide(out, list);
}

// Warnings of a unit's kind, and those about its verdict, operands and weights.
void WarnOfUnit(const Network& network, int index, bool in_doubt, const Target& target, Route route,
                WarningList& list) {
  const Unit& unit = network.units[index];
  if (unit.kind->judge.warn) {
    unit.kind->judge.warn(unit.params.get(), unit, network.BottomsOf(unit), target, route, list);
  }
  const Rule* doubt =
      in_doubt ? CheckUnit(unit, network.BottomsOf(unit), target, route).doubt : nullptr;
  if (doubt != nullptr) list.AddDoubt(*doubt);
  if (!unit.kind->run.is_view) WarnOfOperands(network, unit, target, list);
  WarnOfWeights(unit, target, list);
}

}  // namespace

void WarningList::AddFormatted(const WarningRule& rule, const std::vector<absl::FormatArg>& args) {
  Warning made{.rule = &rule, .unit = unit, .message = ""};
  if (!absl::FormatUntyped(&made.message, absl::UntypedFormatSpec(rule.words), args)) {
    made.message = rule.words;
  }
  warnings_.push_back(std::move(made));
}

void WarningList::AddDoubt(const Rule& doubt) {
  Add(doubt.conflict != nullptr ? warning::kSourcesDisagree : warning::kNotPublished,
      doubt.condition);
  warnings_.back().doubt = &doubt;
}

std::vector<Warning> WarningsOf(const Network& network, bool in_doubt, const Target& target,
                                Route route) {
  WarningList list;
  Repeats repeats(network);
  for (size_t i = 0; i < network.units.size(); ++i) {
    const Unit& unit = network.units[i];
    list.unit = static_cast<int>(i);
    const int before = repeats.Of(list.unit);
    const bool is_new = before < 0 || !IsWarnedOf(unit, network.units[before]);
    if (is_new) WarnOfUnit(network, list.unit, in_doubt, target, route, list);
    WarnOfCancellation(network, list.unit, list);
    WarnOfSquares(network, list.unit, list);
    if (!is_new) continue;
    if (!unit.kind->computes()) list.Add(warning::kJudgedOnly, unit.kind->type);
    if (route == Route::kNetplist) WarnOfForm(network, unit, target, list);
  }
  list.unit = -1;
  for (const OutputPort& port : network.outputs) {
    if (IsResultOf(Arithmetic::Kind::kContraction, network, port.from)) {
      list.Add(warning::kOutputPort, port.name);
    }
  }
  if (route == Route::kMil) WarnOfProgram(network, list);
  return list.Take();
}

}  // namespace anemone
