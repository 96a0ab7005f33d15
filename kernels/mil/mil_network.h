// kernels/mil/mil_network.h: converts a MIL program to a network. Each statement is a call of an
// operation of kernels/mil.h.
#ifndef ANEMONE_KERNELS_MIL_MIL_NETWORK_H_
#define ANEMONE_KERNELS_MIL_MIL_NETWORK_H_

#include <functional>

#include "absl/status/status.h"
#include "engine/formats/mil_program.h"
#include "engine/network_builder.h"

namespace anemone {

// Returns the tensor at `blob` in the weights file, as a view of the file.
using MilBlobSource =
    std::function<absl::StatusOr<Tensor>(const MilBlob&, DataType, std::vector<int64_t> dims)>;

// Appends the units of `program` to `c`, for the target of `c` and the conversion route, and
// removes redundant units. Errors: kInvalidArgument (a statement is malformed; the message has its
// number). If the target refuses a statement, or Anemone has no lowering for it, c.refusal() is
// set.
absl::Status ReadMilProgram(const MilProgram& program, const MilBlobSource& blobs,
                            NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_NETWORK_H_
