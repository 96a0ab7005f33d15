// engine/software/views.h: finds units that compute nothing, because their output already is in the
// memory of their first bottom: views, which have its bytes with other dims, and slices of elements
// that are next to each other.
//
//   const Views views(network, prepared);
//   const Root root = views.RootOf(operand);
#ifndef ANEMONE_ENGINE_SOFTWARE_VIEWS_H_
#define ANEMONE_ENGINE_SOFTWARE_VIEWS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/network.h"
#include "engine/unit_kind.h"

namespace anemone {

// The prepared data of a unit whose output is the part of its first bottom that begins `offset`
// elements after the first one. The unit can be computed too, and is where values are observed.
Prepared MakeSlice(int64_t offset);

// The operand that owns the bytes of another one, and where these begin in it, in elements.
struct Root {
  Operand operand;
  int64_t offset = 0;
};

class Views {
 public:
  // `prepared` has the data of every unit. If it is empty, slices are computed. A slice that is an
  // output of the network is computed, so that it can be written into the port.
  Views(const Network& network, absl::Span<const Prepared> prepared);

  bool Has(int unit) const { return roots_[unit].operand != Operand{Operand::Source::kUnit, unit}; }
  Root RootOf(const Operand& operand) const {
    if (operand.source != Operand::Source::kUnit) return {operand};
    return roots_[operand.index];
  }

 private:
  std::vector<Root> roots_;  // by unit; a unit that owns its bytes is its own root
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_VIEWS_H_
