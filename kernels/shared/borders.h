// kernels/shared/borders.h: pads an operand along one axis, for lowerings. The Padding unit pads
// only two axes; this uses Concat and works along any axis.
#ifndef ANEMONE_KERNELS_SHARED_BORDERS_H_
#define ANEMONE_KERNELS_SHARED_BORDERS_H_

#include <cstdint>

#include "kernels/lowering.h"

namespace anemone {

// Padding mode. kWrap, which only ONNX has, continues with the elements from the other end.
enum class Sides : uint8_t { kConstant, kEdge, kReflect, kSymmetric, kWrap };

struct Border {
  Sides sides = Sides::kConstant;
  float value = 0;  // of a constant
};

// Adds `before` elements before and `after` elements after `x` along `axis`; a number below 1 adds
// none. For reflected, symmetric and wrapped padding, x must have enough elements to copy.
Operand Between(NetworkBuilder& c, const Operand& x, Axis axis, int64_t before, int64_t after,
                const Border& border = {});

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_BORDERS_H_
