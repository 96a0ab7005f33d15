// ArgMinMax: the index of the largest or smallest element in a window (Spatial) or among all
// channels at one position (Channel). ArgMax and ArgMin are lowered to it. Facts: validators.json
// ArgMinMax; hidden_layers.json ArgMinMax; numerics.json red-arg, st-index; compiler_texts.json for
// the keys.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/shared/bounds.h"
#include "kernels/units/arg_request.h"
#include "kernels/units/goc.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "math/reduce/arg_extreme.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class ArgMode : uint8_t { kSpatialArgMin, kChannelArgMin, kSpatialArgMax, kChannelArgMax };

absl::Span<const char* const> NamesOf(ArgMode) {
  static constexpr const char* kNames[] = {"SpatialArgMin", "ChannelArgMin", "SpatialArgMax",
                                           "ChannelArgMax"};
  return kNames;
}

struct ArgMinMaxParams {
  ArgMode mode = ArgMode::kSpatialArgMax;
  int64_t kernel_width = 0, kernel_height = 0;  // 0: that of the input
  int64_t left = 0, right = 0, top = 0, bottom = 0, front = 0, back = 0;
  std::vector<int64_t> step = {1, 1};  // x, y
};

bool IsSpatial(const ArgMinMaxParams& p) {
  return p.mode == ArgMode::kSpatialArgMin || p.mode == ArgMode::kSpatialArgMax;
}

bool IsLargest(const ArgMinMaxParams& p) {
  return p.mode == ArgMode::kSpatialArgMax || p.mode == ArgMode::kChannelArgMax;
}

absl::Status Complete(ArgMinMaxParams& p, Bottoms in, absl::Span<const Tensor>) {
  if (p.step.size() != 2) return absl::InvalidArgumentError("Step: want [x, y]");
  if (p.kernel_width == 0) p.kernel_width = in[0].dims.w();
  if (p.kernel_height == 0) p.kernel_height = in[0].dims.h();
  return absl::OkStatus();
}

// The number of windows along one axis; 0 if no window fits.
int64_t Windows(int64_t extent, int64_t pad, int64_t kernel, int64_t step) {
  if (kernel < 1 || kernel > kFactorBound || pad < 0 || pad > kFactorBound || step < 1 ||
      extent > kFactorBound || kernel > extent + 2 * pad) {
    return 0;
  }
  return (extent + 2 * pad - kernel) / step + 1;
}

absl::StatusOr<Dims> Shape(const ArgMinMaxParams& p, Bottoms in) {
  Dims out = in[0].dims;
  if (!IsSpatial(p)) {
    out[Axis::kC] = 1;
    return out;
  }
  out[Axis::kW] = Windows(out.w(), p.left, p.kernel_width, p.step[0]);
  out[Axis::kH] = Windows(out.h(), p.top, p.kernel_height, p.step[1]);
  if (out.w() < 1 || out.h() < 1) {
    return absl::InvalidArgumentError("the window does not fit into the padded input");
  }
  return out;
}

Verdict CheckWindow(Judge& judge, const ArgMinMaxParams& p) {
  if (std::min({p.left, p.right, p.top, p.bottom, p.front, p.back}) < 0) {
    return judge.Reject(rule::kArgMinMaxPad);
  }
  if (p.left >= p.kernel_width) {
    return judge.Reject(rule::kArgMinMaxLeftPad, p.kernel_width, p.left);
  }
  if (p.left != p.right) return judge.Reject(rule::kArgMinMaxEqualWidthPad, p.left, p.right);
  if (p.top != p.bottom) return judge.Reject(rule::kArgMinMaxEqualHeightPad, p.top, p.bottom);
  if (p.top >= p.kernel_height) return judge.Reject(rule::kArgMinMaxPad);
  if (p.front != 0 || p.back != 0) {
    return judge.Reject(rule::kArgMinMaxDepthPad, p.front, p.back);
  }
  if (!rule::kArgMinMaxStrideX.Lists(p.step[0])) {
    return judge.Reject(rule::kArgMinMaxStrideX, p.step[0]);
  }
  if (!rule::kArgMinMaxStrideY.Lists(p.step[1])) {
    return judge.Reject(rule::kArgMinMaxStrideY, p.step[1]);
  }
  return judge.Accept();
}

Verdict Validate(const ArgMinMaxParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  Verdict window = CheckWindow(judge, p);
  if (!window.accepted) return window;
  // argmin along an axis: route mil needs A15; direct authoring does not (op_matrix.json).
  if (p.mode == ArgMode::kSpatialArgMin || p.mode == ArgMode::kChannelArgMin) {
    Verdict converted = CheckConverted(judge, "reduce_argmin");
    if (!converted.accepted) return converted;
  }
  const Dims& dims = in[0].dims;
  if (!IsSpatial(p)) {
    return dims.c() <= rule::kArgMinMaxChannels.limit ? judge.Accept()
                                                      : judge.Reject(rule::kArgMinMaxChannels);
  }
  return std::max(dims.h(), dims.w()) <= rule::kArgMinMaxPlane.limit
             ? judge.Accept()
             : judge.Reject(rule::kArgMinMaxPlane);
}

// A key that sets several members to the same number. It is read but never written.
template <auto... kMembers>
constexpr Field<ArgMinMaxParams> AllOf(const char* key) {
  return {key, [](const ArgMinMaxParams&) -> Json { return nullptr; },
          [](ArgMinMaxParams& p, const Json& from) {
            int64_t value = 0;
            absl::Status status = Plain::Read(from, value);
            ((p.*kMembers = value), ...);
            return status;
          },
          false, ValueType::kInt};
}

// The extent of a kernel. 0 stands for a key that was left out, so it is not accepted as a value.
struct Extent {
  static Json Write(int64_t value) { return value; }
  static absl::Status Read(const Json& from, int64_t& value) {
    ANEMONE_RETURN_IF_ERROR(Plain::Read(from, value));
    return value < 1 ? absl::InvalidArgumentError("want at least 1") : absl::OkStatus();
  }
};

// A listing always has this key but the netplists seen do not, so a step of 1 is not written.
bool IsStrided(const ArgMinMaxParams& p) {
  return IsSpatial(p) && (p.step[0] != 1 || p.step[1] != 1);
}

constexpr Field<ArgMinMaxParams> kFields[] = {
    Required<&ArgMinMaxParams::mode>("Mode"),
    Key<&ArgMinMaxParams::kernel_width, Extent, IsSpatial>("KernelWidth"),
    Key<&ArgMinMaxParams::kernel_height, Extent, IsSpatial>("KernelHeight"),
    Key<&ArgMinMaxParams::step, Plain, IsStrided>("Step"),
    AllOf<&ArgMinMaxParams::left, &ArgMinMaxParams::right, &ArgMinMaxParams::top,
          &ArgMinMaxParams::bottom>("Pad"),
    Key<&ArgMinMaxParams::top, Plain, IsSpatial>("PadTop"),
    Key<&ArgMinMaxParams::bottom, Plain, IsSpatial>("PadBot"),
    Key<&ArgMinMaxParams::left, Plain, IsSpatial>("PadLeft"),
    Key<&ArgMinMaxParams::right, Plain, IsSpatial>("PadRight"),
    Alias<&ArgMinMaxParams::front>("PadFront"),
    Alias<&ArgMinMaxParams::back>("PadBack"),
    {"Stride", [](const ArgMinMaxParams&) -> Json { return nullptr; },
     [](ArgMinMaxParams& p, const Json& from) {
       p.step.assign(2, 1);
       absl::Status status = Plain::Read(from, p.step[0]);
       p.step[1] = p.step[0];
       return status;
     },
     false, ValueType::kInt},
};

// Among equal elements the first wins (st-index). The sources do not say where the positions in a
// window are counted from. Here they count from the corner of the window, padding included, so they
// stay exact in fp16 on a plane of any size. A window of the whole plane, the only one seen in
// netplists, gives the position in the plane in either case. Padding never wins, as in a maximum
// (pool-max).
void Choose(const ArgMinMaxParams& p, bool takes_last, absl::Span<const ConstView> in, View out) {
  const math::Extreme extreme = IsLargest(p) ? math::Extreme::kMax : math::Extreme::kMin;
  const Dims& dims = in[0].dims;
  if (!IsSpatial(p)) {
    return math::ArgExtreme(extreme, dims.extent, math::kAxisC, in[0].span(), out.span(),
                            takes_last);
  }
  const math::Window window{.kernel_h = p.kernel_height,
                            .kernel_w = p.kernel_width,
                            .stride_h = p.step[1],
                            .stride_w = p.step[0],
                            .pad_top = p.top,
                            .pad_left = p.left,
                            .pad_bottom = p.bottom,
                            .pad_right = p.right};
  math::WindowArgExtreme(extreme,
                         {.planes = dims.n() * dims.d() * dims.c(),
                          .in_h = dims.h(),
                          .in_w = dims.w(),
                          .out_h = out.dims.h(),
                          .out_w = out.dims.w(),
                          .window = window},
                         in[0].span(), out.span(), takes_last);
}

void Compute(const ArgMinMaxParams& p, const void*, absl::Span<const ConstView> in, View out) {
  Choose(p, /*takes_last=*/false, in, out);
}

void Exact(const ArgMinMaxParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  Choose(p, unit.numerics.st_index == math::StIndex::kLast, in, out);
}

// A window of the whole plane is written as an axis that joins the rows of the plane.
absl::Status WriteMil(const ArgMinMaxParams& p, const Unit& unit, MilEmitter& e) {
  Dims from = e.DimsOf(0);
  std::string x = e.In(0);
  if (IsSpatial(p)) {
    const int64_t plane = from.h() * from.w();
    if (p.kernel_width != from.w() || p.kernel_height != from.h() || p.left + p.top > 0) {
      return absl::UnimplementedError("MIL has no operation for the index within a window");
    }
    if (plane > fp16::kLargestExactInteger)
      return absl::UnimplementedError(
          "a plane of more than 2048 elements, whose indices fp16 does not represent exactly");
    Dims row = from;
    row[Axis::kH] = 1;
    row[Axis::kW] = plane;
    if (from.h() > 1) x = WriteReshaped(e, std::move(x), from, row);
  }
  const char* op = IsLargest(p) ? "reduce_argmax" : "reduce_argmin";
  const Axis axis = IsSpatial(p) ? Axis::kW : Axis::kC;
  const std::string y = e.EmitAll(op,
                                  {{"x", {x}},
                                   {"axis", {e.Int(e.ToMilAxis(axis))}},
                                   {"keep_dims", {e.Bool(true)}},
                                   {"output_dtype", {e.Text("uint16")}}},
                                  {e.IndexType(unit.dims)})[0];
  e.Result(e.Numbers(y, unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<ArgMinMaxParams>& Kind() {
  static const UnitKindOf<ArgMinMaxParams> kind({
      .type = "ArgMinMax",
      .family = &rule::kUnitFamily,
      .bottoms = {1, 1, &rule::kArgMinMaxInputs},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// Along W or H of a plane with one row or column: a window over the whole plane. Along W of other
// planes: the same after a view that turns each row into a channel, if the target accepts that.
// Otherwise the axis is moved to C.
Operand IndexAlong(NetworkBuilder& c, const Operand& x, Axis axis, bool largest) {
  const Dims dims = c.DimsOf(x);
  Dims rows = dims;
  rows[Axis::kC] *= dims.h();
  rows[Axis::kH] = 1;
  const Bottom view{.dims = rows};
  if (axis == Axis::kW && dims.h() > 1 &&
      CheckBottoms(Kind(), {&view, 1}, c.target(), c.route()).accepted) {
    Operand y = ReshapeToDims(c, x, rows);
    y = IndexAlong(c, y, axis, largest);
    Dims out = dims;
    out[Axis::kW] = 1;
    return ReshapeToDims(c, y, out);
  }
  if ((axis == Axis::kW && dims.h() == 1) || (axis == Axis::kH && dims.w() == 1)) {
    return c.Add(
        Kind(),
        ArgMinMaxParams{.mode = largest ? ArgMode::kSpatialArgMax : ArgMode::kSpatialArgMin,
                        .kernel_width = dims.w(),
                        .kernel_height = dims.h()},
        {x});
  }
  Operand moved = SwapAxes(c, x, axis, Axis::kC);
  moved = c.Add(Kind(),
                ArgMinMaxParams{.mode = largest ? ArgMode::kChannelArgMax : ArgMode::kChannelArgMin,
                                .kernel_width = c.DimsOf(moved).w(),
                                .kernel_height = c.DimsOf(moved).h()},
                {moved});
  return SwapAxes(c, moved, axis, Axis::kC);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ArgRequest request, ReadArgRequest(c, node));
  if (request.last) return c.NotLowered("the last of several equal elements, as one unit");
  Operand y = IndexAlong(c, request.x, request.axis, request.largest);
  return OutArg(c, node, request, y);
}

// The last of several equal elements is the first one when the axis is read backwards.
absl::Status LowerLast(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ArgRequest request, ReadArgRequest(c, node));
  if (!request.last)
    return c.NotLowered("the first of several equal elements, by reversing the axis");
  const int64_t last = request.count - 1;
  Operand y = Sliced(c, request.x, request.axis, last, last + 1, -1);
  y = IndexAlong(c, y, request.axis, request.largest);
  y = ScaleAndShift(c, y, -1, static_cast<double>(last));
  return OutArg(c, node, request, y);
}

absl::Status Build(MilContext& c) {
  const bool largest = absl::EndsWith(c.call().op, "argmax");
  ANEMONE_ASSIGN_OR_RETURN(int at, c.AxisAt("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(bool keep_dims, c.Bool("keep_dims", false));
  c.Ignore("output_dtype");
  Operand x = c.In(0);
  Operand y = IndexAlong(c, x, ToEngineAxis(c.rank(0), at), largest);
  std::vector<int64_t> shape = c.ShapeOf(0);
  shape[at] = 1;
  if (!keep_dims) {
    y = ToOnnxOrder(c, y, c.rank(0));
    shape.erase(shape.begin() + at);
    y = FromOnnxOrder(c, y, shape);
  }
  return c.Out(y, shape);
}

constexpr MilOperation kOperations[] = {{"reduce_argmax", Build}, {"reduce_argmin", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "ArgMax", .lower = Lower},
    {.op = "ArgMin", .lower = Lower},
    {.op = "ArgMax", .rewritten = true, .lower = LowerLast},
    {.op = "ArgMin", .rewritten = true, .lower = LowerLast},
};

}  // namespace

absl::StatusOr<ArgRequest> ReadArgRequest(LowerContext& c, const Node& node) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", 0));
  ANEMONE_ASSIGN_OR_RETURN(int64_t last, a.Int("select_last_index", 0));
  a.Ignore("keepdims");  // implied by the shape of the output
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ArgRequest request{.largest = node.op_type == "ArgMax", .last = last != 0};
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  const int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
  request.axis = ToEngineAxis(rank, at);
  request.rank = rank;
  request.count = shape[at];
  request.x = c.In(node.inputs[0]);
  if (c.DimsOf(request.x).elements() == 0) return c.Refuse(rule::kEmptyTensor);
  return request;
}

absl::Status OutArg(LowerContext& c, const Node& node, const ArgRequest& request, Operand y) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (static_cast<int>(to.size()) != request.rank) {  // without keepdims
    y = ReshapeInOnnxOrder(c, y, request.rank, to);
  }
  return c.OutIndex(node.outputs[0], y, request.count);
}

KernelRows ArgMinMaxRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
