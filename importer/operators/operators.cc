#include "importer/operators/operators.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "importer/operators/families.h"

namespace anemone {
namespace {

using Name = std::pair<absl::string_view, absl::string_view>;  // domain and operator

// Few operators have the same name in two domains.
struct HashOfOperator {
  size_t operator()(const Name& name) const { return absl::HashOf(name.second); }
};

constexpr absl::Span<const Operator> (*kFamilies[])() = {ElementwiseOperators, MovingOperators,
                                                         LayerOperators, ContribOperators};

}  // namespace

std::vector<const Operator*> AllOperators() {
  std::vector<const Operator*> rows;
  for (const auto& family : kFamilies) {
    for (const Operator& row : family()) rows.push_back(&row);
  }
  return rows;
}

const Operator* FindOperator(absl::string_view domain, absl::string_view op_type) {
  static const auto& rows = *[] {
    auto* by_name = new absl::flat_hash_map<Name, const Operator*, HashOfOperator>;
    for (const Operator* row : AllOperators())
      by_name->emplace(Name(row->domain, row->op_type), row);
    return by_name;
  }();
  const auto found = rows.find(Name(domain, op_type));
  return found == rows.end() ? nullptr : found->second;
}

const Operator& OperatorOf(const Node& node) {
  static constexpr Operator kNothing;
  const Operator* row = FindOperator(node.domain, node.op_type);
  return row == nullptr ? kNothing : *row;
}

bool IsSizedInRun(const Graph& graph, const Node& node) {
  const unsigned sizes = OperatorOf(node).sizes;
  for (size_t i = 0; i < node.inputs.size() && sizes >> i != 0; ++i) {
    const ValueId id = node.inputs[i];
    if ((sizes >> i & 1) != 0 && id != kNone && !graph.values[id].constant) return true;
  }
  return false;
}

}  // namespace anemone
