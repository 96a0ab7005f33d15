// kernels/units/sdpa.h: for lowerings: scaled dot-product attention (the unit SDPA).
#ifndef ANEMONE_KERNELS_UNITS_SDPA_H_
#define ANEMONE_KERNELS_UNITS_SDPA_H_

#include <optional>

#include "kernels/lowering.h"

namespace anemone {

// Whether the unit is known to compute correct results at this size: sequences of up to 2048, but
// not 512 queries with 512 keys. Other sizes compile but give wrong results (hidden_layers.json,
// supplement.reliability).
bool SdpaIsReliable(int64_t queries, int64_t keys);

// The operands of one attention: C = sequence, H = heads, W = head dimension. The mask is added to
// the scores. It is one plane for all heads: C = queries or 1, W = keys.
struct SdpaOperands {
  Operand query, key, value;
  float scale = 1;
  std::optional<Operand> mask;
};

// Whether MIL's attention operation computes this. It scales by 1 / sqrt(dim) and ignores its mask
// (conflicts.md C-sdpa-mask). On route mil, other forms are lowered to several units instead.
bool SdpaHasMilForm(const SdpaOperands& in, int64_t dim);

// softmax(query * key^T * scale + mask) * value.
Operand Attended(NetworkBuilder& c, const SdpaOperands& in);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_SDPA_H_
