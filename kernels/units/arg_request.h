// kernels/units/arg_request.h: what ONNX's ArgMax and ArgMin ask for, of either unit that gives
// indices of extremes.
#ifndef ANEMONE_KERNELS_UNITS_ARG_REQUEST_H_
#define ANEMONE_KERNELS_UNITS_ARG_REQUEST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/lowering.h"

namespace anemone {

struct ArgRequest {
  bool largest = true;
  bool last = false;  // of equal elements, not the first
  Operand x;
  int rank = 0;  // of the input
  Axis axis = Axis::kW;
  int64_t count = 1;  // the axis's extent
};

absl::StatusOr<ArgRequest> ReadArgRequest(LowerContext& c, const Node& node);

// `y`, the indices with an extent of 1 along the axis, as the node's output.
absl::Status OutArg(LowerContext& c, const Node& node, const ArgRequest& request, Operand y);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_ARG_REQUEST_H_
