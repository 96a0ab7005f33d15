// importer/padding/padding_rules.h: how each operator treats padding, for the proof of
// importer/padding/padding.h.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_RULES_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_RULES_H_

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "importer/padding/padding_step.h"

namespace anemone {

// The rule of the node's operator, applied.
Flows CarryPadding(const PaddingStep& step);

// A constant at both sizes. kFailedPrecondition: its used part is not that of the exact model.
absl::StatusOr<Flow> FlowOfConstant(const Tensor& bucket, const Tensor& exact);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_RULES_H_
