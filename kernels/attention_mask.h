// kernels/attention_mask.h: the masks of an attention as the unit takes them, one plane for all
// heads that is added to the scores (C = queries or 1, W = keys), for lowerings.
#ifndef ANEMONE_KERNELS_ATTENTION_MASK_H_
#define ANEMONE_KERNELS_ATTENTION_MASK_H_

#include <optional>

#include "kernels/attention.h"

namespace anemone {

struct MaskOperands {
  std::optional<Operand> mask;  // none: nothing is masked
  // 1 for each query (C) whose result stays, 0 where it is set to 0; none: all stay.
  std::optional<Operand> kept;
};

// kUnimplemented: a mask that differs from head to head.
absl::StatusOr<MaskOperands> MaskOperandsOf(LowerContext& c, const Attention& form, int64_t queries,
                                            int64_t keys);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ATTENTION_MASK_H_
