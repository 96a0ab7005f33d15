// Broadcast: repeats axes of extent 1. Facts: validators.json Broadcast; capability byte 0x812.
#include "kernels/units/broadcast.h"

#include <algorithm>
#include <vector>

#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/shared/extents.h"
#include "kernels/units/reshape.h"
#include "math/exact/exact_contract.h"
#include "math/exact/exact_elementwise.h"
#include "math/move/copy.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct Repeat {
  Axis axis = Axis::kC;
  int64_t size = 1;  // of the output
};

struct BroadcastParams {
  std::vector<Repeat> axes;  // no axis twice
};

absl::StatusOr<Dims> Shape(const BroadcastParams& p, Bottoms in) {
  Dims out = in[0].dims;
  for (const Repeat& repeat : p.axes) out[repeat.axis] = repeat.size;
  return out;
}

Verdict Validate(const BroadcastParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  for (const Repeat& repeat : p.axes) {
    if (in[0].dims[repeat.axis] == repeat.size) continue;
    if (in[0].dims[repeat.axis] != 1) return judge.Reject(rule::kBroadcastExtent);
    if (repeat.axis == Axis::kD && !judge.Has(Cap::kDepthBroadcastAnd1x1Upsample)) {
      return judge.Reject(rule::kBroadcastDepth);
    }
  }
  return judge.Accept();
}

Verdict Codegen(const BroadcastParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (in[0].format != Format::kFloat16 && !judge.Reaches(rule::kBroadcastFormat)) {
    return judge.Reject(rule::kBroadcastFormat);
  }
  return judge.Accept();
}

// The JSON form: an array of {Dimension, Size}.
struct AsInfo {
  static Json Write(const std::vector<Repeat>& axes) {
    Json info = Json::array();
    for (const Repeat& repeat : axes) {
      info.push_back({{"Dimension", AxisName(repeat.axis)}, {"Size", repeat.size}});
    }
    return info;
  }

  static absl::Status Read(const Json& from, std::vector<Repeat>& axes) {
    constexpr char kWanted[] = "want an array of {Dimension, Size}, each dimension once";
    if (!from.is_array()) return absl::InvalidArgumentError(kWanted);
    math::AxisSet seen;
    for (const Json& item : from) {
      if (!item.is_object() || item.size() != 2 || !item.contains("Dimension") ||
          !item.contains("Size")) {
        return absl::InvalidArgumentError(kWanted);
      }
      Repeat& repeat = axes.emplace_back();
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item["Dimension"], repeat.axis));
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item["Size"], repeat.size));
      if (seen.Has(static_cast<int>(repeat.axis)) || repeat.size < 1) {
        return absl::InvalidArgumentError(kWanted);
      }
      seen.Add(static_cast<int>(repeat.axis));
    }
    return absl::OkStatus();
  }
};

constexpr Field<BroadcastParams> kFields[] = {
    Required<&BroadcastParams::axes, AsInfo>("BroadcastInfo"),
};

void Compute(const BroadcastParams&, const void*, absl::Span<const ConstView> in, View out) {
  math::Broadcast(in[0].dims.extent, out.dims.extent, in[0].span(), out.span());
}

// MIL writes it as a tile.
absl::Status WriteMil(const BroadcastParams&, const Unit& unit, MilEmitter& e) {
  const std::vector<int64_t> from = e.ShapeOf(e.DimsOf(0));
  std::vector<int64_t> reps = e.ShapeOf(unit.dims);
  for (int i = 0; i < e.rank(); ++i) reps[i] /= from[i];
  e.Result(e.Emit("tile", {{"x", {e.In(0)}}, {"reps", {e.Ints(reps)}}}, unit.dims));
  return absl::OkStatus();
}

// The two oldest families compute a broadcast: along C as a matrix product with ones, with the
// rounding rules of the MAC array, and along other axes as a sum with 0 (numerics.json
// mov-legacy-broadcast).
void Exact(const BroadcastParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  const math::Numerics& n = unit.numerics;
  Compute(p, nullptr, in, out);
  if (!n.computes_broadcast) return;
  const bool along_channels =
      std::any_of(p.axes.begin(), p.axes.end(), [](const Repeat& r) { return r.axis == Axis::kC; });
  if (along_channels) {
    const std::vector<math::Half> x(out.span().begin(), out.span().end());
    return math::ExactGemm(n, {.m = out.dims.elements()}, x, math::RowMajor(1),
                           {&math::kHalfOne, 1}, math::RowMajor(1), {}, out.span(),
                           math::RowMajor(1));
  }
  const math::Extents& extents = out.dims.extent;
  math::ExactBinary(n, math::BinaryOp::kAdd, out.span(), extents, {&math::kHalfZero, 1},
                    {1, 1, 1, 1, 1}, out.span(), extents);
}

const UnitKindOf<BroadcastParams>& Kind() {
  static const UnitKindOf<BroadcastParams> kind({
      .type = "Broadcast",
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// A view of dims with one more axis, which has extent 1 and is broadcast by Repeated().
struct Opened {
  Dims dims;
  Axis axis;
};

// Joined axes are put on N and C, whose caps are the largest. The row stays on W.
Opened Open(const Dims& dims, Axis axis, bool each) {
  const int64_t extent = dims[axis];
  const auto [before, after] = ProductsAround(dims.extent, static_cast<int>(axis));
  if (!each) return {MakeDims(before, 1, extent * after / dims.w(), dims.w()), Axis::kC};
  if (axis == Axis::kW) return {MakeDims(before / dims.h(), dims.h(), extent, 1), Axis::kW};
  return {MakeDims(before, extent, 1, after), Axis::kH};
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  Operand x = AlignedOperand(c, node.inputs[0], to);
  x = Broadcasted(c, x, PlaceShape(to));
  return c.Out(node.outputs[0], x);
}

// For targets that do not broadcast depth: that axis is repeated under other dims. It comes last,
// so that the fewest elements are copied.
absl::Status LowerWithoutDepth(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  Operand x = AlignedOperand(c, node.inputs[0], to);
  Dims want = PlaceShape(to);
  if (want.elements() == 0 || c.DimsOf(x).elements() == 0) return c.Refuse(rule::kEmptyTensor);
  Dims flat = want;
  flat[Axis::kD] = c.DimsOf(x).d();
  x = Broadcasted(c, x, flat);
  x = Repeated(c, x, Axis::kD, want.d() / flat.d(), /*each=*/false);
  return c.Out(node.outputs[0], x);
}

// Outputs a constant of `shape`: the attribute `value`, broadcast.
absl::Status Filled(MilContext& c, absl::Span<const int64_t> shape) {
  ANEMONE_ASSIGN_OR_RETURN(float value, c.Number("value", 0));
  if (shape.size() > kMaxRank) return c.Refuse(rule::kReshapeRank);
  for (int64_t extent : shape) {
    if (extent < 1) return c.Refuse(rule::kEmptyTensor);
  }
  ANEMONE_RETURN_IF_ERROR(ElementCount(shape).status());
  const Dims want = PlaceShape(shape);
  Dims flat = want;
  flat[Axis::kD] = 1;
  Operand x = Broadcasted(c, ScalarConstant(c, value), flat);
  // Broadcasting along the depth is done separately: not every target supports it.
  x = Repeated(c, x, Axis::kD, want.d(), /*each=*/false);
  return c.Out(x, shape);
}

absl::Status BuildFill(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.Ints("shape", {}));
  return Filled(c, shape);
}

absl::Status BuildFillLike(MilContext& c) {
  c.In(0);  // only the shape of the reference is used
  return Filled(c, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"fill", BuildFill}, {"fill_like", BuildFillLike}};

constexpr Lowering kLowerings[] = {
    {.op = "Expand", .lower = Lower},
    {.op = "Expand", .rewritten = true, .lower = LowerWithoutDepth},
};

}  // namespace

Operand Broadcasted(NetworkBuilder& c, const Operand& x, const Dims& dims) {
  BroadcastParams p;
  for (int i = 0; i < kAxisCount; ++i) {
    if (c.DimsOf(x).extent[i] != dims.extent[i])
      p.axes.push_back({static_cast<Axis>(i), dims.extent[i]});
  }
  if (p.axes.empty()) return x;
  return c.Add(Kind(), p, {x});
}

Operand Repeated(NetworkBuilder& c, const Operand& x, Axis axis, int64_t times, bool each) {
  if (times == 1) return x;
  Dims out = c.DimsOf(x);
  Opened opened = Open(out, axis, each);
  out[axis] *= times;
  Operand y = ReshapeToDims(c, x, opened.dims);
  opened.dims[opened.axis] = times;
  y = Broadcasted(c, y, opened.dims);
  return ReshapeToDims(c, y, out);
}

KernelRows BroadcastRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
