// importer/padding/padding_step.h: what the rules of the proof of importer/padding/padding.h work
// with.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_STEP_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_STEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/graph.h"
#include "importer/padding/padding_flow.h"

namespace anemone {

// A node at both sizes.
struct PaddingStep {
  const Graph& bucket_graph;
  const Graph& exact_graph;
  const Node& bucket;
  const Node& exact;
  // What is known of an input that is there; kFailedPrecondition: a constant that depends on the
  // size in a way that padding does not give.
  std::function<absl::StatusOr<Flow>(size_t)> flow;

  // Takes an axis that only a mask keeps the padding of out of the result.
  std::function<void(const FlowStretch&)> rely_on_mask;

  // Sizes in the bucket and in the exact model. None is 0.
  struct Sizes {
    std::vector<int64_t> full, used;
  };
  Sizes InputSizes(size_t i) const;
  Sizes OutputSizes(size_t i) const;
};

// What is known of a node's outputs (those left out too). kFailedPrecondition: why padding gets
// into the rest of one, without the node's name.
using Flows = absl::StatusOr<std::vector<Flow>>;
using PaddingRule = Flows (*)(const PaddingStep&);

// "it sums up from the padded end": kFailedPrecondition.
absl::Status Mixes(absl::string_view how);

Flows One(Flow flow);

absl::StatusOr<size_t> NormalizeAxis(const Flow& flow, int64_t axis);

// Input `i` as integers, if it is the same constant at both sizes.
std::optional<std::vector<int64_t>> SameInts(const PaddingStep& step, size_t i);

// Mixes(how) if an input from `first` on is padded.
absl::Status NoneIsPadded(const PaddingStep& step, size_t first, absl::string_view how);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_STEP_H_
