// kernels/units/l2_normalization.h: for lowerings: divides by the root of a sum of squares.
#ifndef ANEMONE_KERNELS_UNITS_L2_NORMALIZATION_H_
#define ANEMONE_KERNELS_UNITS_L2_NORMALIZATION_H_

#include <vector>

#include "kernels/lowering.h"

namespace anemone {

// x / sqrt(sum of x^2 over `axes` + epsilon).
Operand L2Normalized(NetworkBuilder& c, const Operand& x, std::vector<Axis> axes, float epsilon);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_L2_NORMALIZATION_H_
