// kernels/mil/mil_network.h: a MIL program as a network, statement by statement through the
// operations of mil.h.
#ifndef ANEMONE_KERNELS_MIL_MIL_NETWORK_H_
#define ANEMONE_KERNELS_MIL_MIL_NETWORK_H_

#include <functional>

#include "absl/status/status.h"
#include "engine/formats/mil_program.h"
#include "engine/network_builder.h"

namespace anemone {

// The tensor of the weights file that `blob` names, as a view of the file.
using MilBlobSource =
    std::function<absl::StatusOr<Tensor>(const MilBlob&, DataType, std::vector<int64_t> dims)>;

// Appends what `program` computes to `c`, on c's target and the conversion route, cleaned up.
// Errors: kInvalidArgument (a statement that makes no sense, with its number), kUnimplemented (one
// that is not lowered), and c.refusal() if the target refuses one.
absl::Status ReadMilProgram(const MilProgram& program, const MilBlobSource& blobs,
                            NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_NETWORK_H_
