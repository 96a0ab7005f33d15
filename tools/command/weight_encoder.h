// tools/command/weight_encoder.h: compresses a constant of float32 values, for `anemone compile`.
#ifndef ANEMONE_TOOLS_COMMAND_WEIGHT_ENCODER_H_
#define ANEMONE_TOOLS_COMMAND_WEIGHT_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"
#include "numerics.h"  // generated

namespace anemone {

// The values of --compress.
std::vector<std::string> CompressionNames();

struct EncodedWeight {
  Tensor tensor;              // compressed; of the weight's type and dims
  int64_t bytes = 0;          // in an ONNX file
  double relative_error = 0;  // |w - w'| / |w|, euclidean
};

// The bytes that a constant takes in an ONNX file, without names.
int64_t FileBytes(const Tensor& constant);

// `weight` is float32. `channels` is the axis of output channels. `depth` is the axis that a matrix
// product sums over; adjacent elements along it share the scale of a block. -1 means all axes after
// `channels`, which is then the first axis.
//
//   int8       symmetric, an fp16 scale for each output channel
//   palette4   16 entries for the whole weight, chosen by k-means; palette8: 256
//   sparse     zeros are omitted; no other value is changed to 0
//   blockwise  4 bits, symmetric, an fp16 scale for each block along the depth
//
// Rounding follows numerics.json's cmp-encode and sat-int. kFailedPrecondition: the weight cannot
// be written in this form, or is not smaller in it; the message says why.
absl::StatusOr<EncodedWeight> EncodeWeight(absl::string_view compression, const Tensor& weight,
                                           int channels, int depth, const math::Numerics& numerics);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_WEIGHT_ENCODER_H_
