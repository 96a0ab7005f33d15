// Attention in plain nodes as one SDPA unit, where that is refused or not to be trusted as the
// units of its nodes. Facts: netplist.md SDPA; hidden_layers.json SDPA; conflicts.md C-sdpa-mask.
#include "kernels/attention.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "anemone/status_macros.h"
#include "kernels/attention_mask.h"
#include "kernels/elementwise.h"
#include "kernels/matrix_multiplication.h"
#include "kernels/mil.h"
#include "kernels/reshape.h"
#include "kernels/sdpa.h"
#include "kernels/transpose.h"

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;

// heads x rows x columns of one image; rank 3 has a head per batch.
absl::StatusOr<Sizes> HeadsOf(LowerContext& c, ValueId value) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(value));
  if (shape.size() == 3) return shape;
  if (shape.size() != 4) return c.NotLowered("attention of this rank");
  // "netplist route seen with batch 1 only" (validators.json SDPA).
  if (shape[0] != 1) return c.NotLowered("attention over a batch as one unit");
  return Sizes(shape.begin() + 1, shape.end());
}

// The axis on which a value of heads, rows and columns has its sequence.
Axis SequenceOf(bool is_transposed) { return is_transposed ? Axis::kW : Axis::kH; }
Axis DimOf(bool is_transposed) { return is_transposed ? Axis::kH : Axis::kW; }

// The value, heads x rows x columns, with its sequence in C and heads in H.
absl::StatusOr<Operand> Laid(LowerContext& c, ValueId value, const Sizes& heads,
                             bool is_transposed) {
  ANEMONE_ASSIGN_OR_RETURN(Operand x, InAs(c, value, MakeDims(1, heads[0], heads[1], heads[2])));
  return Permuted(c, x,
                  {Axis::kN, Axis::kD, SequenceOf(is_transposed), Axis::kC, DimOf(is_transposed)});
}

// The result back with its heads in C.
absl::StatusOr<Operand> Unlaid(LowerContext& c, const Operand& y, bool is_transposed) {
  if (!is_transposed) return SwapAxes(c, y, Axis::kC, Axis::kH);
  return Permuted(c, y, {Axis::kN, Axis::kD, Axis::kH, Axis::kW, Axis::kC});
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& anchor = c.anchor(match);
  const Attention form = *FindAttention(c.view(), anchor);
  ANEMONE_ASSIGN_OR_RETURN(Sizes q, HeadsOf(c, form.q));
  ANEMONE_ASSIGN_OR_RETURN(Sizes k, HeadsOf(c, form.k));
  ANEMONE_ASSIGN_OR_RETURN(Sizes v, HeadsOf(c, form.v));
  ANEMONE_ASSIGN_OR_RETURN(Sizes y_shape, c.ShapeOf(anchor.outputs[0]));
  const int64_t queries = q[1], keys = form.k_is_transposed ? k[2] : k[1];
  if (q[0] != k[0] || k[0] != v[0]) return c.NotLowered("attention with shared heads");
  if (!SdpaIsReliable(queries, keys)) {
    return c.NotLowered("attention over sequences this long as one unit");
  }
  ANEMONE_ASSIGN_OR_RETURN(MaskOperands masks, MaskOperandsOf(c, form, queries, keys));
  SdpaOperands in{.scale = static_cast<float>(form.scale), .mask = masks.mask};
  if (c.route() == Route::kMil && !SdpaHasMilForm(in, q[2])) {
    return c.NotLowered("attention with a mask or a scale of its own on route mil");
  }
  ANEMONE_ASSIGN_OR_RETURN(in.query, Laid(c, form.q, q, /*is_transposed=*/false));
  ANEMONE_ASSIGN_OR_RETURN(in.key, Laid(c, form.k, k, form.k_is_transposed));
  ANEMONE_ASSIGN_OR_RETURN(in.value, Laid(c, form.v, v, form.v_is_transposed));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Attended(c, in));
  if (masks.kept) {
    ANEMONE_ASSIGN_OR_RETURN(y, Combined(c, ElementWiseType::kMult, y, *masks.kept));
  }
  ANEMONE_ASSIGN_OR_RETURN(y, Unlaid(c, y, form.v_is_transposed));
  ANEMONE_ASSIGN_OR_RETURN(y, Reshaped(c, y, PlaceShape(y_shape)));
  return c.Out(anchor.outputs[0], y);
}

bool IsAttention(const GraphView& view, const Node& anchor, Match& match) {
  auto attention = FindAttention(view, anchor);
  if (!attention) return false;
  match.nodes = std::move(attention->nodes);
  std::sort(match.nodes.begin(), match.nodes.end());
  match.nodes.erase(std::unique(match.nodes.begin(), match.nodes.end()), match.nodes.end());
  return true;
}

constexpr Lowering kLowerings[] = {
    {.op = "MatMul", .pattern = "attention", .match = IsAttention, .lower = Lower},
};

}  // namespace

KernelRows AttentionRows() { return {{}, kLowerings}; }

}  // namespace anemone
