#include "importer/opset/opsets.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

using Opsets = std::map<std::string, int64_t>;

// The recursion is bounded: the importer limits the nesting of bodies.
void AddNewest(const Node& node, Opsets& opsets) {
  int64_t& version = opsets[node.domain];
  version = std::max<int64_t>(version, node.version);
  for (const Attribute::GraphPtr& body : BodiesOf(node)) {
    for (const Node& inner : body->nodes) AddNewest(inner, opsets);
  }
}

}  // namespace

std::map<std::string, int64_t> OpsetsOf(const Node& node) {
  Opsets opsets;
  AddNewest(node, opsets);
  return opsets;
}

std::vector<int> OpsetClasses(const Graph& graph) {
  std::vector<int> classes(graph.nodes.size(), 0);
  Opsets seen;
  std::set<std::string> contested;
  for (const Node& node : graph.nodes) {
    for (const auto& [domain, version] : OpsetsOf(node)) {
      if (seen.emplace(domain, version).first->second != version) contested.insert(domain);
    }
  }
  if (contested.empty()) return classes;
  std::map<Opsets, int> numbers = {{{}, 0}};
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Opsets of_node = OpsetsOf(graph.nodes[i]);
    std::erase_if(of_node, [&](const auto& entry) { return !contested.contains(entry.first); });
    classes[i] = numbers.emplace(of_node, static_cast<int>(numbers.size())).first->second;
  }
  return classes;
}

absl::StatusOr<std::map<std::string, int64_t>> CommonOpsets(const Graph& graph,
                                                            absl::Span<const NodeId> nodes) {
  Opsets common;
  for (const NodeId id : nodes) {
    for (const auto& [domain, version] : OpsetsOf(graph.nodes[id])) {
      const auto [place, is_new] = common.emplace(domain, version);
      if (is_new || place->second == version) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          ShortLabel(graph, graph.nodes[id]), ": want opset ", place->second, " of domain '",
          domain, "', as for the nodes before it, found ", version, "; put it in another segment"));
    }
  }
  return common;
}

std::string ShortLabel(const Graph& graph, const Node& node) {
  const std::string op =
      node.domain.empty() ? node.op_type : absl::StrCat(node.domain, ".", node.op_type);
  if (!node.name.empty()) return absl::StrCat("node '", node.name, "' (", op, ")");
  const auto made = std::find_if(node.outputs.begin(), node.outputs.end(),
                                 [](ValueId output) { return output != kNone; });
  if (made == node.outputs.end()) return absl::StrCat("node (", op, ")");
  return absl::StrCat("node (", op, ") that makes '", graph.values[*made].name, "'");
}

}  // namespace anemone
