#include "kernels/integers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "importer/operators/operators.h"

namespace anemone {
namespace {

bool IsHeld(const IntegerRange& range) {
  return range.interval && range.interval->low >= -fp16::kLargestExactInteger &&
         range.interval->high <= fp16::kLargestExactInteger;
}

Verdict Refuse(absl::string_view rule, std::string why) {
  return OwnRefusal(Layer::kCoverage, rule, std::move(why),
                    "no action needed: integers stay exact on the CPU");
}

// "int64 values", "int32 values in 0..5000".
std::string Named(DataType type, const std::optional<Interval>& interval) {
  std::string name = absl::StrCat(DataTypeName(type), " values");
  const Interval limits = *LimitsOf(type);
  const bool any = !interval || (interval->low == limits.low && interval->high == limits.high);
  if (any) return name;
  return absl::StrCat(name, " in ", interval->low, "..", interval->high);
}

// The refusal for one integer value that `node` reads or computes; nullopt if the engine may hold
// it.
std::optional<Verdict> RefusalOf(const GraphView& view, const Node& node, ValueId id,
                                 bool is_made) {
  const DataType type = view.graph.values[id].type;
  const IntegerRange& range = view.RangeOf(id);
  if (!IsHeld(range)) {
    return Refuse(kIntegerRange, absl::StrCat(Named(type, range.interval), " may exceed ",
                                              fp16::kLargestExactInteger,
                                              ", above which fp16 cannot represent every integer"));
  }
  if (is_made && range.wraps) {
    return Refuse("integer-wraps",
                  absl::StrCat(node.op_type, " of ", DataTypeName(type),
                               " may overflow and wrap around, which fp16 does not do"));
  }
  return std::nullopt;
}

// The integer values that a node reads (false) and computes (true).
std::vector<std::pair<ValueId, bool>> IntegersOf(const GraphView& view, const Node& node,
                                                 const IntegerUse& use) {
  std::vector<std::pair<ValueId, bool>> integers;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool is_data = i >= 32 || (use.inputs >> i & 1) != 0;
    if (HasInput(node, i) && is_data) integers.emplace_back(node.inputs[i], false);
  }
  for (ValueId made : node.outputs) {
    if (made != kNone) integers.emplace_back(made, true);
  }
  std::erase_if(integers, [&](const auto& integer) {
    return !IsHeldInteger(view.graph.values[integer.first].type);
  });
  return integers;
}

// An input beside the data that is computed at run time, such as the starts of a Slice, and that
// the engine may hold. Its lowering decides whether it takes such an input.
bool ReadsHeldIndex(const GraphView& view, const Node& node, const IntegerUse& use) {
  for (size_t i = 0; i < node.inputs.size() && i < 32; ++i) {
    if (!HasInput(node, i) || (use.inputs >> i & 1) != 0) continue;
    const Value& value = view.graph.values[node.inputs[i]];
    if (value.constant || !IsHeldInteger(value.type)) continue;
    if (IsHeld(view.RangeOf(node.inputs[i]))) return true;
  }
  return false;
}

// Floats may hold integers: positions, lengths and indices are cast to float, scaled, and then
// given to a sine, compared or cast back. fp16 would change them to another integer, or round an
// angle of 2049 to 2048. (A mask is cast as well, but only multiplied and added; rounding does not
// harm it.)

// Paths of more nodes than this are not followed; index arithmetic is shorter.
constexpr size_t kMostCarriers = 64;

bool IsFloat(const GraphView& view, ValueId value) {
  return view.graph.values[value].type == DataType::kFloat;
}

// `node` is a Cast between the float `number` and the integer `integer`, whose range has values
// that fp16 cannot represent.
bool IsCastOf(const GraphView& view, const Node& node, ValueId integer, ValueId number) {
  return node.domain.empty() && node.op_type == "Cast" && IsFloat(view, number) &&
         IsHeldInteger(view.graph.values[integer].type) && !IsHeld(view.RangeOf(integer));
}

void AddOnce(std::vector<NodeId>& nodes, NodeId node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

// The floats that `node` reads are computed only from constants and from such integers.
bool IsMadeOfIntegers(const GraphView& view, const Node& node) {
  bool is_cast = false;
  std::vector<NodeId> walk = {view.IdOf(node)};
  for (size_t i = 0; i < walk.size(); ++i) {
    for (ValueId value : view.graph.nodes[walk[i]].inputs) {
      if (value == kNone || !IsFloat(view, value) || view.Constant(value) != nullptr) continue;
      const NodeId id = view.graph.values[value].producer;
      if (id == kNone || walk.size() == kMostCarriers) return false;
      const Node& producer = view.graph.nodes[id];
      const bool casts =
          HasInput(producer, 0) && IsCastOf(view, producer, producer.inputs[0], value);
      is_cast = is_cast || casts;
      if (casts) continue;
      if (OperatorOf(producer).float_integers != FloatIntegers::kPass) return false;
      AddOnce(walk, id);
    }
  }
  return is_cast;
}

// The node, or one that reads its result directly or indirectly, gives different results for
// different integers: a comparison, a sine, or a cast back.
bool IsTold(const GraphView& view, const Node& first) {
  std::vector<NodeId> walk = {view.IdOf(first)};
  for (size_t i = 0; i < walk.size() && walk.size() < kMostCarriers; ++i) {
    const Node& node = view.graph.nodes[walk[i]];
    const FloatIntegers kind = OperatorOf(node).float_integers;
    if (kind == FloatIntegers::kTell) return true;
    if (node.outputs.empty() || node.outputs[0] == kNone) continue;
    if (HasInput(node, 0) && IsCastOf(view, node, node.outputs[0], node.inputs[0])) return true;
    if (kind != FloatIntegers::kPass) continue;
    for (NodeId reader : view.consumers[node.outputs[0]]) AddOnce(walk, reader);
  }
  return false;
}

bool StandsForInteger(const GraphView& view, const Node& node) {
  return OperatorOf(node).float_integers != FloatIntegers::kEnd && IsMadeOfIntegers(view, node) &&
         IsTold(view, node);
}

}  // namespace

bool IsHeldInteger(DataType type) {
  static constexpr DataType kTypes[] = {DataType::kInt8,   DataType::kUInt8, DataType::kInt16,
                                        DataType::kUInt16, DataType::kInt32, DataType::kUInt32,
                                        DataType::kInt64};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

IntegerVerdict JudgeIntegers(const GraphView& view, const Match& match) {
  IntegerVerdict verdict;
  for (NodeId id : match.nodes) {
    if (!StandsForInteger(view, view.graph.nodes[id])) continue;
    verdict.refusal = Refuse(
        kIntegerRange,
        absl::StrCat(
            "floats that hold integers and are compared, cast back or used as an angle may exceed ",
            fp16::kLargestExactInteger, ", above which fp16 cannot represent every integer"));
    return verdict;
  }
  for (NodeId id : match.nodes) {
    const Node& node = view.graph.nodes[id];
    // The integers may be indices, which the operator's lowering handles.
    if (!OperatorOf(node).integers && !IntegersOf(view, node, kAllInputs).empty()) return verdict;
  }
  for (NodeId id : match.nodes) {
    const Node& node = view.graph.nodes[id];
    const std::optional<IntegerUse>& use = OperatorOf(node).integers;
    if (!use) continue;
    verdict.held = verdict.held || ReadsHeldIndex(view, node, *use);
    for (const auto& [value, is_made] : IntegersOf(view, node, *use)) {
      verdict.refusal = use->refused != nullptr ? Refuse(kIntegerForm, use->refused)
                                                : RefusalOf(view, node, value, is_made);
      if (verdict.refusal) return verdict;
      verdict.held = true;
    }
  }
  return verdict;
}

}  // namespace anemone
