#include "importer/simplify.h"

#include <algorithm>

#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/infer/fold.h"
#include "importer/infer/infer.h"
#include "importer/last_row.h"
#include "importer/opset/opset.h"
#include "importer/passes/pipeline.h"

namespace anemone {

absl::Status Simplify(Model& model, const ImportOptions& options) {
  // InferAndFold() converts nodes as it visits them, but it may look into a body before that.
  const std::vector<Node>& nodes = model.graph.nodes;
  const bool has_bodies = std::any_of(nodes.begin(), nodes.end(),
                                      [](const Node& node) { return !BodiesOf(node).empty(); });
  if (has_bodies || !options.simplify) ANEMONE_RETURN_IF_ERROR(BringToWorkingOpset(model));
  if (!options.simplify) return Inference(model, {}).InferGraph(model.graph);
  ANEMONE_RETURN_IF_ERROR(InferAndFold(model, options.evaluate, options.gap_in_caches));
  if (options.last_logits) ComputeLastRows(model);
  return RunPasses(model, options.stop_after);
}

}  // namespace anemone
