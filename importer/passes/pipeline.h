// importer/passes/pipeline.h: the passes from ONNX to ONNX, blind to targets, and their driver.
//
// A pass is one function that looks at one node and rewrites around it or does nothing.
// Preconditions come first, a line each; the contract is its first comment. A pass leaves types and
// shapes of every value as they are; new constants bring their own.
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
  // Whether it rewrote anything. An error means a bug or a damaged graph.
  absl::StatusOr<bool> (*run)(GraphEditor& g, NodeId id);
};

inline constexpr int kMostRounds = 20;

// Runs all passes over bodies and main graph, round after round until none finds anything, at most
// kMostRounds: then a warning "pass-not-converged" names the passes still at work. With
// `stop_after` >= 0 that many rewrites are made in all, so a wrong one is found by halving. Drops
// what went out of use and renumbers; nodes stay in order. Errors name the pass.
absl::Status RunPasses(Model& model, int stop_after);

// The same with other passes than ours, for tests of the driver.
absl::Status RunPasses(Model& model, absl::Span<const Pass> passes, int stop_after);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PASSES_PIPELINE_H_
