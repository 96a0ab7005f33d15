// kernels/mil/mil_compressed.h: reads the operations that declare a compressed weight
// (engine/formats/mil_weights.h writes them).
#ifndef ANEMONE_KERNELS_MIL_MIL_COMPRESSED_H_
#define ANEMONE_KERNELS_MIL_MIL_COMPRESSED_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"

namespace anemone {

// A constant of the operation. `tensor` has the type that `dtype` names; "uint1" has bytes of eight
// elements each, and integers in the text are int64.
struct MilPart {
  std::string dtype;
  std::vector<int64_t> shape;
  Tensor tensor;
};

// True for constexpr_affine_dequantize, constexpr_lut_to_dense, constexpr_sparse_to_dense and
// constexpr_blockwise_shift_scale.
bool DeclaresWeight(absl::string_view op);

// The name of the part with the shape of the weight. The operation must be one of these.
const char* LikeOf(absl::string_view op);

// The weight, compressed. If a part is a fill, its values do not matter, and the result is a fill
// of zeros. Errors: kInvalidArgument (a part is missing or does not fit), kUnimplemented (a form
// that Anemone does not have: palettes of vectors, several palettes, blocks along two axes).
absl::StatusOr<Tensor> CompressedWeight(absl::string_view op,
                                        const std::map<std::string, MilPart>& parts);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_COMPRESSED_H_
