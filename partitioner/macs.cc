#include "partitioner/macs.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "importer/operators/operators.h"
#include "importer/row_writes.h"
#include "kernels/lowering.h"

namespace anemone {
namespace {

constexpr absl::string_view kMicrosoft = "com.microsoft";

bool IsStatic(const Graph& graph, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId v) { return v == kNone || graph.values[v].is_static(); });
}

}  // namespace

std::optional<int64_t> KnownMacsOf(const Graph& graph, const Node& node) {
  const auto& rows = LoweringsOf(node.domain, node.op_type);
  const bool counted = std::any_of(rows.begin(), rows.end(),
                                   [](const Lowering* row) { return row->macs != nullptr; });
  if (counted) {
    if (!IsStatic(graph, node.inputs) || !IsStatic(graph, node.outputs)) return std::nullopt;
    return MacsOf(graph, node);
  }
  // Nobody but its author knows the work of a custom operator.
  const bool is_custom = rows.empty() && !node.domain.empty() && !WritesRows(node) &&
                         !absl::StartsWith(node.domain, "ai.onnx.") &&
                         !absl::StartsWith(node.domain, kMicrosoft);
  if (is_custom) return std::nullopt;
  return OperatorOf(node).unknown_macs ? std::nullopt : std::optional<int64_t>(0);
}

}  // namespace anemone
