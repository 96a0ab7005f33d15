// kernels/units/transpose.h: moving axes, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_TRANSPOSE_H_
#define ANEMONE_KERNELS_UNITS_TRANSPOSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/lowering.h"

namespace anemone {

class MilEmitter;

// Output axis i is input axis order[i]. A Reshape unit where only axes of extent 1 change places,
// else a Transpose unit; none for the identity.
Operand Permuted(NetworkBuilder& c, const Operand& x, const Permutation& order);

Operand SwapAxes(NetworkBuilder& c, const Operand& x, Axis a, Axis b);

// In MIL: `x`, of rank 4, with its two middle axes exchanged, and so of shape `to`.
std::string WriteSwapped(MilEmitter& e, std::string x, std::vector<int64_t> to);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_TRANSPOSE_H_
