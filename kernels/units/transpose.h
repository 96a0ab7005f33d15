// kernels/units/transpose.h: for lowerings: permutes axes.
#ifndef ANEMONE_KERNELS_UNITS_TRANSPOSE_H_
#define ANEMONE_KERNELS_UNITS_TRANSPOSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/lowering.h"

namespace anemone {

class MilEmitter;

// Output axis i is input axis order[i]. Adds a Reshape unit if only axes of extent 1 move,
// otherwise a Transpose unit. No unit is added for the identity.
Operand Permuted(NetworkBuilder& c, const Operand& x, const Permutation& order);

Operand SwapAxes(NetworkBuilder& c, const Operand& x, Axis a, Axis b);

// Writes MIL: exchanges the two middle axes of `x`, which has rank 4. The result has shape `to`.
std::string WriteSwapped(MilEmitter& e, std::string x, std::vector<int64_t> to);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_TRANSPOSE_H_
