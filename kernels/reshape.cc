// Reshape: the same elements under other dims; a descriptor edit, nothing moves. Facts:
// validators.json Reshape; op_matrix.json reshape ("descriptor edit only").
#include "kernels/reshape.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "kernels/transpose.h"

namespace anemone {
namespace {

struct ReshapeParams {
  Dims dims;
};

absl::StatusOr<Dims> Shape(const ReshapeParams& p, Bottoms in) {
  if (in[0].dims.elements() != p.dims.elements()) {
    return absl::InvalidArgumentError(absl::StrCat("reshape of ", DimsToString(in[0].dims), " to ",
                                                   DimsToString(p.dims),
                                                   ": the element counts differ"));
  }
  return p.dims;
}

template <Axis kAxis>
std::string Extent(const ReshapeParams& p) {
  return absl::StrCat(p.dims[kAxis]);
}

constexpr Field<ReshapeParams> kFields[] = {
    {"ReshapedBatch", Extent<Axis::kN>},   {"ReshapedDepth", Extent<Axis::kD>},
    {"ReshapedChannel", Extent<Axis::kC>}, {"ReshapedHeight", Extent<Axis::kH>},
    {"ReshapedWidth", Extent<Axis::kW>},
};

const UnitKindOf<ReshapeParams>& Kind() {
  static const UnitKindOf<ReshapeParams>& kind = *new UnitKindOf<ReshapeParams>(
      {.type = "Reshape", .shape = Shape, .fields = kFields, .is_view = true});
  return kind;
}

// Reshape, Flatten, Squeeze, Unsqueeze: the output's shape is known, so their attributes and shape
// inputs have nothing more to say.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(x, Flat(c, x, static_cast<int>(from.size())));
  ANEMONE_ASSIGN_OR_RETURN(x, Placed(c, x, to));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Reshape", .lower = Lower},
    {.op = "Flatten", .lower = Lower},
    {.op = "Squeeze", .lower = Lower},
    {.op = "Unsqueeze", .lower = Lower},
};

}  // namespace

const UnitKind& ReshapeUnit() { return Kind(); }

absl::StatusOr<Operand> Reshaped(NetworkBuilder& c, const Operand& x, const Dims& dims) {
  if (c.DimsOf(x) == dims) return x;
  return c.Add(Kind(), ReshapeParams{dims}, {x});
}

absl::StatusOr<Operand> Flat(NetworkBuilder& c, const Operand& x, int rank) {
  return rank == kMaxRank ? SwapAxes(c, x, Axis::kD, Axis::kC) : x;
}

absl::StatusOr<Operand> Placed(NetworkBuilder& c, const Operand& flat,
                               absl::Span<const int64_t> shape) {
  Dims dims = PlaceShape(shape);
  if (shape.size() < kMaxRank) return Reshaped(c, flat, dims);
  Dims in_order{{shape[0], shape[1], shape[2], shape[3], shape[4]}};
  ANEMONE_ASSIGN_OR_RETURN(Operand x, Reshaped(c, flat, in_order));
  return SwapAxes(c, x, Axis::kD, Axis::kC);
}

KernelRows ReshapeRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
