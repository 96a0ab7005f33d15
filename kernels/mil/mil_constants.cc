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

struct ConstantOperation {
  const char* op;
  const char* like;  // the argument with the shape of the dense tensor, unless `shape` is given
};

constexpr ConstantOperation kConstants[] = {
    {"const", "val"},
    {"constexpr_affine_dequantize", "quantized_data"},
    {"constexpr_lut_to_dense", "indices"},
    {"constexpr_lut_to_sparse", "indices_mask"},
    {"constexpr_blockwise_shift_scale", "data"},
    {"constexpr_sparse_blockwise_shift_scale", "data_mask"},
    {"constexpr_sparse_to_dense", "mask"},
};

constexpr struct {
  int64_t entries, bits;  // of a palette, and of an index into it
} kPalettes[] = {{2, 1}, {4, 2}, {8, 3}, {16, 4}, {64, 6}, {256, 8}};

// Checks the number of entries and the vector length of a palette.
absl::Status CheckPalette(MilContext& c, const std::vector<int64_t>& lut) {
  if (lut.empty()) return absl::InvalidArgumentError("'lut': want at least one axis");
  const int64_t entries = lut.size() == 1 ? lut[0] : lut[lut.size() - 2];
  const auto* palette = std::find_if(std::begin(kPalettes), std::end(kPalettes),
                                     [&](const auto& p) { return p.entries == entries; });
  if (palette == std::end(kPalettes)) {
    return absl::InvalidArgumentError("'lut': want 2, 4, 8, 16, 64 or 256 entries");
  }
  const int64_t vector = lut.size() == 1 ? 1 : lut.back();
  if (!rule::kConstexprPaletteVector.Lists(vector)) return c.Refuse(rule::kConstexprPaletteVector);
  for (const Rule* rule : {&rule::kConstexprPaletteBits, &rule::kConstexprPaletteLater}) {
    if (rule->Lists(palette->bits)) return c.Requires(*rule);
  }
  return absl::OkStatus();
}

absl::Status Build(MilContext& c) {
  const ConstantOperation& row = RowNamed(c.call().op, kConstants);
  // The families of the rule are those from which on a constant streams. Others always fold.
  const bool streams = Judge(c.target(), c.route()).Reaches(rule::kNotConverted, row.op);
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
