// kernels/units/sdpa.h: the attention unit, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_SDPA_H_
#define ANEMONE_KERNELS_UNITS_SDPA_H_

#include <optional>

#include "kernels/lowering.h"

namespace anemone {

// Where the unit was seen to be right (hidden_layers.json, supplement.reliability): up to 2048 in a
// sequence, and not with 512 of both. Past that it compiles and is wrong.
bool SdpaIsReliable(int64_t queries, int64_t keys);

// C = sequence, H = heads, W = head dim; the mask, which is added, is one plane for all heads:
// C = queries or 1, W = keys.
struct SdpaOperands {
  Operand query, key, value;
  float scale = 1;
  std::optional<Operand> mask;
};

// On the conversion route the unit is an operation that scales by 1 / sqrt(dim) and ignores its
// mask (conflicts.md C-sdpa-mask): anything else is spelled out there.
bool SdpaHasMilForm(const SdpaOperands& in, int64_t dim);

Operand Attended(NetworkBuilder& c, const SdpaOperands& in);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_SDPA_H_
