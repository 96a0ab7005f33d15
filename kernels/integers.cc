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

// Floats may stand for integers: positions, lengths, indices, cast to floats, scaled and then given
// to a sine, compared or cast back. fp16 would move them to another integer, or round an angle of
// 2049 to 2048. (A mask is cast as well, but only multiplied and added: rounding leaves it a mask.)

// What passes an integer on, times a number or not.
constexpr absl::string_view kCarriers[] = {
    "Abs",    "Add",     "Cast",    "Ceil",  "Clip",     "Concat",    "Div",
    "Einsum", "Expand",  "Flatten", "Floor", "Gemm",     "Max",       "MatMul",
    "Min",    "Mod",     "Mul",     "Neg",   "Reshape",  "Round",     "Sub",
    "Tile",   "Squeeze", "Slice",   "Sum",   "Identity", "Transpose", "Unsqueeze"};

// What tells neighbouring integers apart.
constexpr absl::string_view kTellers[] = {"Cos",  "Equal",       "Greater", "GreaterOrEqual",
                                          "Less", "LessOrEqual", "Sin",     "Tan"};

// More nodes than this between two casts are no arithmetic of indices.
constexpr size_t kMostCarriers = 64;

bool IsOneOf(absl::Span<const absl::string_view> ops, const Node& node) {
  return node.domain.empty() && std::find(ops.begin(), ops.end(), node.op_type) != ops.end();
}

bool IsFloat(const GraphView& view, ValueId value) {
  return view.graph.values[value].type == DataType::kFloat;
}

// A Cast between floats and integers that fp16 has not all of.
bool IsCastOf(const GraphView& view, const Node& node, ValueId integer, ValueId number) {
  return node.domain.empty() && node.op_type == "Cast" && IsFloat(view, number) &&
         IsHeldInteger(view.graph.values[integer].type) && !IsHeld(view.RangeOf(integer));
}

void AddOnce(std::vector<NodeId>& nodes, NodeId node) {
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
}

// The floats that a node reads are computed of such integers and constants alone.
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
      if (!IsOneOf(kCarriers, producer)) return false;
      AddOnce(walk, id);
    }
  }
  return is_cast;
}

// Something that reads what the node makes, or it itself, tells the integers apart.
bool IsTold(const GraphView& view, const Node& first) {
  std::vector<NodeId> walk = {view.IdOf(first)};
  for (size_t i = 0; i < walk.size() && walk.size() < kMostCarriers; ++i) {
    const Node& node = view.graph.nodes[walk[i]];
    if (IsOneOf(kTellers, node)) return true;
    if (node.outputs.empty() || node.outputs[0] == kNone) continue;
    if (HasInput(node, 0) && IsCastOf(view, node, node.outputs[0], node.inputs[0])) return true;
    if (!IsOneOf(kCarriers, node)) continue;
    for (NodeId reader : view.consumers[node.outputs[0]]) AddOnce(walk, reader);
  }
  return false;
}

bool StandsForInteger(const GraphView& view, const Node& node) {
  return (IsOneOf(kCarriers, node) || IsOneOf(kTellers, node)) && IsMadeOfIntegers(view, node) &&
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
        "integer-range",
        absl::StrCat(
            "floats that stand for integers of any value and are compared, cast back or an angle: "
            "fp16 has all up to ",
            kExactIntegers, " only"));
    return verdict;
  }
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
