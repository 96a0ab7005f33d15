// Gather with constant indices. What is evenly spaced is an InputView; the rest is a Gather unit in
// the one form that every target from A13 takes: three coordinates (depth, height, width) for each
// point, batch and depth 1 (the M1's envelope; from A14 the texture engine reads it). Facts:
// validators.json Gather; netplist.md Gather.
#include "kernels/gather.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/exact_elementwise.h"
#include "engine/math/gather.h"
#include "engine/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/concat.h"
#include "kernels/elementwise.h"
#include "kernels/input_view.h"
#include "kernels/mil_gates.h"
#include "kernels/node_inputs.h"
#include "kernels/reshape.h"
#include "kernels/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

constexpr int64_t kCoordinates = 3;
constexpr int64_t kMostPlaces = 65536;  // on an axis: indices are uint16

// The points stand in the second bottom. If they are constant, that tensor is the unit's weight as
// well, for Prepare().
struct GatherParams {
  std::vector<Axis> axes = {Axis::kD, Axis::kH, Axis::kW};  // a coordinate each
};

// Known is x: N, C, H, W with points 1, 3, K, 1 to N, C, K, 1: the gathered axes are those of the
// points, whose channels are the coordinates, and the others stay. Taken as the rule for all axes.
absl::StatusOr<Dims> Shape(const GatherParams& p, Bottoms in) {
  if (p.axes.empty()) return absl::InvalidArgumentError("gather: want an axis at least");
  Dims out = in[0].dims;
  math::AxisSet seen;
  for (Axis axis : p.axes) {
    if (seen.Has(static_cast<int>(axis))) {
      return absl::InvalidArgumentError(absl::StrCat("gather: ", AxisName(axis), " stands twice"));
    }
    seen.Add(static_cast<int>(axis));
    out[axis] = axis == Axis::kC ? 1 : in[1].dims[axis];
  }
  return out;
}

// The M1's software form; that it checks a pattern of axes besides is all that is known of it.
bool InsideEnvelope(const GatherParams& p, const Dims& data, const Dims& points) {
  return data.n() == 1 && data.d() == 1 && points.c() == kCoordinates && points.w() == 1 &&
         points.d() == 1 && p.axes.size() == kCoordinates;
}

Verdict Codegen(const GatherParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kTextureEngine) && !InsideEnvelope(p, in[0].dims, in[1].dims)) {
    return judge.Reject(rule::kGatherEnvelope);
  }
  return judge.Accept();
}

// `indices_dtype` repeats what the second bottom says.
constexpr Field<GatherParams> kFields[] = {
    Required<&GatherParams::axes>("GatherNDAxes"),
    {"indices_dtype", [](const GatherParams&) -> Json { return nullptr; }, nullptr},
};

using Points = std::vector<int64_t>;  // by point: its place in a plane

absl::StatusOr<Prepared> Prepare(const GatherParams& p, Bottoms in, absl::Span<const Tensor>) {
  const int64_t count = in[1].dims.h();
  const Tensor* list = in[1].constant;
  if (list == nullptr || in[1].format != Format::kUInt16 || p.axes != GatherParams{}.axes ||
      in[0].dims.d() != 1 || in[1].dims != MakeDims(1, kCoordinates, count, 1)) {
    return absl::UnimplementedError(
        "gather: the software device runs constant points of depth, height and width, 1x3xKx1, on "
        "a tensor of depth 1");
  }
  auto points = std::make_shared<Points>(count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t h = list->at<uint16_t>(count + i), w = list->at<uint16_t>(2 * count + i);
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

// Points inside the width come through the slice that saturates (numerics.json sat-wslice).
void Exact(const GatherParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  Compute(p, unit.prepared, in, out);
  const Points& points = *static_cast<const Points*>(unit.prepared);
  const int64_t width = in[0].dims.w(), count = static_cast<int64_t>(points.size());
  for (int64_t i = 0; i < out.dims.elements(); ++i) {
    if (points[i % count] % width == 0) continue;
    math::ThroughWidthSlice(unit.numerics, out.span().subspan(i, 1));
  }
}

// Each point's place in a plane, which MIL has as one axis.
absl::Status WriteMil(MilEmitter& e, const GatherParams& p, const Unit& unit) {
  const Bottom list = e.BottomOf(1);
  ANEMONE_ASSIGN_OR_RETURN(std::string x, WriteFlatBottom(e, 0));
  const Dims& from = e.DimsOf(0);
  const int64_t count = list.dims.h(), plane = from.h() * from.w();
  if (!list.is_constant() || list.format != Format::kUInt16 || p.axes != GatherParams{}.axes ||
      plane > kMostPlaces || list.dims != MakeDims(1, kCoordinates, count, 1)) {
    return absl::UnimplementedError(
        "MIL's gather is written for constant points in a plane of up to 65536 places");
  }
  std::vector<uint16_t> places(count);
  for (int64_t i = 0; i < count; ++i) {
    places[i] = static_cast<uint16_t>(list.constant->at<uint16_t>(count + i) * from.w() +
                                      list.constant->at<uint16_t>(2 * count + i));
  }
  auto reshaped = [&](std::string y, std::vector<int64_t> shape) {
    return e.Emit("reshape", {{"x", {std::move(y)}}, {"shape", {e.Ints(shape)}}}, shape);
  };
  if (from.h() > 1) x = reshaped(std::move(x), {from.n(), from.c(), 1, plane});
  const std::string indices =
      e.Weight(Tensor::Of<uint16_t>(DataType::kUInt16, {count}, places), {count});
  x = e.Emit("gather",
             {{"x", {x}},
              {"indices", {indices}},
              {"axis", {e.Int(3)}},
              {"batch_dims", {e.Int(0)}},
              {"validate_indices", {e.Bool(false)}}},
             std::vector<int64_t>{from.n(), from.c(), 1, count});
  e.Result(reshaped(std::move(x), e.ShapeOf(unit.dims)));
  return absl::OkStatus();
}

const UnitKindOf<GatherParams>& Kind() {
  static const UnitKindOf<GatherParams>& kind = *new UnitKindOf<GatherParams>({.type = "Gather",
                                                                               .bottoms = {2, 2},
                                                                               .shape = Shape,
                                                                               .codegen = Codegen,
                                                                               .fields = kFields,
                                                                               .mil = WriteMil,
                                                                               .prepare = Prepare,
                                                                               .compute = Compute,
                                                                               .exact = Exact});
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
  ANEMONE_ASSIGN_OR_RETURN(picked, Relaid(c, picked, form.rank, to));
  return c.Out(node.outputs[0], picked);
}

// Points as the unit's second bottom, 1 x 3 x count x 1.
struct PointList {
  Operand operand;
  int64_t count = 1;
};

// Constant points (depth, row, column); depths and rows that are left out are 0.
PointList FixedPoints(NetworkBuilder& c, absl::Span<const int64_t> rows,
                      absl::Span<const int64_t> columns, absl::Span<const int64_t> depths = {}) {
  const int64_t count = static_cast<int64_t>(columns.size());
  Tensor points = Tensor::Zeros(DataType::kUInt16, {1, 1, kCoordinates, count, 1});
  uint16_t* to = points.mutable_data<uint16_t>();
  for (int64_t i = 0; i < count; ++i) {
    if (!depths.empty()) to[i] = static_cast<uint16_t>(depths[i]);
    if (!rows.empty()) to[count + i] = static_cast<uint16_t>(rows[i]);
    to[2 * count + i] = static_cast<uint16_t>(columns[i]);
  }
  return {c.AddConstant(std::move(points), MakeDims(1, kCoordinates, count, 1)), count};
}

// In ONNX's order of elements: the axis is brought to W, everything else to C.
absl::StatusOr<Operand> Gathered(NetworkBuilder& c, absl::Span<const int64_t> from, int axis,
                                 Operand x, PointList points) {
  const int rank = static_cast<int>(from.size());
  int64_t before = 1, after = 1, extent = from[axis];
  for (int i = 0; i < rank; ++i) {
    if (i < axis) before *= from[i];
    if (i > axis) after *= from[i];
  }
  if (extent > kMostPlaces) return c.NotLowered("gather from an axis past the range of uint16");
  ANEMONE_ASSIGN_OR_RETURN(x, Flat(c, x, rank));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(1, before, extent, after)));
  ANEMONE_ASSIGN_OR_RETURN(x, SwapAxes(c, x, Axis::kH, Axis::kW));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(1, before * after, 1, extent)));
  ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), GatherParams{}, {x, points.operand}));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(1, before, after, points.count)));
  ANEMONE_ASSIGN_OR_RETURN(x, SwapAxes(c, x, Axis::kH, Axis::kW));
  std::vector<int64_t> to(from.begin(), from.end());
  to[axis] = points.count;
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
    ANEMONE_ASSIGN_OR_RETURN(
        x, Gathered(c, form.from, form.axis, x, FixedPoints(c, {}, form.indices)));
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

// The second argument of a call, or its attribute of that name.
struct Indices {
  std::vector<int64_t> shape;
  int64_t count = 1;               // elements
  std::optional<Operand> operand;  // nullopt: constant
  std::vector<int64_t> values;     // then these; zeros where they are not known
};

// The data and the indices, which may be an attribute; and nothing else.
absl::Status CheckArguments(MilContext& c) {
  const std::string& op = c.call().op;
  for (size_t i = 1; i < c.arguments() && op != "gather_nd"; ++i) {
    const MilTensor& argument = c.call().arguments[i];
    if (argument.name != "axis" && (i != 2 || op != "gather")) continue;
    if (argument.constant) return c.NotLowered("gather along an axis of no known value");
    if (c.route() == Route::kMil) return c.Refuse(rule::kGatherAxis);
    return c.NotLowered("gather along an axis computed at run time");
  }
  if (c.arguments() <= (c.Has("indices") ? 1 : 2)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(op, ": want two arguments, data and indices"));
}

absl::StatusOr<Indices> ReadIndices(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(CheckArguments(c));
  c.Ignore("validate_indices");
  ANEMONE_ASSIGN_OR_RETURN(int64_t batch_axes, c.Int("batch_dims", 0));
  if (batch_axes != 0) return c.NotLowered("gather with batch axes");
  ANEMONE_RETURN_IF_ERROR(c.In(0).status());
  ANEMONE_RETURN_IF_ERROR(ElementCount(c.ShapeOf(0)).status());
  Indices indices;
  if (!c.Has("indices")) {
    ANEMONE_ASSIGN_OR_RETURN(Operand given, c.In(1));
    indices.shape = c.ShapeOf(1);
    const MilTensor& argument = c.call().arguments[1];
    if (!argument.constant) indices.operand = given;
    if (auto values = argument.value ? IntegersOf(*argument.value) : std::nullopt) {
      indices.values = *std::move(values);
    }
  } else if (c.call().attributes.at("indices").is_object()) {
    ANEMONE_ASSIGN_OR_RETURN(auto constant, c.Constant("indices"));
    if (constant) indices.shape = constant->shape;
  } else if (c.call().attributes.at("indices").is_array()) {
    ANEMONE_ASSIGN_OR_RETURN(auto values, c.Ints("indices", {}));
    indices.shape = {static_cast<int64_t>(values.size())};
  } else {
    ANEMONE_RETURN_IF_ERROR(c.Int("indices", 0).status());
  }
  ANEMONE_ASSIGN_OR_RETURN(indices.count, ElementCount(indices.shape));
  if (indices.count < 1) return c.Refuse(rule::kEmptyTensor);
  if (indices.count > kMostIntegers) return c.NotLowered("gather of elements by the million");
  if (!indices.operand) indices.values.resize(indices.count);
  return indices;
}

// Points of computed coordinates, 1 x k x count x 1, the missing ones in front 0 but for the row
// before a single one, if `rows` says it.
absl::StatusOr<PointList> ComputedPoints(NetworkBuilder& c, const Operand& coordinates,
                                         absl::Span<const float> rows) {
  const Dims dims = c.DimsOf(coordinates);
  const int64_t zeros = kCoordinates - dims.c() - (rows.empty() ? 0 : 1);
  std::vector<Operand> parts;
  if (zeros > 0) {
    parts.push_back(Filled(c, 0, MakeDims(1, zeros, dims.h(), 1)));
  }
  if (!rows.empty()) {
    parts.push_back(c.AddConstant(Tensor::Floats({dims.h()}, rows), MakeDims(1, 1, dims.h(), 1)));
  }
  parts.push_back(coordinates);
  ANEMONE_ASSIGN_OR_RETURN(Operand points, Concatenated(c, std::move(parts), Axis::kC));
  return PointList{points, dims.h()};
}

// Makes indices 0..extent-1.
absl::Status Normalize(absl::Span<int64_t> indices, int64_t extent) {
  for (int64_t& index : indices) {
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) {
      return absl::InvalidArgumentError(
          absl::StrCat("gather: an index outside an axis of ", extent, " elements"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PointList> PointsOf(NetworkBuilder& c, Indices indices, int64_t extent) {
  if (!indices.operand) {
    ANEMONE_RETURN_IF_ERROR(Normalize(absl::MakeSpan(indices.values), extent));
    return FixedPoints(c, {}, indices.values);
  }
  ANEMONE_ASSIGN_OR_RETURN(Operand flat,
                           Flat(c, *indices.operand, static_cast<int>(indices.shape.size())));
  ANEMONE_ASSIGN_OR_RETURN(flat, Reshaped(c, flat, MakeDims(1, 1, indices.count, 1)));
  return ComputedPoints(c, flat, {});
}

// Without a texture engine the data has batch and depth 1; else it is brought there, a rewrite.
absl::Status CheckEnvelope(MilContext& c) {
  const Dims data = PlaceShape(c.ShapeOf(0));
  Judge judge(c.target(), c.route());
  if (judge.Has(Cap::kTextureEngine) || (data.n() == 1 && data.d() == 1)) return absl::OkStatus();
  if (!c.rewrites()) return c.Refuse(rule::kGatherEnvelope);
  c.SetRewritten();
  return absl::OkStatus();
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", 0));
  ANEMONE_ASSIGN_OR_RETURN(Indices indices, ReadIndices(c));
  ANEMONE_RETURN_IF_ERROR(CheckEnvelope(c));
  ANEMONE_ASSIGN_OR_RETURN(PointList points, PointsOf(c, indices, c.ShapeOf(0)[axis]));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  std::vector<int64_t> shape = c.ShapeOf(0);
  ANEMONE_ASSIGN_OR_RETURN(x, Gathered(c, shape, axis, x, points));
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.shape.begin(), indices.shape.end());
  ANEMONE_ASSIGN_OR_RETURN(x, Relaid(c, x, c.rank(0), shape));
  return c.Out(x, shape);
}

// `x`, a value of shape `shape`, with the axis last: 1 x 1 x (all others) x extent.
absl::StatusOr<Operand> AxisLast(NetworkBuilder& c, Operand x, absl::Span<const int64_t> shape,
                                 int axis) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t before, ElementCount(shape.first(axis)));
  ANEMONE_ASSIGN_OR_RETURN(int64_t after, ElementCount(shape.subspan(axis + 1)));
  ANEMONE_ASSIGN_OR_RETURN(x, Flat(c, x, static_cast<int>(shape.size())));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(1, before, shape[axis], after)));
  ANEMONE_ASSIGN_OR_RETURN(x, SwapAxes(c, x, Axis::kH, Axis::kW));
  return Reshaped(c, x, MakeDims(1, 1, before * after, shape[axis]));
}

// Every row of the other axes has indices of its own: points (0, row, index).
absl::Status BuildAlongAxis(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", 0));
  ANEMONE_ASSIGN_OR_RETURN(Indices indices, ReadIndices(c));
  ANEMONE_RETURN_IF_ERROR(CheckEnvelope(c));
  const std::vector<int64_t>& from = c.ShapeOf(0);
  std::vector<int64_t> common = indices.shape;
  if (common.size() == from.size()) common[axis] = from[axis];
  if (common != from) {
    return absl::InvalidArgumentError(
        "gather_along_axis: want indices of the data's shape but for the axis");
  }
  const int64_t each = indices.shape[axis], rows = indices.count / each;
  // Rows stand beside computed indices in fp16, which holds all integers to 2048.
  if (from[axis] > kMostPlaces || rows > (indices.operand ? 2048 : kMostPlaces)) {
    return c.NotLowered("gather of more rows than a coordinate counts");
  }
  std::vector<int64_t> row(indices.count);
  for (int64_t i = 0; i < indices.count; ++i) row[i] = i / each;
  PointList points;
  if (indices.operand) {
    ANEMONE_ASSIGN_OR_RETURN(Operand index, AxisLast(c, *indices.operand, indices.shape, axis));
    ANEMONE_ASSIGN_OR_RETURN(index, Reshaped(c, index, MakeDims(1, 1, indices.count, 1)));
    ANEMONE_ASSIGN_OR_RETURN(points,
                             ComputedPoints(c, index, std::vector<float>(row.begin(), row.end())));
  } else {
    ANEMONE_RETURN_IF_ERROR(Normalize(absl::MakeSpan(indices.values), from[axis]));
    ANEMONE_ASSIGN_OR_RETURN(int64_t after, ElementCount(absl::MakeSpan(from).subspan(axis + 1)));
    std::vector<int64_t> columns(indices.count);  // the axis last
    for (int64_t i = 0; i < indices.count; ++i) {
      const int64_t at = i % each, inner = row[i] % after, outer = row[i] / after;
      columns[i] = indices.values[(outer * each + at) * after + inner];
    }
    points = FixedPoints(c, row, columns);
  }
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  ANEMONE_ASSIGN_OR_RETURN(x, AxisLast(c, x, from, axis));
  ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), GatherParams{}, {x, points.operand}));
  ANEMONE_ASSIGN_OR_RETURN(int64_t before, ElementCount(absl::MakeSpan(from).first(axis)));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(1, before, rows / before, each)));
  ANEMONE_ASSIGN_OR_RETURN(x, SwapAxes(c, x, Axis::kH, Axis::kW));
  ANEMONE_ASSIGN_OR_RETURN(x, Placed(c, x, indices.shape));
  return c.Out(x, indices.shape);
}

// The last axis of the indices holds coordinates of the data's first axes: they become depth,
// height and width, what is behind them the channel.
absl::Status BuildNd(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(Indices indices, ReadIndices(c));
  if (!Judge(c.target(), c.route()).Has(Cap::kTextureEngine)) {
    ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kGatherNd));
  }
  const std::vector<int64_t>& from = c.ShapeOf(0);
  if (indices.shape.empty() || indices.shape.back() > from.size()) {
    return absl::InvalidArgumentError("gather_nd: want coordinates of axes that the data has");
  }
  const int64_t known = indices.shape.back(), count = indices.count / known;
  if (known > kCoordinates) return c.NotLowered("gather_nd of more than three coordinates");
  std::vector<int64_t> gathered(kCoordinates - known, 1);
  gathered.insert(gathered.end(), from.begin(), from.begin() + known);
  ANEMONE_ASSIGN_OR_RETURN(int64_t after, ElementCount(absl::MakeSpan(from).subspan(known)));
  PointList points;
  if (indices.operand) {
    ANEMONE_ASSIGN_OR_RETURN(Operand list,
                             Flat(c, *indices.operand, static_cast<int>(indices.shape.size())));
    ANEMONE_ASSIGN_OR_RETURN(list, Reshaped(c, list, MakeDims(1, 1, count, known)));
    ANEMONE_ASSIGN_OR_RETURN(list, SwapAxes(c, list, Axis::kC, Axis::kW));
    ANEMONE_ASSIGN_OR_RETURN(points, ComputedPoints(c, list, {}));
  } else {
    std::vector<int64_t> coordinates[kCoordinates];  // by axis, those in front 0
    for (std::vector<int64_t>& list : coordinates) list.resize(count);
    for (int64_t i = 0; i < indices.count; ++i) {
      coordinates[kCoordinates - known + i % known][i / known] = indices.values[i];
    }
    for (int64_t k = 0; k < kCoordinates; ++k) {
      ANEMONE_RETURN_IF_ERROR(Normalize(absl::MakeSpan(coordinates[k]), gathered[k]));
    }
    points = FixedPoints(c, coordinates[1], coordinates[2], coordinates[0]);
  }
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  ANEMONE_ASSIGN_OR_RETURN(x, Flat(c, x, c.rank(0)));
  const Dims flat{{1, gathered[0], gathered[1], gathered[2], after}};
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, flat));
  ANEMONE_ASSIGN_OR_RETURN(x, Permuted(c, x, {Axis::kN, Axis::kD, Axis::kW, Axis::kC, Axis::kH}));
  ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), GatherParams{}, {x, points.operand}));
  ANEMONE_ASSIGN_OR_RETURN(x, SwapAxes(c, x, Axis::kC, Axis::kH));
  std::vector<int64_t> shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), from.begin() + known, from.end());
  if (shape.size() > kMaxRank) return c.Refuse(rule::kReshapeRank);
  ANEMONE_ASSIGN_OR_RETURN(x, Placed(c, x, shape));
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {
    {"gather", Build}, {"gather_along_axis", BuildAlongAxis}, {"gather_nd", BuildNd}};

constexpr Lowering kLowerings[] = {
    {.op = "Gather", .lower = Lower},
    {.op = "Gather", .rewritten = true, .lower = LowerAsConcat},
};

}  // namespace

absl::StatusOr<Operand> PickedElements(NetworkBuilder& c, const Operand& x,
                                       absl::Span<const int64_t> places) {
  const Dims& dims = c.DimsOf(x);
  const int64_t count = static_cast<int64_t>(places.size());
  if (std::max(dims.h(), dims.w()) > kMostPlaces) {
    return c.NotLowered("gather from an axis past the range of uint16");
  }
  std::vector<int64_t> rows(count), columns(count);
  for (int64_t i = 0; i < count; ++i) {
    rows[i] = places[i] / dims.w();
    columns[i] = places[i] % dims.w();
  }
  ANEMONE_ASSIGN_OR_RETURN(
      Operand y, c.Add(Kind(), GatherParams{}, {x, FixedPoints(c, rows, columns).operand}));
  return Reshaped(c, y, MakeDims(1, c.DimsOf(x).c(), 1, count));
}

absl::StatusOr<Operand> GatheredAlong(NetworkBuilder& c, const Operand& x,
                                      absl::Span<const int64_t> from, int axis,
                                      absl::Span<const int64_t> indices) {
  return Gathered(c, from, axis, x, FixedPoints(c, {}, indices));
}

KernelRows GatherRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
