#include "fallback/opsets.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"

namespace anemone {
namespace {

using Opsets = std::map<std::string, int64_t>;

std::vector<Attribute::GraphPtr> BodiesOf(const Attribute& attribute) {
  if (const auto* body = std::get_if<Attribute::GraphPtr>(&attribute.value)) return {*body};
  if (const auto* bodies = std::get_if<std::vector<Attribute::GraphPtr>>(&attribute.value)) {
    return *bodies;
  }
  return {};
}

// The importer bounds how deep bodies nest.
void AddNewest(const Node& node, Opsets& opsets) {
  int64_t& version = opsets[node.domain];
  version = std::max<int64_t>(version, node.version);
  for (const Attribute& attribute : node.attributes) {
    for (const Attribute::GraphPtr& body : BodiesOf(attribute)) {
      for (const Node& inner : body->nodes) AddNewest(inner, opsets);
    }
  }
}

}  // namespace

std::map<std::string, int64_t> OpsetsOf(const Node& node) {
  Opsets opsets;
  AddNewest(node, opsets);
  return opsets;
}

bool MayShareSegment(const Node& a, const Node& b) {
  const Opsets of_a = OpsetsOf(a);
  for (const auto& [domain, version] : OpsetsOf(b)) {
    const auto found = of_a.find(domain);
    if (found != of_a.end() && found->second != version) return false;
  }
  return true;
}

absl::StatusOr<std::map<std::string, int64_t>> CommonOpsets(const Graph& graph,
                                                            absl::Span<const NodeId> nodes) {
  Opsets common;
  for (const NodeId id : nodes) {
    for (const auto& [domain, version] : OpsetsOf(graph.nodes[id])) {
      const auto [place, is_new] = common.emplace(domain, version);
      if (is_new || place->second == version) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          ShortLabel(graph.nodes[id]), ": want opset ", place->second, " of domain '", domain,
          "', as the nodes before it, found ", version, "; give it a segment of its own"));
    }
  }
  return common;
}

std::string ShortLabel(const Node& node) {
  const std::string op =
      node.domain.empty() ? node.op_type : absl::StrCat(node.domain, ".", node.op_type);
  return node.name.empty() ? absl::StrCat("node (", op, ")")
                           : absl::StrCat("node '", node.name, "' (", op, ")");
}

}  // namespace anemone
