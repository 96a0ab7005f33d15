// kernels/units/goc.h: gain and offset, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_GOC_H_
#define ANEMONE_KERNELS_UNITS_GOC_H_

#include <vector>

#include "kernels/lowering.h"

namespace anemone {

// x * scale + bias, both rounded to fp16 (a finite one that fp16 cannot hold to +-65504: an
// infinite gain would make NaN of zeros). No unit if scale is 1 and bias 0.
Operand ScaleAndShift(NetworkBuilder& c, const Operand& x, double scale, double bias);

// Likewise, with a scale and a bias for every channel of x.
Operand ScaleAndShiftPerChannel(NetworkBuilder& c, const Operand& x,
                                const std::vector<double>& scale, const std::vector<double>& bias);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_GOC_H_
