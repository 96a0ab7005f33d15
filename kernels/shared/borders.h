// kernels/shared/borders.h: an operand between more elements along one axis, for lowerings: what
// Padding does along two axes, as a Concat along any.
#ifndef ANEMONE_KERNELS_SHARED_BORDERS_H_
#define ANEMONE_KERNELS_SHARED_BORDERS_H_

#include <cstdint>

#include "kernels/lowering.h"

namespace anemone {

// What stands beside x. kWrap, ONNX's alone, continues from the other side.
enum class Sides : uint8_t { kConstant, kEdge, kReflect, kSymmetric, kWrap };

struct Border {
  Sides sides = Sides::kConstant;
  float value = 0;  // of a constant
};

// What a maximum is padded with: it wins against infinities alone.
inline constexpr float kLowest = -65504;

// `x` with `before` and `after` elements more along `axis`; a number below 1 adds none. Mirrored
// and wrapped ones must be there.
Operand Between(NetworkBuilder& c, const Operand& x, Axis axis, int64_t before, int64_t after,
                const Border& border = {});

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_BORDERS_H_
