// kernels/units/sort.h: for the units Sort and TopK and for lowerings: the axes of a sort.
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

// One lane, which is an index along the vector axis, decides the order along the sort axis. The
// other lanes are permuted the same way (hidden_layers.json Sort, supplement).
struct SortAxes {
  Axis sort = Axis::kW;
  Axis vector = Axis::kC;
};

// The dims of the sorted values or, if `indices`, of their indices, which have a single lane.
inline absl::StatusOr<Dims> SortedDims(const Dims& in, const SortAxes& axes,
                                       const std::vector<int64_t>& lanes, bool indices) {
  if (axes.sort == axes.vector) {
    return absl::InvalidArgumentError("SortDimension and VectorDimension: want two different axes");
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

// Axes that sort every line along `axis` independently: the vector axis has extent 1.
// Not lowered if no other axis has extent 1.
inline absl::StatusOr<SortAxes> LinesAlong(NetworkBuilder& c, const Dims& dims, Axis axis) {
  for (Axis vector : {Axis::kC, Axis::kD, Axis::kH, Axis::kW, Axis::kN}) {
    if (vector != axis && dims[vector] == 1) return SortAxes{axis, vector};
  }
  return c.NotLowered("a sort of a rank-5 tensor that has no axis of extent 1");
}

// Whether every line along `axes.sort` is sorted independently. MIL's operations do only this.
inline bool SortsLines(const Dims& dims, const SortAxes& axes, const std::vector<int64_t>& lanes) {
  return dims[axes.vector] == 1 && lanes == std::vector<int64_t>{0};
}

// Writes MIL: the first k elements of each sorted line, or their indices. kUnimplemented if k is 3
// or 4, which every target refuses (conflicts.md C-topk-m1).
absl::StatusOr<std::string> WriteTopK(MilEmitter& e, Axis axis, int64_t k, bool descending,
                                      bool indices, const Dims& to);

// A Sort unit: the elements of x with every line along `axes.sort` sorted independently, or their
// indices. Sort needs A14 or later.
Operand Sorted(NetworkBuilder& c, const Operand& x, const SortAxes& axes, bool descending,
               bool indices);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_SORT_H_
