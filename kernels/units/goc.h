// kernels/units/goc.h: for lowerings: multiplies by a gain and adds an offset (the unit GOC).
#ifndef ANEMONE_KERNELS_UNITS_GOC_H_
#define ANEMONE_KERNELS_UNITS_GOC_H_

#include <vector>

#include "kernels/lowering.h"

namespace anemone {

// x * scale + bias. Scale and bias are rounded to fp16. A finite number outside the range of fp16
// becomes +-65504, because an infinite gain would turn zeros into NaN. No unit is added if scale is
// 1 and bias is 0, unless x is a uint8 port: this is the unit that converts one.
Operand ScaleAndShift(NetworkBuilder& c, const Operand& x, double scale, double bias);

// The same with one scale and one bias for each channel of x.
Operand ScaleAndShiftPerChannel(NetworkBuilder& c, const Operand& x,
                                const std::vector<double>& scale, const std::vector<double>& bias);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_GOC_H_
