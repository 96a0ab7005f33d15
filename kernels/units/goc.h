// kernels/units/goc.h: for lowerings: multiplies by a gain and adds an offset (the unit GOC).
#ifndef ANEMONE_KERNELS_UNITS_GOC_H_
#define ANEMONE_KERNELS_UNITS_GOC_H_

#include <optional>
#include <vector>

#include "kernels/lowering.h"

namespace anemone {

// x * scale + bias. Scale and bias are rounded to fp16. A finite number outside the range of fp16
// becomes +-65504, because an infinite gain would turn zeros into NaN. No unit is added if scale is
// 1 and bias is 0, unless x is a uint8 port: this is the unit that converts one.
Operand ScaleAndShift(NetworkBuilder& c, const Operand& x, double scale, double bias);

// A scale as two numbers whose magnitudes are those of normal fp16 numbers. Products with the first
// and then the second stay between x and x * scale, so they fit in fp16 if both do. `first` is a
// power of two, or 1 if fp16 holds the scale. nullopt if the scale is not finite, above 2^28, or
// below 2^-28 (but not 0): then x * scale fits for few x or none.
struct Factors {
  double first = 1, second = 1;
};
std::optional<Factors> FactorsOf(double scale);

// x * scale + bias, by FactorsOf(scale) if there are any. Otherwise as ScaleAndShift().
Operand ScaleInFactors(NetworkBuilder& c, const Operand& x, double scale, double bias);

// ScaleInFactors() by a constant input of `node`; but a mask's factor is not taken apart, since the
// clamped number masks the same elements (kernels/fp16_range.h).
Operand ScaleByInput(LowerContext& c, const Operand& x, const Node& node, size_t input,
                     double scale, double bias);

// ScaleAndShift() with one scale and one bias for each channel of x.
Operand ScaleAndShiftPerChannel(NetworkBuilder& c, const Operand& x,
                                const std::vector<double>& scale, const std::vector<double>& bias);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_GOC_H_
