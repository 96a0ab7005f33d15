// importer/padding/padding_rules.h: the rules for how operators treat padding, for the proof of
// importer/padding/padding.h. The rows of importer/operators/operators.h name these rules.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_RULES_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_RULES_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "importer/padding/padding.h"
#include "importer/padding/padding_step.h"

namespace anemone {

// Applies the rule of the operator's row.
Flows CarryPadding(const PaddingStep& step);

// The flow of a constant, given at both sizes. kFailedPrecondition: its used part differs from the
// exact model's constant.
absl::StatusOr<Flow> FlowOfConstant(const Tensor& bucket, const Tensor& exact,
                                    absl::Span<const Gap> gaps);

// The tail of an axis of these sizes; 0: its padding is at the end.
int64_t TailOf(absl::Span<const Gap> gaps, int64_t full, int64_t used);
// As CarryPadding(), of graphs with gaps. Of all rules, only those of constants, Concat and Gather
// depend on where the padding of an axis is.
Flows CarryPaddingWith(const PaddingStep& step, absl::Span<const Gap> gaps);

// padding_moves.cc
Flows CarryReshape(const PaddingStep& step);  // the same elements in the same order
Flows CarryTranspose(const PaddingStep& step);
Flows CarryGrowth(const PaddingStep& step);  // Expand and Tile
Flows CarrySlice(const PaddingStep& step);
Flows CarrySplit(const PaddingStep& step);
Flows CarryConcat(const PaddingStep& step);
Flows CarryGather(const PaddingStep& step);
Flows CarryPad(const PaddingStep& step);

// padding_rules.cc
Flows CarryProduct(const PaddingStep& step);  // element by element, including x * x
Flows CarryCast(const PaddingStep& step);
Flows CarryClip(const PaddingStep& step);
Flows CarryMatMul(const PaddingStep& step);
Flows CarryGemm(const PaddingStep& step);
Flows CarrySoftmax(const PaddingStep& step);
Flows CarryTrailing(const PaddingStep& step);  // a normalization of the last axes
Flows CarryBatch(const PaddingStep& step);     // over all axes except the first, the batch
Flows CarryResize(const PaddingStep& step);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_RULES_H_
