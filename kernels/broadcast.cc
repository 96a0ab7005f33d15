// Broadcast: axes of extent 1 repeated. Facts: validators.json Broadcast; capability byte 0x812.
#include "kernels/broadcast.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/copy.h"
#include "kernels/elementwise.h"
#include "kernels/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct BroadcastParams {
  Dims dims;               // of the output
  std::vector<Axis> axes;  // those repeated
};

absl::StatusOr<Dims> Shape(const BroadcastParams& p, Bottoms) { return p.dims; }

Verdict Validate(const BroadcastParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  for (int i = 0; i < kAxisCount; ++i) {
    Axis axis = static_cast<Axis>(i);
    if (in[0].dims[axis] == p.dims[axis]) continue;
    if (in[0].dims[axis] != 1) return judge.Reject(rule::kBroadcastExtent);
    if (axis == Axis::kD && !judge.Has(Cap::kDepthBroadcastAnd1x1Upsample)) {
      return judge.Reject(rule::kBroadcastDepth);
    }
  }
  return judge.Accept();
}

std::string ShowInfo(const BroadcastParams& p) {
  std::string shown;
  for (Axis axis : p.axes) {
    absl::StrAppend(&shown, shown.empty() ? "" : " ", AxisName(axis), ":", p.dims[axis]);
  }
  return shown;
}

constexpr Field<BroadcastParams> kFields[] = {{"BroadcastInfo", ShowInfo}};

void Compute(const BroadcastParams&, const void*, absl::Span<const ConstView> in, View out) {
  math::Broadcast(in[0].dims.extent, out.dims.extent, in[0].span(), out.span());
}

const UnitKindOf<BroadcastParams>& Kind() {
  static const UnitKindOf<BroadcastParams>& kind =
      *new UnitKindOf<BroadcastParams>({.type = "Broadcast",
                                        .shape = Shape,
                                        .validate = Validate,
                                        .fields = kFields,
                                        .compute = Compute});
  return kind;
}

// A view of `dims` with an axis of extent 1 more, which Repeated() broadcasts.
struct Opened {
  Dims dims;
  Axis axis;
};

// Products of several axes go where the caps are widest (N and C), the row stays on W.
Opened Open(const Dims& dims, Axis axis, bool each) {
  int64_t before = 1, extent = dims[axis], after = 1;
  for (int i = 0; i < kAxisCount; ++i) {
    if (i < static_cast<int>(axis)) before *= dims.extent[i];
    if (i > static_cast<int>(axis)) after *= dims.extent[i];
  }
  if (!each) return {MakeDims(before, 1, extent * after / dims.w(), dims.w()), Axis::kC};
  if (axis == Axis::kW) return {MakeDims(before / dims.h(), dims.h(), extent, 1), Axis::kW};
  return {MakeDims(before, extent, 1, after), Axis::kH};
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, AlignedOperand(c, node.inputs[0], to));
  ANEMONE_ASSIGN_OR_RETURN(x, Broadcasted(c, x, PlaceShape(to)));
  return c.Out(node.outputs[0], x);
}

// For targets that do not broadcast depth: that axis is repeated under other dims, last, so that
// the least is copied.
absl::Status LowerWithoutDepth(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, AlignedOperand(c, node.inputs[0], to));
  Dims want = PlaceShape(to);
  if (want.elements() == 0 || c.DimsOf(x).elements() == 0) return c.Refuse(rule::kEmptyTensor);
  Dims flat = want;
  flat[Axis::kD] = c.DimsOf(x).d();
  ANEMONE_ASSIGN_OR_RETURN(x, Broadcasted(c, x, flat));
  ANEMONE_ASSIGN_OR_RETURN(x, Repeated(c, x, Axis::kD, want.d() / flat.d(), /*each=*/false));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Expand", .lower = Lower},
    {.op = "Expand", .rewritten = true, .lower = LowerWithoutDepth},
};

}  // namespace

absl::StatusOr<Operand> Broadcasted(NetworkBuilder& c, const Operand& x, const Dims& dims) {
  BroadcastParams p{.dims = dims, .axes = {}};
  for (int i = 0; i < kAxisCount; ++i) {
    if (c.DimsOf(x).extent[i] != dims.extent[i]) p.axes.push_back(static_cast<Axis>(i));
  }
  if (p.axes.empty()) return x;
  return c.Add(Kind(), p, {x});
}

absl::StatusOr<Operand> Repeated(NetworkBuilder& c, const Operand& x, Axis axis, int64_t times,
                                 bool each) {
  if (times == 1) return x;
  Dims out = c.DimsOf(x);
  Opened opened = Open(out, axis, each);
  out[axis] *= times;
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Reshaped(c, x, opened.dims));
  opened.dims[opened.axis] = times;
  ANEMONE_ASSIGN_OR_RETURN(y, Broadcasted(c, y, opened.dims));
  return Reshaped(c, y, out);
}

KernelRows BroadcastRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
