// kernels/shared/exact_terms.h: the gain and offset that a unit of the MAC array applies to its
// sums in `exact` mode: its bias combined with the epilogue of the unit that is fused after it
// (numerics.json mac-epilogue, mac-bias-type).
#ifndef ANEMONE_KERNELS_SHARED_EXACT_TERMS_H_
#define ANEMONE_KERNELS_SHARED_EXACT_TERMS_H_

#include <cstdint>
#include <vector>

#include "engine/unit_kind.h"
#include "math/exact/exact_contract.h"

namespace anemone {

class ExactTerms {
 public:
  // The bias is the unit's second weight, if it has one.
  ExactTerms(const ExactUnit& unit, int64_t channels);

  math::ContractTerms view() const { return {gain_, offset_}; }

 private:
  std::vector<float> gain_, offset_;  // empty, or by channel
};

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_EXACT_TERMS_H_
