// importer/padding_rules.h: how each operator treats padding, for the proof of importer/padding.h.
#ifndef ANEMONE_IMPORTER_PADDING_RULES_H_
#define ANEMONE_IMPORTER_PADDING_RULES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "importer/graph.h"
#include "importer/padding_flow.h"

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

// What is known of the node's outputs (those left out too). kFailedPrecondition: why padding gets
// into the rest of one, without the node's name.
absl::StatusOr<std::vector<Flow>> CarryPadding(const PaddingStep& step);

// A constant at both sizes. kFailedPrecondition: its used part is not that of the exact model.
absl::StatusOr<Flow> FlowOfConstant(const Tensor& bucket, const Tensor& exact);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_RULES_H_
