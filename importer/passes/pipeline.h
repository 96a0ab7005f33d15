// importer/passes/pipeline.h: runs the rewrites from ONNX to ONNX. They do not depend on a target.
//
// A pass is one function that looks at one node, and rewrites the graph around it or does nothing.
// It checks its preconditions first, one per line; its first comment says what it does. A pass does
// not change the type or shape of an existing value.
#ifndef ANEMONE_IMPORTER_PASSES_PIPELINE_H_
#define ANEMONE_IMPORTER_PASSES_PIPELINE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "importer/edit.h"
#include "importer/graph.h"

namespace anemone {

struct Pass {
  absl::string_view name;
  // Returns true if it rewrote anything. An error means a bug or an inconsistent graph.
  absl::StatusOr<bool> (*run)(GraphEditor& g, NodeId id);
};

inline constexpr int kMostRounds = 20;

// Runs all passes over the bodies and the main graph, until a round finds nothing to rewrite, but
// at most kMostRounds rounds; if there is still something to rewrite then, a warning
// "pass-not-converged" names the passes. With `stop_after` >= 0, only that many rewrites are made
// in total, so that a wrong one can be found by bisection. Removes unused nodes and values and
// renumbers the rest; nodes stay in order. Errors name the pass.
absl::Status RunPasses(Model& model, int stop_after);

// The same with the given passes, for tests of the driver.
absl::Status RunPasses(Model& model, absl::Span<const Pass> passes, int stop_after);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PASSES_PIPELINE_H_
