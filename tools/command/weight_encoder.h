// tools/command/weight_encoder.h: a constant of floats in a compressed form.
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

// What --compress takes.
std::vector<std::string> CompressionNames();

struct EncodedWeight {
  Tensor tensor;              // compressed; of the weight's type and dims
  int64_t bytes = 0;          // in a file
  double relative_error = 0;  // |w - w'| / |w|, euclidean
};

// `weight` is float32. `channels` is the axis of output channels; `depth` the axis that a product
// runs along, whose neighbours share the scale of a block (-1: all axes behind `channels`, which is
// the first).
//
//   int8       symmetric, an fp16 scale for each output channel
//   palette4   16 entries for the whole weight, chosen by k-means; palette8: 256
//   sparse     what is 0 is left out; nothing is made 0
//   blockwise  4 bits, symmetric, an fp16 scale for each block along the depth
//
// Rounding is numerics.json's cmp-encode and sat-int. kFailedPrecondition: this weight has no such
// form, or takes no less in it; the message says why.
absl::StatusOr<EncodedWeight> EncodeWeight(absl::string_view compression, const Tensor& weight,
                                           int channels, int depth, const math::Numerics& numerics);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_WEIGHT_ENCODER_H_
