// MIL operations that produce a constant: const, and constexpr_*, which declares a compressed
// weight. On some families the engine streams the compressed form natively. Otherwise the compiler
// expands the weight to dense fp16, so the operation does not exist on the engine; with rewrites
// allowed, the dense constant is used. Facts: op_matrix.json quant_dtype; validators.json
// rules_without_text.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

constexpr int kNever = 1000;  // higher than every family

struct ConstantOperation {
  const char* op;
  const char* like;  // the argument with the shape of the dense tensor, unless `shape` is given
  int floor;         // the first family that streams it; kNever if none does
};

constexpr ConstantOperation kConstants[] = {
    {"const", "val", kNever},
    {"constexpr_affine_dequantize", "quantized_data", kNever},
    {"constexpr_lut_to_dense", "indices", 2},
    {"constexpr_lut_to_sparse", "indices_mask", kNever},
    {"constexpr_blockwise_shift_scale", "data", 4},
    {"constexpr_sparse_blockwise_shift_scale", "data_mask", 4},
    {"constexpr_sparse_to_dense", "mask", 2},
};

// Checks the number of entries and the vector length of a palette.
absl::Status CheckPalette(MilContext& c, const std::vector<int64_t>& lut) {
  if (lut.empty()) return absl::InvalidArgumentError("'lut': want at least one axis");
  const int64_t entries = lut.size() == 1 ? lut[0] : lut[lut.size() - 2];
  constexpr int64_t kByBits[] = {2, 4, 8, 16, 64, 256};  // for 1, 2, 3, 4, 6 and 8 bits
  if (std::find(std::begin(kByBits), std::end(kByBits), entries) == std::end(kByBits)) {
    return absl::InvalidArgumentError("'lut': want 2, 4, 8, 16, 64 or 256 entries");
  }
  const int64_t vector = lut.size() == 1 ? 1 : lut.back();
  if (vector != 1 && vector != 2 && vector != 4 && vector != 5) {
    return c.Refuse(rule::kConstexprPaletteVector);
  }
  if (Judge(c.target(), c.route()).FamilyAtLeast(3)) return absl::OkStatus();
  if (entries == 2 || entries == 4) return c.Refuse(rule::kConstexprPaletteBits);
  if (entries != 16 && entries != 256) return c.Refuse(rule::kConstexprPaletteLater);
  return absl::OkStatus();
}

absl::Status Build(MilContext& c) {
  const ConstantOperation& row = RowNamed(c.call().op, kConstants);
  const bool streams = row.floor != kNever && Judge(c.target(), c.route()).FamilyAtLeast(row.floor);
  if (!streams) ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotConverted));
  ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> like, c.Constant(row.like));
  ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> lut, c.Constant("lut"));
  if (!lut && c.call().op == "constexpr_lut_to_dense") {
    return absl::InvalidArgumentError(c.call().op + ": want constant 'lut'");
  }
  std::vector<int64_t> shape;
  if (like) shape = like->shape;
  ANEMONE_ASSIGN_OR_RETURN(shape, c.Ints("shape", std::move(shape)));
  if (shape.empty() && !like) {
    return absl::InvalidArgumentError(c.call().op + ": want constant '" + row.like +
                                      "' or attribute 'shape'");
  }
  for (const char* name : {"scale", "offset", "zero_point", "axis", "nonzero_data",
                           "indices_nonzero_data", "vector_axis", "name"}) {
    c.Ignore(name);
  }
  if (lut) ANEMONE_RETURN_IF_ERROR(CheckPalette(c, lut->shape));
  if (shape.size() > kMaxRank) return c.Refuse(rule::kReshapeRank);
  ANEMONE_ASSIGN_OR_RETURN(Tensor dense, ZerosOf({.name = "y", .shape = shape}));
  return c.Out(c.AddConstant(std::move(dense), PlaceShape(shape)), shape);
}

constexpr MilOperation kOperations[] = {
    {"const", Build},
    {"constexpr_affine_dequantize", Build},
    {"constexpr_lut_to_dense", Build},
    {"constexpr_lut_to_sparse", Build},
    {"constexpr_blockwise_shift_scale", Build},
    {"constexpr_sparse_blockwise_shift_scale", Build},
    {"constexpr_sparse_to_dense", Build},
};

}  // namespace

KernelRows MilConstantsRows() { return {{}, {}, kOperations}; }

}  // namespace anemone
