#include "engine/network.h"

#include <array>
#include <utility>

#include "engine/repeats.h"
#include "engine/unit_kind.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// Refuses empty axes and axes that are longer than the target allows; nullopt: `judge` accepts.
std::optional<Verdict> RefuseExtents(Judge& judge, const Dims& dims) {
  static constexpr std::pair<Axis, Limit> kCaps[] = {{Axis::kN, Limit::kMaxTensorN},
                                                     {Axis::kD, Limit::kMaxTensorD},
                                                     {Axis::kC, Limit::kMaxTensorC},
                                                     {Axis::kH, Limit::kMaxTensorH},
                                                     {Axis::kW, Limit::kMaxTensorW}};
  for (int64_t extent : dims.extent) {
    if (extent < 1) return judge.Reject(rule::kEmptyTensor);
  }
  for (const auto& [axis, limit] : kCaps) {
    if (judge.Within(dims[axis], limit)) continue;
    if (judge.route() == Route::kNetplist) {
      const int64_t most = judge.Value(limit, 0);
      if (axis == Axis::kW) return judge.Reject(rule::kMaxWidth, dims[axis], most);
      if (axis == Axis::kC) return judge.Reject(rule::kMaxChannels, dims[axis], most);
      if (axis == Axis::kH) return judge.Reject(rule::kMaxHeight);
      return judge.Reject(axis == Axis::kD ? rule::kMaxDepth : rule::kMaxExtent);
    }
    // The message is known for the spatial axes of some families only.
    const std::optional<int> family = judge.target().family_index();
    const bool text_known =
        family && rule::kMaxDimensionA13.Lists(*family) && axis != Axis::kN && axis != Axis::kC;
    return judge.Reject(text_known ? rule::kMaxDimensionA13 : rule::kMaxDimension);
  }
  return std::nullopt;
}

// The same for the bottoms of a unit.
std::optional<Verdict> RefuseBottoms(Judge& judge, const UnitKind& kind, Bottoms bottoms) {
  if (kind.family != nullptr && !judge.Reaches(*kind.family)) return judge.Reject(*kind.family);
  const BottomCount& count = kind.bottoms;
  if (bottoms.size() < count.least || bottoms.size() > count.most) {
    return judge.Reject(count.rule != nullptr ? *count.rule : rule::kBottomCount);
  }
  for (const Bottom& bottom : bottoms) {
    if (auto refused = RefuseExtents(judge, bottom.dims)) return refused;
  }
  return std::nullopt;
}

// The format of a constant on the engine: floats of any width are rounded to fp16.
Format FormatOf(DataType type) {
  if (type == DataType::kUInt8) return Format::kUInt8;
  if (type == DataType::kUInt16) return Format::kUInt16;
  return type == DataType::kInt8 ? Format::kInt8 : Format::kFloat16;
}

}  // namespace

int BytesOf(Format format) { return format == Format::kUInt8 || format == Format::kInt8 ? 1 : 2; }

const Dims& Network::DimsOf(const Operand& operand) const {
  switch (operand.source) {
    case Operand::Source::kInput:
      return inputs[operand.index].dims;
    case Operand::Source::kConstant:
      return constants[operand.index].dims;
    case Operand::Source::kUnit:
      break;
  }
  return units[operand.index].dims;
}

Bottom Network::BottomOf(const Operand& operand) const {
  Bottom bottom{DimsOf(operand)};
  if (operand.source == Operand::Source::kInput) bottom.format = inputs[operand.index].format;
  if (operand.source == Operand::Source::kConstant) {
    bottom.constant = &constants[operand.index].tensor;
    bottom.format = FormatOf(bottom.constant->type());
  }
  return bottom;
}

std::vector<Bottom> Network::BottomsOf(absl::Span<const Operand> operands) const {
  std::vector<Bottom> bottoms;
  bottoms.reserve(operands.size());
  for (const Operand& operand : operands) bottoms.push_back(BottomOf(operand));
  return bottoms;
}

Verdict CheckBottoms(const UnitKind& kind, Bottoms bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (auto refused = RefuseBottoms(judge, kind, bottoms)) return *std::move(refused);
  return judge.Accept();
}

Verdict CheckUnit(const Unit& unit, Bottoms bottoms, const Target& target, Route route) {
  Judge judge(target, route);  // one for all extents: a verdict is large
  if (auto refused = RefuseBottoms(judge, *unit.kind, bottoms)) return *std::move(refused);
  // The validator goes first: a window that does not fit would give an output without elements.
  Verdict verdict = unit.kind->Validate(unit.params.get(), bottoms, target, route);
  if (!verdict.accepted) return Both(judge.Accept(), std::move(verdict));
  if (auto refused = RefuseExtents(judge, unit.dims)) {
    return Both(std::move(verdict), *std::move(refused));
  }
  verdict = Both(judge.Accept(), std::move(verdict));
  return Both(std::move(verdict), unit.kind->Codegen(unit.params.get(), bottoms, target, route));
}

NetworkVerdict CheckNetwork(const Network& network, const Target& target, Route route) {
  Judge judge(target, route);
  if (route == Route::kMil && !target.mil_route()) return {judge.Reject(rule::kMilRoute)};
  Verdict all = judge.Accept();
  all.status = target.status();
  Repeats repeats(network);
  for (size_t i = 0; i < network.units.size(); ++i) {
    if (repeats.Of(static_cast<int>(i)) >= 0) continue;  // a unit that was accepted
    const Unit& unit = network.units[i];
    all = Both(std::move(all), CheckUnit(unit, network.BottomsOf(unit), target, route));
    if (!all.accepted) return {std::move(all), static_cast<int>(i)};
  }
  for (const OutputPort& port : network.outputs) {
    const size_t made[] = {network.inputs.size(), network.constants.size(), network.units.size()};
    const bool is_live = port.from.index >= 0 && static_cast<size_t>(port.from.index) <
                                                     made[static_cast<size_t>(port.from.source)];
    if (!is_live) return {judge.Reject(rule::kOrionOutputLive)};
  }
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    const InputPort& port = network.inputs[i];
    if (port.format != Format::kFloat16 && port.format != Format::kUInt8) {
      return {judge.Reject(rule::kPortFormat), -1, static_cast<int>(i)};
    }
    if (auto refused = RefuseExtents(judge, port.dims)) {
      return {Both(std::move(all), *std::move(refused)), -1, static_cast<int>(i)};
    }
  }
  return {Both(std::move(all), judge.Accept())};
}

std::vector<int> CountReaders(const Network& network) {
  std::vector<int> readers(network.units.size());
  const auto count = [&](const Operand& operand) {
    if (operand.source == Operand::Source::kUnit) ++readers[operand.index];
  };
  for (const Unit& unit : network.units) {
    for (const Operand& operand : unit.bottoms) count(operand);
  }
  for (const OutputPort& port : network.outputs) count(port.from);
  return readers;
}

}  // namespace anemone
