// kernels/units/concat.h: joining operands along one axis, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_CONCAT_H_
#define ANEMONE_KERNELS_UNITS_CONCAT_H_

#include <cstdint>
#include <vector>

#include "kernels/lowering.h"

namespace anemone {

// A concatenation of more pieces than this is not made by a rewrite: from about 12 branches on that
// meet in one consumer the compiler's cut search takes seconds (validators.json
// rules_without_text).
inline constexpr int64_t kMostPieces = 12;

// The parts one after the other; they agree on every other axis. No unit for one part.
Operand Concatenated(NetworkBuilder& c, std::vector<Operand> parts, Axis axis);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_CONCAT_H_
