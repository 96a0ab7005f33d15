// kernels/units/reduction.h: for lowerings: sums, means, maxima and minima over axes. A pooling
// window that covers the whole input is lowered to one, too.
#ifndef ANEMONE_KERNELS_UNITS_REDUCTION_H_
#define ANEMONE_KERNELS_UNITS_REDUCTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// The types of the Reduction unit.
enum class ReduceType : uint8_t { kSum, kAvg, kMax, kMin };
absl::Span<const char* const> NamesOf(ReduceType);

// `x` reduced over `axes`, which get extent 1. No unit is added if they all have extent 1.
Operand Reduced(NetworkBuilder& c, const Operand& x, ReduceType type, absl::Span<const Axis> axes);
inline Operand Reduced(NetworkBuilder& c, const Operand& x, ReduceType type, Axis axis) {
  return Reduced(c, x, type, absl::MakeConstSpan(&axis, 1));
}

// The engine axes of ONNX axes first..rank-1.
std::vector<Axis> AxesFrom(int rank, int first);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_REDUCTION_H_
