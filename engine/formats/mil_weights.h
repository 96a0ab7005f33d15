// engine/formats/mil_weights.h: how a compressed weight is declared in MIL: by an operation that
// the compiler expands or streams, whose tensors are in the weights file. The operations are
//   constexpr_affine_dequantize: 8-bit codes with scales along one axis, and zero points
//   constexpr_lut_to_dense: palettes, and codes with one scale, as indices into a table
//   constexpr_sparse_to_dense: a bit mask and the values that are not zero
//   constexpr_blockwise_shift_scale: 4-bit codes, or scales by block, and zero points
//
// Facts: numerics.json cmp-order to cmp-block; the spelling: aneforge; the shapes of the tensors:
// coremltools.
#ifndef ANEMONE_ENGINE_FORMATS_MIL_WEIGHTS_H_
#define ANEMONE_ENGINE_FORMATS_MIL_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "anemone/tensor.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_program.h"
#include "engine/target.h"

namespace anemone {

struct MilWeight {
  const char* op = nullptr;
  // The tensors are attributes of the statement, not arguments: an operation of iOS 16.
  bool is_inline = false;
  std::vector<std::pair<std::string, MilValue>> parts;
};

// The value of a constant that is stored in the weights file.
MilValue StoredValue(const Tensor& tensor, MilType type, const MilBlobSink& blobs);

// The declaration of `weight`, whose elements in order are a tensor of `shape`; its tensors are
// stored. The compiler gets the same fp16 numbers as from a dense weight, to the bit. nullopt if
// the weight is not compressed, if the target does not have the form (scales by block, zero points
// by channel), if scales are not fp16 numbers, or if nothing would be saved; the weight is then
// written dense. Without a target, for a node outside of the engine, all forms are written.
std::optional<MilWeight> CompressedMilWeight(const Tensor& weight,
                                             const std::vector<int64_t>& shape,
                                             const Target* target, const MilBlobSink& blobs);

// The statement of a declaration, whose result is `result`. `constant` writes a const statement of
// a part, and returns its name.
MilStatement DeclarationOf(MilWeight weight, MilOutput result,
                           const std::function<std::string(MilValue)>& constant);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_WEIGHTS_H_
