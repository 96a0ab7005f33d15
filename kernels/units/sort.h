// kernels/units/sort.h: what Sort and TopK share.
#ifndef ANEMONE_KERNELS_UNITS_SORT_H_
#define ANEMONE_KERNELS_UNITS_SORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/dims.h"
#include "engine/network_builder.h"
#include "kernels/shared/element_format.h"

namespace anemone {

class MilEmitter;

// The order is that of one lane (of the vector axis) along the sort axis; all lanes follow it
// (hidden_layers.json Sort, supplement).
struct SortAxes {
  Axis sort = Axis::kW;
  Axis vector = Axis::kC;
};

// The dims of what is sorted; of the indices, which are those of one lane.
inline absl::StatusOr<Dims> SortedDims(const Dims& in, const SortAxes& axes,
                                       const std::vector<int64_t>& lanes, bool indices) {
  if (axes.sort == axes.vector) {
    return absl::InvalidArgumentError("SortDimension and VectorDimension: want two axes");
  }
  for (int64_t lane : lanes) {
    if (lane < 0 || lane >= in[axes.vector]) {
      return absl::InvalidArgumentError(
          absl::StrCat("SortIndices: no lane ", lane, " along ", AxisName(axes.vector)));
    }
  }
  Dims out = in;
  if (indices) out[axes.vector] = 1;
  return out;
}

// Axes that sort every line along `axis` for itself: a vector axis of extent 1. kUnimplemented if
// there is none.
inline absl::StatusOr<SortAxes> LinesAlong(const Dims& dims, Axis axis) {
  for (Axis vector : {Axis::kC, Axis::kD, Axis::kH, Axis::kW, Axis::kN}) {
    if (vector != axis && dims[vector] == 1) return SortAxes{axis, vector};
  }
  return absl::UnimplementedError("a sort of rank 5 without an axis of extent 1");
}

// Every line along `axes.sort` is sorted for itself, which is all that MIL's operations do.
inline bool SortsLines(const Dims& dims, const SortAxes& axes, const std::vector<int64_t>& lanes) {
  return dims[axes.vector] == 1 && lanes == std::vector<int64_t>{0};
}

// In MIL: the first k of each line in order, or their indices. kUnimplemented: K of 3 or 4, which
// no target takes (conflicts.md C-topk-m1).
absl::StatusOr<std::string> WriteTopK(MilEmitter& e, Axis axis, int64_t k, bool descending,
                                      bool indices, const Dims& to);

// A Sort unit's elements of x, every line along `axes.sort` for itself, or their indices. Sort is
// native from A14.
Operand Sorted(NetworkBuilder& c, const Operand& x, const SortAxes& axes, bool descending,
               bool indices);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_SORT_H_
