// importer/padding/padding_step.h: the arguments and helpers of the rules for the proof of
// importer/padding/padding.h.
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
  // The flow of an input, which must be present. kFailedPrecondition: a constant that depends on
  // the size in a way that padding cannot explain.
  std::function<absl::StatusOr<Flow>(size_t)> flow;

  // Called for an axis whose padding is excluded from the result only by a mask.
  // kFailedPrecondition: the mask also depends on an input without that axis, so it may mask rows
  // as a whole.
  std::function<absl::Status(const FlowStretch&)> rely_on_mask;
  // Called for a value of positions that must not be negative. kFailedPrecondition: it is not an
  // input of the graph with other axes or another type.
  std::function<absl::Status(ValueId)> rely_on_positions;

  // Sizes in the bucket and in the exact model. No size is 0.
  struct Sizes {
    std::vector<int64_t> full, used;
  };
  Sizes InputSizes(size_t i) const;
  Sizes OutputSizes(size_t i) const;
};

// The flows of a node's outputs, including omitted ones. kFailedPrecondition: the reason why
// padding affects the rest of an output, without the node's name.
using Flows = absl::StatusOr<std::vector<Flow>>;
using PaddingRule = Flows (*)(const PaddingStep&);

// kFailedPrecondition with the message "it <how>", such as "it splits the padded axis".
absl::Status Mixes(absl::string_view how);

Flows One(Flow flow);

absl::StatusOr<size_t> NormalizeAxis(const Flow& flow, int64_t axis);

// Input `i` as integers, if it is the same constant at both sizes.
std::optional<std::vector<int64_t>> SameInts(const PaddingStep& step, size_t i);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_STEP_H_
