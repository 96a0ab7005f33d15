// Gather with constant indices. What is evenly spaced is an InputView; the rest is a Gather unit in
// the one form that every target from A13 takes: three coordinates (depth, height, width) for each
// point, batch and depth 1 (the M1's envelope; from A14 the texture engine reads it). Facts:
// validators.json Gather; netplist.md Gather.
#include "engine/math/gather.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/concat.h"
#include "kernels/input_view.h"
#include "kernels/node_inputs.h"
#include "kernels/reshape.h"
#include "kernels/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

constexpr int64_t kCoordinates = 3;

// The points stand in the second bottom; its tensor is the unit's weight as well, for Prepare().
struct GatherParams {};

// x: N, C, H, W; points: 1, 3, K, 1; result: N, C, K, 1.
absl::StatusOr<Dims> Shape(const GatherParams&, Bottoms in) {
  if (in.size() != 2 || in[1].dims != MakeDims(1, kCoordinates, in[1].dims.h(), 1) ||
      in[0].dims.d() != 1) {
    return absl::InvalidArgumentError("gather: want a tensor of depth 1 and points of 1x3xKx1");
  }
  return MakeDims(in[0].dims.n(), in[0].dims.c(), in[1].dims.h(), 1);
}

Verdict Codegen(const GatherParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kTextureEngine) && in[0].dims.n() != 1) {
    return judge.Reject(rule::kGatherEnvelope);
  }
  return judge.Accept();
}

constexpr Field<GatherParams> kFields[] = {
    {"GatherNDAxes", [](const GatherParams&) { return std::string("Depth Height Width"); }},
};

using Points = std::vector<int64_t>;  // by point: its place in a plane

absl::StatusOr<Prepared> Prepare(const GatherParams&, Bottoms in,
                                 absl::Span<const Tensor> weights) {
  int64_t count = in[1].dims.h();
  auto points = std::make_shared<Points>(count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t h = weights[0].at<uint16_t>(count + i), w = weights[0].at<uint16_t>(2 * count + i);
    if (h >= in[0].dims.h() || w >= in[0].dims.w()) {
      return absl::InvalidArgumentError("gather: a point outside the plane");
    }
    (*points)[i] = h * in[0].dims.w() + w;
  }
  return points;
}

void Compute(const GatherParams&, const void* prepared, absl::Span<const ConstView> in, View out) {
  const Dims& x = in[0].dims;
  math::Gather({x.n(), 1, x.c(), 1, x.h() * x.w()}, math::kAxisW,
               *static_cast<const Points*>(prepared), in[0].span(), out.span());
}

const UnitKindOf<GatherParams>& Kind() {
  static const UnitKindOf<GatherParams>& kind = *new UnitKindOf<GatherParams>({.type = "Gather",
                                                                               .shape = Shape,
                                                                               .codegen = Codegen,
                                                                               .fields = kFields,
                                                                               .prepare = Prepare,
                                                                               .compute = Compute});
  return kind;
}

struct Form {
  int rank = 0, axis = 0;
  std::vector<int64_t> from;     // the data's shape
  std::vector<int64_t> indices;  // 0..from[axis]-1
};

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(form.from, c.ShapeOf(node.inputs[0]));
  form.rank = static_cast<int>(form.from.size());
  ANEMONE_ASSIGN_OR_RETURN(form.axis, NormalAxis(axis, form.rank));
  ANEMONE_ASSIGN_OR_RETURN(form.indices, ConstantIntegers(c, node, 1, {}));
  if (form.indices.empty()) return c.Refuse(rule::kEmptyTensor);
  int64_t extent = form.from[form.axis];
  for (int64_t& index : form.indices) {
    if (index < -extent || index >= extent) {
      return absl::InvalidArgumentError(absl::StrCat("index ", index, " of an axis of ", extent,
                                                     " elements: want ", -extent, "..",
                                                     extent - 1));
    }
    if (index < 0) index += extent;
  }
  return form;
}

// The evenly spaced stretch at the front of `indices`, which no other element can join.
struct Run {
  int64_t size = 1, step = 1;
};

Run FirstRun(absl::Span<const int64_t> indices) {
  if (indices.size() < 2 || indices[1] == indices[0]) return {};
  Run run{2, indices[1] - indices[0]};
  while (run.size < indices.size() && indices[run.size] - indices[run.size - 1] == run.step) {
    ++run.size;
  }
  return run;
}

// `picked` has form.from's dims with the indices' count on the axis; the result takes the indices'
// own axes, none or several.
absl::Status Finish(LowerContext& c, const Node& node, const Form& form, Operand picked) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (static_cast<int>(to.size()) == form.rank) return c.Out(node.outputs[0], picked);
  ANEMONE_ASSIGN_OR_RETURN(picked, Flat(c, picked, form.rank));
  ANEMONE_ASSIGN_OR_RETURN(picked, Placed(c, picked, to));
  return c.Out(node.outputs[0], picked);
}

// In ONNX's order of elements: the axis is brought to W, everything else to C.
absl::StatusOr<Operand> Gathered(LowerContext& c, const Form& form, Operand x) {
  int64_t before = 1, after = 1, extent = form.from[form.axis];
  for (int i = 0; i < form.rank; ++i) {
    if (i < form.axis) before *= form.from[i];
    if (i > form.axis) after *= form.from[i];
  }
  int64_t count = static_cast<int64_t>(form.indices.size());
  if (extent > 65536) return c.NotLowered("gather from an axis past the range of uint16");
  Tensor points = Tensor::Zeros(DataType::kUInt16, {1, 1, kCoordinates, count, 1});
  for (int64_t i = 0; i < count; ++i) {
    points.mutable_data<uint16_t>()[2 * count + i] = static_cast<uint16_t>(form.indices[i]);
  }
  Operand index = c.AddConstant(points, MakeDims(1, kCoordinates, count, 1));

  ANEMONE_ASSIGN_OR_RETURN(x, Flat(c, x, form.rank));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(1, before, extent, after)));
  ANEMONE_ASSIGN_OR_RETURN(x, SwapAxes(c, x, Axis::kH, Axis::kW));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(1, before * after, 1, extent)));
  ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), GatherParams{}, {x, index}, {points}));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(1, before, after, count)));
  ANEMONE_ASSIGN_OR_RETURN(x, SwapAxes(c, x, Axis::kH, Axis::kW));
  std::vector<int64_t> to = form.from;
  to[form.axis] = count;
  return Placed(c, x, to);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  Run run = FirstRun(form.indices);
  if (run.size == form.indices.size()) {
    ANEMONE_ASSIGN_OR_RETURN(
        x, Sliced(c, x, AxisOf(form.rank, form.axis), form.indices[0], run.size, run.step));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(x, Gathered(c, form, x));
  }
  return Finish(c, node, form, x);
}

// A few evenly spaced stretches, joined: for targets and extents that Gather does not take.
absl::Status LowerAsConcat(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  Axis axis = AxisOf(form.rank, form.axis);
  std::vector<Operand> parts;
  absl::Span<const int64_t> left = form.indices;
  while (!left.empty()) {
    if (static_cast<int64_t>(parts.size()) == kMostPieces) {
      return c.NotLowered("gather of many scattered elements");
    }
    Run run = FirstRun(left);
    ANEMONE_ASSIGN_OR_RETURN(Operand part, Sliced(c, x, axis, left[0], run.size, run.step));
    parts.push_back(part);
    left.remove_prefix(run.size);
  }
  ANEMONE_ASSIGN_OR_RETURN(x, Concatenated(c, std::move(parts), axis));
  return Finish(c, node, form, x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Gather", .lower = Lower},
    {.op = "Gather", .rewritten = true, .lower = LowerAsConcat},
};

}  // namespace

KernelRows GatherRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
