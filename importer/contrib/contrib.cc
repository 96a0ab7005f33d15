#include "importer/contrib/contrib.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/operators/operators.h"

namespace anemone {

bool IsContrib(const Node& node) { return OperatorOf(node).contrib.has_value(); }

namespace {

absl::Status Expand(ContribBody& body) {
  const Contrib& row = *OperatorOf(body.node()).contrib;
  for (size_t i = 0; row.required >> i != 0; ++i) {
    const bool fits = (row.required >> i & 1) == 0 || body.Has(i);
    ANEMONE_RETURN_IF_ERROR(body.Need(fits, absl::StrCat("input ", i, " is missing")));
  }
  std::optional<DataType> type;
  for (size_t i = 0; row.alike >> i != 0; ++i) {
    if ((row.alike >> i & 1) == 0 || !body.Has(i)) continue;
    const DataType own = body.value(body.input(i)).type;
    ANEMONE_RETURN_IF_ERROR(
        body.Need(own == type.value_or(own),
                  absl::StrCat("input ", i, " has a different type from the inputs before it")));
    type = own;
  }
  return row.expand(body);
}

}  // namespace

absl::StatusOr<std::optional<std::string>> ExpandContrib(ContribBody& body) {
  const absl::Status status = Expand(body);
  if (body.kept()) return body.kept();
  ANEMONE_RETURN_IF_ERROR(status);
  return std::nullopt;
}

std::vector<onnx::TypeProto> InferContrib(const Graph& graph, const Node& node) {
  const std::optional<Contrib>& row = OperatorOf(node).contrib;
  return row ? row->infer(graph, node) : std::vector<onnx::TypeProto>();
}

}  // namespace anemone
