// kernels/layout/layout_cost.h: compares two forms of a network that differ in layouts.
#ifndef ANEMONE_KERNELS_LAYOUT_LAYOUT_COST_H_
#define ANEMONE_KERNELS_LAYOUT_LAYOUT_COST_H_

#include <cstdint>
#include <optional>

#include "engine/cost.h"
#include "engine/network.h"
#include "engine/target.h"

namespace anemone {

// The units of a network without views.
int64_t CountUnits(const Network& network);

// The time of what differs between two forms of a network, in microseconds of the chip that the
// target's rates are multiples of (engine/tables/costs.json). Each value that a unit reads or
// writes counts as one transfer, in rows that are padded to the target's granule: transposes are
// not free, though a value that stays on the chip costs less.
class LayoutCost {
 public:
  static std::optional<LayoutCost> For(const Target& target);  // nullopt: no rates are published
  double Of(const Network& network) const;

 private:
  LayoutCost(const CostRates& rates, int64_t granule) : rates_(&rates), granule_(granule) {}
  double BytesOfDims(const Dims& dims) const;

  const CostRates* rates_;
  int64_t granule_;
};

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LAYOUT_LAYOUT_COST_H_
