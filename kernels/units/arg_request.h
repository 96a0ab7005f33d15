// kernels/units/arg_request.h: reads ONNX's ArgMax and ArgMin for the lowerings to the units
// ArgMinMax and GlobalArgMinMax.
#ifndef ANEMONE_KERNELS_UNITS_ARG_REQUEST_H_
#define ANEMONE_KERNELS_UNITS_ARG_REQUEST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/lowering.h"

namespace anemone {

struct ArgRequest {
  bool largest = true;
  bool last = false;  // among equal elements, the index of the last instead of the first
  Operand x;
  int rank = 0;  // of the input
  Axis axis = Axis::kW;
  int64_t count = 1;  // the extent of the axis
};

absl::StatusOr<ArgRequest> ReadArgRequest(LowerContext& c, const Node& node);

// Adds the node's output. `y` holds the indices and has extent 1 along the axis.
absl::Status OutArg(LowerContext& c, const Node& node, const ArgRequest& request, Operand y);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_ARG_REQUEST_H_
