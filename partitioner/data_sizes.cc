#include "partitioner/data_sizes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "importer/read/free_dimensions.h"

namespace anemone {
namespace {

// Operators of ONNX whose output has as many elements as the data says, whatever the input's shape,
// and what users can do.
struct Selector {
  const char* op_type;
  const char* remedy;
};
constexpr char kMask[] =
    "keep all elements and mask them (Where, Mul) to have nodes after it on the engine";
constexpr char kPostprocess[] = "it and the nodes after it run on the CPU";
constexpr Selector kSelectors[] = {
    {"Compress", kMask},
    {"NonZero", kMask},
    {"Unique", kPostprocess},
    {"NonMaxSuppression", kPostprocess},
};

const Selector* SelectorOf(const Node& node) {
  const auto* found =
      std::find_if(std::begin(kSelectors), std::end(kSelectors),
                   [&](const Selector& row) { return node.op_type == row.op_type; });
  return !node.domain.empty() || found == std::end(kSelectors) ? nullptr : found;
}

bool IsKnown(const Graph& graph, ValueId id) { return id == kNone || graph.values[id].is_static(); }

// By value. A node whose inputs have known sizes, and whose output does not, makes the size; other
// nodes pass it on. While dimensions are free, it may compute the size from them, so that only
// selectors are sure to take it from the data.
std::vector<NodeId> MakersOf(const Graph& graph, bool has_free_dimensions) {
  std::vector<NodeId> makers(graph.values.size(), kNone);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    NodeId maker = kNone;
    bool all_known = true;
    for (const auto* values : {&node.inputs, &node.captures}) {
      for (ValueId value : *values) {
        all_known &= IsKnown(graph, value);
        if (value != kNone && maker == kNone) maker = makers[value];
      }
    }
    const bool makes = SelectorOf(node) != nullptr || (all_known && !has_free_dimensions);
    if (maker == kNone && makes) maker = id;
    if (maker == kNone) continue;
    for (ValueId output : node.outputs) {
      if (!IsKnown(graph, output)) makers[output] = maker;
    }
  }
  return makers;
}

}  // namespace

DataSizes::DataSizes(const Model& model, const Graph& graph)
    : has_free_dimensions_(!FreeDimensionsOf(model).empty()),
      graph_(graph),
      makers_(MakersOf(graph, has_free_dimensions_)) {}

std::string DataSizes::RemedyFor(const Verdict& verdict, const Node& node) const {
  if (verdict.accepted || verdict.rule_id() != kSymbolicShape) return "";
  NodeId maker = kNone;
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (ValueId value : *values) {
      if (value != kNone && maker == kNone) maker = makers_[value];
    }
  }
  if (maker == kNone) {
    if (has_free_dimensions_) return "";
    return "no option binds the size, which depends on the data or on a loop; the node runs on the "
           "CPU";
  }
  const Node& made = graph_.nodes[maker];
  const Selector* selector = SelectorOf(made);
  return absl::StrCat(
      "no option binds the size: ", made.op_type,
      made.name.empty() ? "" : absl::StrCat(" '", made.name, "'"), " takes it from the data; ",
      selector == nullptr ? "make the inputs that it takes its size from constant in the model"
                          : selector->remedy);
}

}  // namespace anemone
