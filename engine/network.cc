#include "engine/network.h"

#include <iterator>
#include <optional>
#include <utility>

#include "engine/repeats.h"
#include "engine/unit_kind.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// Judges the extents of tensors. A limit is asked only about extents that are longer than all
// before.
class ExtentJudge {
 public:
  ExtentJudge(const Target& target, Route route) : judge_(target, route) {}

  Verdict Accept() const { return judge_.Accept(); }

  // Refuses empty axes and axes that are longer than the target allows.
  std::optional<Verdict> Refuse(const Dims& dims) {
    for (int64_t extent : dims.extent) {
      if (extent < 1) return judge_.Reject(rule::kEmptyTensor);
    }
    for (size_t i = 0; i < std::size(kCaps); ++i) {
      const auto& [axis, limit] = kCaps[i];
      if (dims[axis] <= most_[i]) continue;
      if (!judge_.Within(dims[axis], limit)) return RefuseAxis(axis, dims[axis], limit);
      most_[i] = dims[axis];
    }
    return std::nullopt;
  }

  // The same for the bottoms of a unit.
  std::optional<Verdict> Refuse(const UnitKind& kind, Bottoms bottoms) {
    if (kind.family != nullptr && !judge_.Reaches(*kind.family)) {
      return judge_.Reject(*kind.family);
    }
    const BottomCount& count = kind.bottoms;
    if (bottoms.size() < count.least || bottoms.size() > count.most) {
      return judge_.Reject(count.rule != nullptr ? *count.rule : rule::kBottomCount);
    }
    for (const Bottom& bottom : bottoms) {
      if (auto refused = Refuse(bottom.dims)) return refused;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::pair<Axis, Limit> kCaps[] = {{Axis::kN, Limit::kMaxTensorN},
                                                     {Axis::kD, Limit::kMaxTensorD},
                                                     {Axis::kC, Limit::kMaxTensorC},
                                                     {Axis::kH, Limit::kMaxTensorH},
                                                     {Axis::kW, Limit::kMaxTensorW}};

  Verdict RefuseAxis(Axis axis, int64_t extent, Limit limit) {
    if (judge_.route() == Route::kNetplist) {
      const int64_t most = judge_.Value(limit, 0);
      if (axis == Axis::kW) return judge_.Reject(rule::kMaxWidth, extent, most);
      if (axis == Axis::kC) return judge_.Reject(rule::kMaxChannels, extent, most);
      if (axis == Axis::kH) return judge_.Reject(rule::kMaxHeight);
      return judge_.Reject(axis == Axis::kD ? rule::kMaxDepth : rule::kMaxExtent);
    }
    // The message is known for the spatial axes of some families only.
    const std::optional<int> family = judge_.target().family_index();
    const bool text_known =
        family && rule::kMaxDimensionA13.Lists(*family) && axis != Axis::kN && axis != Axis::kC;
    return judge_.Reject(text_known ? rule::kMaxDimensionA13 : rule::kMaxDimension);
  }

  Judge judge_;
  int64_t most_[std::size(kCaps)] = {};  // the longest extents that were accepted
};

Verdict CheckWith(ExtentJudge& extents, const Unit& unit, Bottoms bottoms, const Target& target,
                  Route route) {
  if (auto refused = extents.Refuse(*unit.kind, bottoms)) return *std::move(refused);
  // The validator goes first: a window that does not fit would give an output without elements.
  Verdict verdict = unit.kind->Validate(unit.params.get(), bottoms, target, route);
  if (!verdict.accepted) return Both(extents.Accept(), std::move(verdict));
  if (auto refused = extents.Refuse(unit.dims)) {
    return Both(std::move(verdict), *std::move(refused));
  }
  verdict = Both(extents.Accept(), std::move(verdict));
  return Both(std::move(verdict), unit.kind->Codegen(unit.params.get(), bottoms, target, route));
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
  ExtentJudge extents(target, route);
  if (auto refused = extents.Refuse(kind, bottoms)) return *std::move(refused);
  return extents.Accept();
}

Verdict CheckUnit(const Unit& unit, Bottoms bottoms, const Target& target, Route route) {
  ExtentJudge extents(target, route);
  return CheckWith(extents, unit, bottoms, target, route);
}

NetworkVerdict CheckNetwork(const Network& network, const Target& target, Route route) {
  Judge judge(target, route);
  if (route == Route::kMil && !target.mil_route()) return {judge.Reject(rule::kMilRoute)};
  Verdict all = judge.Accept();
  all.status = target.status();
  Repeats repeats(network);
  ExtentJudge extents(target, route);
  for (size_t i = 0; i < network.units.size(); ++i) {
    if (repeats.Of(static_cast<int>(i)) >= 0) continue;  // a unit that was accepted
    const Unit& unit = network.units[i];
    all = Both(std::move(all), CheckWith(extents, unit, network.BottomsOf(unit), target, route));
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
    if (auto refused = extents.Refuse(port.dims)) {
      return {Both(std::move(all), *std::move(refused)), -1, static_cast<int>(i)};
    }
  }
  return {Both(std::move(all), extents.Accept())};
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
