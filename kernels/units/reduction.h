// kernels/units/reduction.h: sums, means and extremes over axes, for lowerings. A pooling window as
// large as the input is one too.
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

// `x` with the extents of `axes` reduced to 1. Axes that hold one element need no unit.
Operand Reduced(NetworkBuilder& c, const Operand& x, ReduceType type, absl::Span<const Axis> axes);
inline Operand Reduced(NetworkBuilder& c, const Operand& x, ReduceType type, Axis axis) {
  return Reduced(c, x, type, absl::MakeConstSpan(&axis, 1));
}

// Axis `first` of a shape of this rank, and all behind it.
std::vector<Axis> AxesFrom(int rank, int first);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_REDUCTION_H_
