#include "provider/failed_node.h"

#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "importer/opset/opsets.h"

namespace anemone {
namespace {

constexpr absl::string_view kBeforeOperator = "while running ", kAfterOperator = " node. Name:''";

}  // namespace

bool LacksNodeName(const absl::Status& status) {
  return absl::StrContains(status.message(), kAfterOperator);
}

absl::Status WithFailedNode(const absl::Status& status, const Graph& graph) {
  constexpr size_t kMostListed = 3;
  const absl::string_view message = status.message();
  const size_t after = message.find(kAfterOperator);
  const size_t before = message.rfind(kBeforeOperator, after);
  if (after == absl::string_view::npos || before == absl::string_view::npos) return status;
  if (graph.nodes.empty()) return status;  // ONNX Runtime alone has read the model
  const size_t from = before + kBeforeOperator.size();
  const absl::string_view op = message.substr(from, after - from);
  std::vector<std::string> labels;
  size_t count = 0;
  for (const Node& node : graph.nodes) {
    if (!node.name.empty() || node.op_type != op) continue;
    if (++count <= kMostListed) labels.push_back(ShortLabel(graph, node));
  }
  std::string which;
  if (count > 0) {
    which = absl::StrCat("; the failed node is ", count > 1 ? "one of " : "",
                         absl::StrJoin(labels, ", "),
                         count > kMostListed ? absl::StrCat(" (", count, " in all)") : "");
  } else if (graph.nodes.size() == 1) {  // ONNX Runtime made several nodes of it
    which = absl::StrCat("; the failed node is a part of ", ShortLabel(graph, graph.nodes.front()));
  }
  absl::Status named(status.code(),
                     absl::StrCat(message, which, "; change its inputs or the model"));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { named.SetPayload(type, payload); });
  return named;
}

}  // namespace anemone
