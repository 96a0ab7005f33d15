// kernels/units/concat.h: for lowerings: concatenates operands along one axis.
#ifndef ANEMONE_KERNELS_UNITS_CONCAT_H_
#define ANEMONE_KERNELS_UNITS_CONCAT_H_

#include <cstdint>
#include <vector>

#include "kernels/lowering.h"

namespace anemone {

// The most pieces that a rewrite concatenates. If about 12 or more branches meet in one consumer,
// the compiler's cut search takes seconds (validators.json rules_without_text).
inline constexpr int64_t kMostPieces = 12;

// Concatenates the parts, which have the same extents along every other axis. No unit is added for
// a single part.
Operand Concatenated(NetworkBuilder& c, std::vector<Operand> parts, Axis axis);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_CONCAT_H_
