#include "provider/adapters/row_proof.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/padding/padding.h"
#include "importer/read/bindings.h"

namespace anemone {
namespace {

absl::Status Prove(const Bucketing::Import& import, const ImportOptions& options,
                   const std::string& input) {
  ImportOptions free = options;
  free.stop_after = 0;
  free.find_sizes = false;
  free.as_read = nullptr;
  free.dims.clear();
  free.shapes.clear();
  ANEMONE_ASSIGN_OR_RETURN(const Model unbound, import(free));
  const Graph& graph = unbound.graph;
  std::string batch;
  for (const ValueId id : graph.inputs) {
    if (graph.values[id].name == input) batch = graph.values[id].shape->front().symbol;
  }
  const auto at = [&](int64_t rows) {
    ImportOptions sized = free;
    sized.dims = options.dims;
    sized.dims[batch] = rows;
    sized.shapes = options.shapes;
    for (const ValueId id : graph.inputs) {
      const Value& value = graph.values[id];
      const auto given = sized.shapes.find(value.name);
      if (given == sized.shapes.end() || !value.shape) continue;
      const size_t rank = std::min(value.shape->size(), given->second.size());
      for (size_t a = 0; a < rank; ++a) {
        if ((*value.shape)[a].symbol == batch) given->second[a] = -1;
      }
    }
    return import(sized);
  };
  ANEMONE_ASSIGN_OR_RETURN(const Model exact, at(2));
  ANEMONE_ASSIGN_OR_RETURN(const Model padded, at(3));
  const PaddingVerdict verdict = ProvePadding(padded, exact);
  return verdict.proof ? absl::OkStatus() : absl::FailedPreconditionError(verdict.refusal);
}

}  // namespace

Bucketing::Import WithRowProof(Bucketing::Import import, std::string input) {
  return [import = std::move(import),
          input = std::move(input)](const ImportOptions& options) -> absl::StatusOr<Model> {
    ANEMONE_ASSIGN_OR_RETURN(Model model, import(options));
    // Of free sizes, and without rewrites, nothing is planned.
    if (options.only_read || options.stop_after == 0 || !UnboundDims(model).empty()) return model;
    const absl::Status proven = Prove(import, options, input);
    if (proven.ok()) return model;
    return absl::FailedPreconditionError(
        absl::StrCat("adapter: by row: it is not proven that the rows of the batch stay apart: ",
                     proven.message(), "; use one adapter for a run"));
  };
}

}  // namespace anemone
