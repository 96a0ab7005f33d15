// kernels/layout/layout_cost.h: compares two forms of a network that differ in layouts.
#ifndef ANEMONE_KERNELS_LAYOUT_LAYOUT_COST_H_
#define ANEMONE_KERNELS_LAYOUT_LAYOUT_COST_H_

#include <cstdint>
#include <optional>

#include "engine/cost.h"
#include "engine/network.h"
#include "engine/target.h"

namespace anemone {

// The time of a unit, to compare two forms of a network, in microseconds of the chip that the
// target's rates are multiples of (engine/tables/costs.json): that of the operations of a linear
// layer, and one transfer of each value that the unit reads or writes, in rows that are padded to
// the target's granule. Transposes are not free, though a value that stays on the chip costs less.
class LayoutCost {
 public:
  static std::optional<LayoutCost> For(const Target& target);  // nullopt: no rates are published
  double Of(const Network& network, const Unit& unit) const;

 private:
  LayoutCost(const CostRates& rates, int64_t granule) : rates_(&rates), granule_(granule) {}
  double BytesOfDims(const Dims& dims) const;

  const CostRates* rates_;
  int64_t granule_;
};

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LAYOUT_LAYOUT_COST_H_
