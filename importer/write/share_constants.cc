#include "importer/write/share_constants.h"

#include <numeric>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace anemone {
namespace {

constexpr size_t kLeastBytes = 1024;

// The bytes that are stored for a dense constant; empty if it is of another form, or small.
absl::string_view StoredBytes(const Value& value) {
  if (!value.constant.has_value()) return "";
  const Tensor& tensor = *value.constant;
  if (tensor.is_fill() || tensor.compressed() != nullptr || tensor.type() == DataType::kString) {
    return "";
  }
  const absl::Span<const std::byte> bytes = tensor.bytes();
  if (bytes.size() < kLeastBytes) return "";
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool IsEqual(const Value& a, const Value& b) {
  const absl::string_view bytes = StoredBytes(a), others = StoredBytes(b);
  return a.constant->type() == b.constant->type() && a.constant->dims() == b.constant->dims() &&
         (bytes.data() == others.data() || bytes == others);
}

}  // namespace

void ShareConstants(Graph& graph) {
  std::vector<ValueId> same(graph.values.size());
  std::iota(same.begin(), same.end(), 0);
  absl::flat_hash_map<size_t, std::vector<ValueId>> by_hash;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const absl::string_view bytes = StoredBytes(graph.values[id]);
    if (bytes.empty()) continue;
    std::vector<ValueId>& candidates = by_hash[absl::HashOf(bytes)];
    for (ValueId other : candidates) {
      if (!IsEqual(graph.values[id], graph.values[other])) continue;
      same[id] = other;
      break;
    }
    if (same[id] == id) candidates.push_back(id);
  }
  for (Node& node : graph.nodes) {
    for (std::vector<ValueId>* read : {&node.inputs, &node.captures}) {
      for (ValueId& id : *read) {
        if (id != kNone) id = same[id];
      }
    }
  }
}

}  // namespace anemone
