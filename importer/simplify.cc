#include "importer/simplify.h"

#include "base/status_macros.h"
#include "importer/infer/fold.h"
#include "importer/infer/infer.h"
#include "importer/passes/pipeline.h"

namespace anemone {

absl::Status Simplify(Model& model, const ImportOptions& options) {
  if (!options.simplify) return Inference(model, {}).InferGraph(model.graph);
  ANEMONE_RETURN_IF_ERROR(InferAndFold(model, options.evaluate, options.gap_in_caches));
  return RunPasses(model, options.stop_after);
}

}  // namespace anemone
