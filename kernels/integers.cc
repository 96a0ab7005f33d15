#include "kernels/integers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

constexpr unsigned kAll = ~0u;

// Operators whose units are exact on whole numbers, and which inputs (bit by bit) hold such; others
// are indices or shapes, which are constants. Or why integers are not for the engine.
struct Row {
  absl::string_view op_type;
  unsigned data = kAll;
  const char* refused = nullptr;
};

constexpr const char* kTruncates = "the division of integers drops the fraction, no unit does";

constexpr Row kRows[] = {
    {"Abs"},
    {"Add"},
    {"Cast"},
    {"CastLike", 1},
    {"Clip"},
    {"Concat"},
    {"DequantizeLinear", 1},
    {"Div", kAll, kTruncates},
    {"Equal"},
    {"Expand", 1},
    {"Flatten"},
    {"Gather", 1},
    {"Greater"},
    {"GreaterOrEqual"},
    {"Identity"},
    {"Less"},
    {"LessOrEqual"},
    {"Max"},
    {"Min"},
    {"Mod", kAll, kTruncates},
    {"Mul"},
    {"Neg"},
    {"Pow", 1, "powers of integers wrap around, those of fp16 round"},
    {"ReduceMax", 1},
    {"ReduceMin", 1},
    {"ReduceSum", 1},
    {"Relu"},
    {"Reshape", 1},
    {"Sign"},
    {"Slice", 1},
    {"Split", 1},
    {"Squeeze", 1},
    {"Sub"},
    {"Tile", 1},
    {"Transpose"},
    {"Unsqueeze", 1},
    {"Where", 0b110},
};

const Row* RowOf(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& r) { return r.op_type == node.op_type; });
  return row == std::end(kRows) ? nullptr : row;
}

bool IsHeld(const IntegerRange& range) {
  return range.interval && range.interval->low >= -kExactIntegers &&
         range.interval->high <= kExactIntegers;
}

Verdict Refuse(absl::string_view rule, std::string why) {
  return OwnRefusal(Layer::kCoverage, rule, std::move(why),
                    "none needed: integers stay exact on the CPU");
}

// "an int64 of any value", "an int32 in 0..5000".
std::string Named(DataType type, const std::optional<Interval>& interval) {
  const std::string name = absl::StrCat("an ", DataTypeName(type), " ");
  const Interval limits = *LimitsOf(type);
  const bool any = !interval || (interval->low == limits.low && interval->high == limits.high);
  if (any) return name + "of any value";
  return absl::StrCat(name, "in ", interval->low, "..", interval->high);
}

// Of one value that `node` reads or makes.
std::optional<Verdict> RefusalOf(const GraphView& view, const Node& node, ValueId id,
                                 bool is_made) {
  const DataType type = view.graph.values[id].type;
  const IntegerRange& range = view.RangeOf(id);
  if (!IsHeld(range)) {
    return Refuse("integer-range", absl::StrCat(Named(type, range.interval),
                                                ": fp16 has all up to ", kExactIntegers, " only"));
  }
  if (is_made && range.wraps) {
    return Refuse("integer-wraps",
                  absl::StrCat(node.op_type, " of ", DataTypeName(type),
                               " may pass the type's limits and wrap around, fp16 does not"));
  }
  return std::nullopt;
}

// The integers that a node reads and makes, made ones marked.
std::vector<std::pair<ValueId, bool>> IntegersOf(const GraphView& view, const Node& node,
                                                 unsigned data) {
  std::vector<std::pair<ValueId, bool>> integers;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool is_data = i >= 32 || (data >> i & 1) != 0;
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
    const Node& node = view.graph.nodes[id];
    // Without a row they are perhaps indices, which the lowering knows about.
    if (RowOf(node) == nullptr && !IntegersOf(view, node, kAll).empty()) return verdict;
  }
  for (NodeId id : match.nodes) {
    const Node& node = view.graph.nodes[id];
    const Row* row = RowOf(node);
    if (row == nullptr) continue;
    for (const auto& [value, is_made] : IntegersOf(view, node, row->data)) {
      verdict.refusal = row->refused != nullptr ? Refuse("integer-form", row->refused)
                                                : RefusalOf(view, node, value, is_made);
      if (verdict.refusal) return verdict;
      verdict.held = true;
    }
  }
  return verdict;
}

}  // namespace anemone
