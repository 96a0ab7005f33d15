#include "kernels/mil/mil_compressed.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "importer/elements.h"

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;
using Parts = std::map<std::string, MilPart>;

constexpr int64_t kMostScales = int64_t{1} << 28;

struct Operation {
  absl::string_view op;
  const char* like;
  absl::StatusOr<Compressed::Ptr> (*read)(const Parts&, const Sizes&);
};

const MilPart* Find(const Parts& parts, const char* name) {
  const auto found = parts.find(name);
  return found == parts.end() ? nullptr : &found->second;
}

absl::StatusOr<const MilPart*> Need(const Parts& parts, const char* name) {
  const MilPart* part = Find(parts, name);
  if (part != nullptr) return part;
  return absl::InvalidArgumentError(absl::StrCat("want the constant '", name, "'"));
}

absl::StatusOr<Tensor> FloatsOf(const Parts& parts, const char* name) {
  ANEMONE_ASSIGN_OR_RETURN(const MilPart* part, Need(parts, name));
  if (!IsFloating(part->tensor.type())) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "': want fp16"));
  }
  return Tensor::Floats(part->tensor.dims(), RoundedFloats(part->tensor));
}

// The zero points as integers of the codes' type, in the shape of the scales. An undefined tensor
// if there are none.
absl::StatusOr<Tensor> ZerosOf(const Parts& parts, const char* name, DataType type, Sizes dims) {
  const MilPart* part = Find(parts, name);
  if (part == nullptr) return Tensor();
  ANEMONE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(dims));
  const auto numbers = ToNumbers(part->tensor, kMostScales);
  if (!numbers || (numbers->size() != 1 && static_cast<int64_t>(numbers->size()) != count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "': want one number, or one for each scale"));
  }
  if (BitsOf(type) < 8) {
    if (part->tensor.type() != type || static_cast<int64_t>(numbers->size()) != count) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "': want the type of the codes"));
    }
    return part->tensor.Reshaped(std::move(dims));
  }
  Tensor zeros = Tensor::Zeros(type, std::move(dims));
  for (int64_t i = 0; i < count; ++i) {
    const double number = (*numbers)[numbers->size() == 1 ? 0 : i];
    zeros.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(static_cast<int64_t>(number));
  }
  return zeros;
}

absl::StatusOr<Tensor> CodesOf(const Parts& parts, const char* name) {
  ANEMONE_ASSIGN_OR_RETURN(const MilPart* part, Need(parts, name));
  if (IsCodeType(part->tensor.type())) return part->tensor;
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "': want int8, uint8, int4 or uint4, not ", part->dtype));
}

absl::StatusOr<Compressed::Ptr> ReadAffine(const Parts& parts, const Sizes& shape) {
  ANEMONE_ASSIGN_OR_RETURN(const Tensor codes, CodesOf(parts, "quantized_data"));
  ANEMONE_ASSIGN_OR_RETURN(const Tensor scales, FloatsOf(parts, "scale"));
  ANEMONE_ASSIGN_OR_RETURN(const Tensor zeros,
                           ZerosOf(parts, "zero_point", codes.type(), scales.dims()));
  int64_t axis = 0;
  if (const MilPart* part = Find(parts, "axis"); part != nullptr) {
    const auto number = ToNumbers(part->tensor, 1);
    if (!number || number->size() != 1) return absl::InvalidArgumentError("'axis': want an int32");
    axis = static_cast<int64_t>((*number)[0]);
  }
  ANEMONE_ASSIGN_OR_RETURN(const ScaleGrid grid, ScaleGrid::Of(shape, scales.dims(), axis, 0));
  return Compressed::Affine(codes, scales, zeros, grid);
}

absl::StatusOr<Compressed::Ptr> ReadPalette(const Parts& parts, const Sizes&) {
  ANEMONE_ASSIGN_OR_RETURN(const Tensor codes, CodesOf(parts, "indices"));
  ANEMONE_ASSIGN_OR_RETURN(const Tensor table, FloatsOf(parts, "lut"));
  if (table.elements() != int64_t{1} << BitsOf(codes.type())) {
    return absl::UnimplementedError("several palettes, or palettes of vectors");
  }
  return Compressed::Palette(codes, table.Reshaped({table.elements()}));
}

absl::StatusOr<Compressed::Ptr> ReadSparse(const Parts& parts, const Sizes& shape) {
  ANEMONE_ASSIGN_OR_RETURN(const MilPart* mask, Need(parts, "mask"));
  ANEMONE_ASSIGN_OR_RETURN(const Tensor values, FloatsOf(parts, "nonzero_data"));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
  const absl::Span<const std::byte> bytes = mask->tensor.bytes();
  if (mask->dtype != "uint1" || static_cast<int64_t>(bytes.size()) != (elements + 7) / 8) {
    return absl::InvalidArgumentError("'mask': want uint1, one bit for each element");
  }
  std::vector<uint64_t> words((elements + 63) / 64);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const std::vector<float> floats = RoundedFloats(values);
  return Compressed::Masked(elements, std::move(words), floats);
}

// The shape of the scales has one, or all elements of each axis, or blocks of one axis.
absl::StatusOr<ScaleGrid> GridOf(const Sizes& shape, const Sizes& scales) {
  const auto wrong = absl::InvalidArgumentError(
      "'scale': want the rank of the data, and extents that divide those of the data");
  if (scales.size() != shape.size()) return wrong;
  std::optional<size_t> axis;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (scales[i] < 1 || shape[i] % scales[i] != 0) return wrong;
    if (scales[i] == 1 || scales[i] == shape[i]) continue;
    if (axis) return absl::UnimplementedError("blocks along several axes");
    axis = i;
  }
  // Without blocks, the first axis with several scales takes their place.
  for (size_t i = 0; i < shape.size() && !axis; ++i) {
    if (scales[i] > 1) axis = i;
  }
  if (!axis) axis = 0;
  ScaleGrid grid{.axis = shape[*axis], .block = shape[*axis] / scales[*axis]};
  int64_t outer = 1, outer_scales = 1, inner_scales = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < *axis) outer *= shape[i], outer_scales *= scales[i];
    if (i > *axis) grid.inner *= shape[i], inner_scales *= scales[i];
  }
  const bool is_merged = (outer_scales == 1 || outer_scales == outer) &&
                         (inner_scales == 1 || inner_scales == grid.inner);
  if (!is_merged) return absl::UnimplementedError("scales of some of the axes beside the blocks");
  grid.inner_stride = inner_scales > 1 ? 1 : 0;
  grid.axis_stride = scales[*axis] > 1 ? inner_scales : 0;
  grid.outer_stride = outer_scales > 1 ? scales[*axis] * inner_scales : 0;
  return grid;
}

absl::StatusOr<Compressed::Ptr> ReadBlockwise(const Parts& parts, const Sizes& shape) {
  ANEMONE_ASSIGN_OR_RETURN(const Tensor codes, CodesOf(parts, "data"));
  ANEMONE_ASSIGN_OR_RETURN(const Tensor scales, FloatsOf(parts, "scale"));
  ANEMONE_ASSIGN_OR_RETURN(const Tensor zeros,
                           ZerosOf(parts, "offset", codes.type(), scales.dims()));
  ANEMONE_ASSIGN_OR_RETURN(const ScaleGrid grid, GridOf(shape, scales.dims()));
  return Compressed::Affine(codes, scales, zeros, grid);
}

constexpr Operation kOperations[] = {
    {"constexpr_affine_dequantize", "quantized_data", ReadAffine},
    {"constexpr_lut_to_dense", "indices", ReadPalette},
    {"constexpr_sparse_to_dense", "mask", ReadSparse},
    {"constexpr_blockwise_shift_scale", "data", ReadBlockwise},
};

const Operation* FindOperation(absl::string_view op) {
  const Operation* found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                        [&](const Operation& row) { return row.op == op; });
  return found == std::end(kOperations) ? nullptr : found;
}

}  // namespace

bool DeclaresWeight(absl::string_view op) { return FindOperation(op) != nullptr; }

const char* LikeOf(absl::string_view op) { return FindOperation(op)->like; }

absl::StatusOr<Tensor> CompressedWeight(absl::string_view op, const Parts& parts) {
  const Operation& row = *FindOperation(op);
  ANEMONE_ASSIGN_OR_RETURN(const MilPart* like, Need(parts, row.like));
  for (const auto& [name, part] : parts) {
    if (part.tensor.is_fill()) return ZeroFill(DataType::kFloat16, like->shape);
  }
  ANEMONE_ASSIGN_OR_RETURN(Compressed::Ptr made, row.read(parts, like->shape));
  return Tensor::Of(like->shape, std::move(made));
}

}  // namespace anemone
