// Gather. Constant evenly spaced indices are lowered to an InputView, other indices to a Gather
// unit; indices that are computed at run time are fp16 numbers there. The unit has the only form
// that every target from A13 accepts: three coordinates (depth, height, width) for each point,
// batch and depth 1. On the M1 this is the only form; from A14 the texture engine runs it. Facts:
// validators.json Gather; netplist.md Gather.
#include "kernels/units/gather.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/extents.h"
#include "kernels/units/concat.h"
#include "kernels/units/goc.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "math/exact/exact_elementwise.h"
#include "math/move/gather.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// The points are the second bottom. If they are constant, the tensor is also a weight of the unit,
// for Prepare().
struct GatherParams {
  std::vector<Axis> axes = {Axis::kD, Axis::kH, Axis::kW};  // one for each coordinate
};

// The known case: x of N, C, H, W and points of 1, 3, K, 1 give N, C, K, 1. The gathered axes get
// the extents of the points, whose channels are the coordinates; the other axes keep theirs. This
// is assumed to be the rule for all axes.
absl::StatusOr<Dims> Shape(const GatherParams& p, Bottoms in) {
  if (p.axes.empty()) return absl::InvalidArgumentError("gather: want at least one axis");
  Dims out = in[0].dims;
  math::AxisSet seen;
  for (Axis axis : p.axes) {
    if (seen.Has(static_cast<int>(axis))) {
      return absl::InvalidArgumentError(
          absl::StrCat("gather: ", AxisName(axis), " is given twice"));
    }
    seen.Add(static_cast<int>(axis));
    out[axis] = axis == Axis::kC ? 1 : in[1].dims[axis];
  }
  return out;
}

// The form that the M1 accepts. The M1 also checks a pattern of axes, which is not published;
// depth, height and width were seen to pass.
bool InsideEnvelope(const GatherParams& p, const Dims& data, const Dims& points) {
  return data.n() == 1 && data.d() == 1 && points.c() == kCoordinates && points.w() == 1 &&
         points.d() == 1 && p.axes.size() == kCoordinates;
}

// From A14 the number of coordinates must be a multiple of the interleave of the points. Which one
// of the target's interleaves that is, is not published.
Verdict Codegen(const GatherParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kTextureEngine)) {
    if (!InsideEnvelope(p, in[0].dims, in[1].dims)) return judge.Reject(rule::kGatherEnvelope);
    if (p.axes != GatherParams{}.axes) judge.Doubt(rule::kGatherAxisPattern);
    return judge.Accept();
  }
  const absl::Span<const int> interleaves = target.list(LimitList::kInterleaveSet);
  const bool fits_all = std::all_of(interleaves.begin(), interleaves.end(), [&](int interleave) {
    return in[1].dims.c() % interleave == 0;
  });
  if (interleaves.empty() || !fits_all) judge.Doubt(rule::kGatherInterleave);
  return judge.Accept();
}

// `indices_dtype` is the type of the second bottom again, so it is ignored.
constexpr Field<GatherParams> kFields[] = {
    Required<&GatherParams::axes>("GatherNDAxes"),
    {"indices_dtype", [](const GatherParams&) -> Json { return nullptr; }, nullptr},
};

using Points = std::vector<int64_t>;  // for each point, its position in a plane

absl::StatusOr<Prepared> Prepare(const GatherParams& p, Bottoms in, absl::Span<const Tensor>) {
  const int64_t count = in[1].dims.h();
  const Tensor* list = in[1].constant;
  if (p.axes != GatherParams{}.axes || in[0].dims.d() != 1 ||
      in[1].dims != MakeDims(1, kCoordinates, count, 1)) {
    return absl::UnimplementedError(
        "gather: the software engine runs it only with points 1x3xKx1 (depth, height, width) and a "
        "tensor of depth 1");
  }
  if (list == nullptr || in[1].format != Format::kUInt16) return Prepared();  // fp16 numbers
  auto points = std::make_shared<Points>(count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t h = list->at<uint16_t>(count + i), w = list->at<uint16_t>(2 * count + i);
    if (h >= in[0].dims.h() || w >= in[0].dims.w()) {
      return absl::InvalidArgumentError("gather: a point is outside the plane");
    }
    (*points)[i] = h * in[0].dims.w() + w;
  }
  return points;
}

// What a point outside of the plane reads is not published; here it is the nearest element.
int64_t PlaceOf(math::Half index, int64_t extent) {
  const float place = math::ToFloat(index);
  if (!(place > 0)) return 0;  // also NaN
  return static_cast<int64_t>(std::min(place, static_cast<float>(extent - 1)));
}

void Compute(const GatherParams&, const void* prepared, absl::Span<const ConstView> in, View out) {
  const Dims& x = in[0].dims;
  if (prepared == nullptr) {
    const math::Half *rows = in[1].data + in[1].dims.h(), *columns = rows + in[1].dims.h();
    Points points(in[1].dims.h());
    for (size_t i = 0; i < points.size(); ++i) {
      points[i] = PlaceOf(rows[i], x.h()) * x.w() + PlaceOf(columns[i], x.w());
    }
    math::Gather({x.n(), 1, x.c(), 1, x.h() * x.w()}, math::kAxisW, points, in[0].span(),
                 out.span());
    return;
  }
  math::Gather({x.n(), 1, x.c(), 1, x.h() * x.w()}, math::kAxisW,
               *static_cast<const Points*>(prepared), in[0].span(), out.span());
}

// Constant points at a column above 0 are read by a slice of the width, which saturates
// (numerics.json sat-wslice; the rule is about static indices only).
void Exact(const GatherParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  Compute(p, unit.prepared, in, out);
  if (unit.prepared == nullptr) return;
  const Points& points = *static_cast<const Points*>(unit.prepared);
  const int64_t width = in[0].dims.w(), count = static_cast<int64_t>(points.size());
  for (int64_t i = 0; i < out.dims.elements(); ++i) {
    if (points[i % count] % width == 0) continue;
    math::ThroughWidthSlice(unit.numerics, out.span().subspan(i, 1));
  }
}

// In MIL a plane is one axis, and a point is its position along that axis.
absl::Status WriteMil(const GatherParams& p, const Unit& unit, MilEmitter& e) {
  const Bottom list = e.BottomOf(1);
  ANEMONE_ASSIGN_OR_RETURN(std::string x, WriteFlatBottom(e, 0));
  const Dims& from = e.DimsOf(0);
  const int64_t count = list.dims.h(), plane = from.h() * from.w();
  if (!list.is_constant() || list.format != Format::kUInt16 || p.axes != GatherParams{}.axes ||
      plane > kMostPlaces || list.dims != MakeDims(1, kCoordinates, count, 1)) {
    return absl::UnimplementedError(
        "MIL's gather needs constant points in a plane of at most 65536 elements");
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
  static const UnitKindOf<GatherParams> kind({
      .type = "Gather",
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .codegen = Codegen},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

struct Form {
  int rank = 0, axis = 0;
  std::vector<int64_t> from;     // shape of the data
  std::vector<int64_t> indices;  // 0..from[axis]-1
};

// Without the indices.
absl::StatusOr<Form> ReadAxis(const Node& node, LowerContext& c) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(form.from, c.ShapeOf(node.inputs[0]));
  form.rank = static_cast<int>(form.from.size());
  ANEMONE_ASSIGN_OR_RETURN(form.axis, NormalAxis(axis, form.rank));
  return form;
}

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadAxis(node, c));
  ANEMONE_ASSIGN_OR_RETURN(form.indices, ConstantIntegers(c, node, 1, {}));
  if (form.indices.empty()) return c.Refuse(rule::kEmptyTensor);
  for (int64_t& index : form.indices) {
    ANEMONE_ASSIGN_OR_RETURN(index, NormalIndex(index, form.from[form.axis]));
  }
  return form;
}

// The longest evenly spaced run of elements at the front of `indices`.
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

// `picked` has the dims of form.from with the number of indices on the axis. The output has the
// axes of the indices there instead, none or several.
absl::Status Finish(LowerContext& c, const Node& node, const Form& form, Operand picked) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (static_cast<int>(to.size()) == form.rank) return c.Out(node.outputs[0], picked);
  picked = ReshapeInOnnxOrder(c, picked, form.rank, to);
  return c.Out(node.outputs[0], picked);
}

// Indices computed at run time. They are known to be inside the axis, so that none of them is an
// error; negative ones count from its end.
absl::Status LowerComputed(const Node& node, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadAxis(node, c));
  Operand index = c.In(node.inputs[1]);
  ANEMONE_RETURN_IF_ERROR(c.status());
  if (c.route() == Route::kMil) return c.NotLowered("gather at run time on route mil");
  const int64_t extent = form.from[form.axis];
  const std::optional<Interval> range = c.view().RangeOf(node.inputs[1]).interval;
  if (!range || range->low < -extent || range->high >= extent ||
      extent > fp16::kLargestExactInteger) {
    return c.NotLowered(absl::StrCat("gather with indices that are not known to be in 0..",
                                     extent - 1, ", or that fp16 cannot hold"));
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[1]));
  index = ToOnnxOrder(c, index, static_cast<int>(shape.size()));
  index = ReshapeToDims(c, index, MakeDims(1, 1, c.DimsOf(index).elements(), 1));
  if (range->low < 0) {
    Operand ends = Combined(c, ElementWiseType::kLessThan, index, ScalarConstant(c, 0));
    ends = ScaleAndShift(c, ends, static_cast<double>(extent), 0);
    index = Combined(c, ElementWiseType::kAdd, index, ends);
  }
  Operand x = c.In(node.inputs[0]);
  x = Gathered(c, form.from, form.axis, x, ComputedPoints(c, index, {}));
  return Finish(c, node, form, x);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  if (c.view().Constant(node.inputs[1]) == nullptr) return LowerComputed(node, c);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  Operand x = c.In(node.inputs[0]);
  Run run = FirstRun(form.indices);
  if (run.size == form.indices.size()) {
    x = Sliced(c, x, ToEngineAxis(form.rank, form.axis), form.indices[0], run.size, run.step);
  } else {
    x = Gathered(c, form.from, form.axis, x, FixedPoints(c, {}, form.indices));
  }
  return Finish(c, node, form, x);
}

// A concatenation of a few evenly spaced runs, for targets and extents that the Gather unit does
// not support.
absl::Status LowerAsConcat(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  Operand x = c.In(node.inputs[0]);
  Axis axis = ToEngineAxis(form.rank, form.axis);
  std::vector<Operand> parts;
  absl::Span<const int64_t> left = form.indices;
  while (!left.empty()) {
    if (static_cast<int64_t>(parts.size()) == kMostPieces) {
      return c.NotLowered("gather as slices, with more than 12 runs of evenly spaced indices");
    }
    Run run = FirstRun(left);
    Operand part = Sliced(c, x, axis, left[0], run.size, run.step);
    parts.push_back(part);
    left.remove_prefix(run.size);
  }
  x = Concatenated(c, std::move(parts), axis);
  return Finish(c, node, form, x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Gather", .lower = Lower},
    {.op = "Gather", .rewritten = true, .lower = LowerAsConcat},
};

}  // namespace

absl::StatusOr<int64_t> NormalIndex(int64_t index, int64_t extent) {
  if (index < -extent || index >= extent) {
    return absl::InvalidArgumentError(absl::StrCat("index ", index, " of an axis of ", extent,
                                                   " elements: want ", -extent, "..", extent - 1));
  }
  return index < 0 ? index + extent : index;
}

PointList FixedPoints(NetworkBuilder& c, absl::Span<const int64_t> rows,
                      absl::Span<const int64_t> columns, absl::Span<const int64_t> depths) {
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

PointList ComputedPoints(NetworkBuilder& c, const Operand& coordinates,
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
  return {Concatenated(c, std::move(parts), Axis::kC), dims.h()};
}

Operand AtPoints(NetworkBuilder& c, const Operand& x, const PointList& points) {
  return c.Add(Kind(), GatherParams{}, {x, points.operand});
}

Operand Gathered(NetworkBuilder& c, absl::Span<const int64_t> from, int axis, Operand x,
                 const PointList& points) {
  const int rank = static_cast<int>(from.size());
  const int64_t extent = from[axis];
  const auto [before, after] = ProductsAround(from, axis);
  if (extent > kMostPlaces)
    return c.NotLowered(
        "gather along an axis of more than 65536 elements, whose indices exceed uint16");
  x = ToOnnxOrder(c, x, rank);
  x = ReshapeToDims(c, x, MakeDims(1, before, extent, after));
  x = SwapAxes(c, x, Axis::kH, Axis::kW);
  x = ReshapeToDims(c, x, MakeDims(1, before * after, 1, extent));
  x = AtPoints(c, x, points);
  x = ReshapeToDims(c, x, MakeDims(1, before, after, points.count));
  x = SwapAxes(c, x, Axis::kH, Axis::kW);
  std::vector<int64_t> to(from.begin(), from.end());
  to[axis] = points.count;
  return FromOnnxOrder(c, x, to);
}

Operand PickedElements(NetworkBuilder& c, const Operand& x, absl::Span<const int64_t> places) {
  const Dims& dims = c.DimsOf(x);
  const int64_t count = static_cast<int64_t>(places.size());
  if (std::max(dims.h(), dims.w()) > kMostPlaces) {
    return c.NotLowered(
        "gather along an axis of more than 65536 elements, whose indices exceed uint16");
  }
  std::vector<int64_t> rows(count), columns(count);
  for (int64_t i = 0; i < count; ++i) {
    rows[i] = places[i] / dims.w();
    columns[i] = places[i] % dims.w();
  }
  Operand y = AtPoints(c, x, FixedPoints(c, rows, columns));
  return ReshapeToDims(c, y, MakeDims(1, c.DimsOf(x).c(), 1, count));
}

KernelRows GatherRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
