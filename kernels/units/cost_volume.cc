// CostVolume: |aux[x] - ref[x + d]|, with one channel for every disparity d from 0 to a range.
// Direct authoring only. Facts: validators.json CostVolume; hidden_layers.json CostVolume. A Concat
// of such differences, one for each shift of ref, is lowered to it. If the differences are summed
// over channels, each channel gets a unit and the results are added.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/bounds.h"
#include "kernels/units/goc.h"
#include "kernels/units/input_view.h"
#include "kernels/units/layer_normalization.h"
#include "kernels/units/padding.h"
#include "math/core/parallel.h"
#include "math/elementwise/elementwise.h"
#include "math/elementwise/unary.h"
#include "math/exact/exact_elementwise.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct CostVolumeParams {
  int64_t direction = 0;
  int64_t range = 0;
  float scale_x = 1, scale_y = 1;
};

absl::StatusOr<Dims> Shape(const CostVolumeParams& p, Bottoms in) {
  Dims like = in[1].dims;
  like[Axis::kW] = in[0].dims.w();
  if (like != in[0].dims || like.c() != 1) {
    return absl::InvalidArgumentError("want two inputs of one channel that differ in width only");
  }
  if (p.range < 0) return absl::InvalidArgumentError("DisparityRange: want 0 or more");
  if (p.range > in[1].dims.w())
    return absl::InvalidArgumentError("DisparityRange: want at most the width of the reference");
  like[Axis::kC] = p.range + 1;
  return like;
}

Verdict Validate(const CostVolumeParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (in[1].dims.w() - in[0].dims.w() < p.range) return judge.Reject(rule::kCostVolumeWidth);
  return judge.Accept();
}

template <auto kMember>
bool IsScaled(const CostVolumeParams& p) {
  return p.*kMember != 1;
}

using P = CostVolumeParams;
constexpr Field<P> kFields[] = {
    Required<&P::direction>("DisparityDirection"),
    Required<&P::range>("DisparityRange"),
    Key<&P::scale_x, Plain, IsScaled<&P::scale_x>>("ScaleFactorX"),
    Key<&P::scale_y, Plain, IsScaled<&P::scale_y>>("ScaleFactorY"),
};

absl::StatusOr<Prepared> Prepare(const P& p, Bottoms, absl::Span<const Tensor>) {
  if (p.direction == 0 && p.scale_x == 1 && p.scale_y == 1) return Prepared();
  return absl::UnimplementedError(
      "CostVolume with a direction other than 0 or with a scale can be checked but not run: its "
      "results are not published");
}

// |a - b| row by row, with the difference computed by `subtract`. There is one rounding: the two
// options of numerics.json ew-hidden are the same for a single step.
template <class Subtract>
void Volume(absl::Span<const ConstView> in, View out, const Subtract& subtract) {
  const Dims& dims = out.dims;
  const size_t width = dims.w(), ref_width = in[1].dims.w();
  const math::Extents row_extents = {1, 1, 1, 1, dims.w()};
  const int64_t rows = dims.elements() / dims.w();
  math::ParallelForItems(rows, dims.w(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t d = row / dims.h() % dims.c();
      const int64_t source = row / dims.h() / dims.c() * dims.h() + row % dims.h();
      absl::Span<math::Half> to = out.span().subspan(row * width, width);
      subtract(in[0].span().subspan(source * width, width), row_extents,
               in[1].span().subspan(source * ref_width + d, width), row_extents, to, row_extents);
      math::Abs(to, to);
    }
  });
}

void Compute(const P&, const void*, absl::Span<const ConstView> in, View out) {
  Volume(in, out, [](const auto&... row) { math::Binary(math::BinaryOp::kSub, row...); });
}

void Exact(const P&, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  Volume(in, out, [&](const auto&... row) {
    math::ExactBinary(unit.numerics, math::BinaryOp::kSub, row...);
  });
}

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P> kind({
      .type = "CostVolume",
      .family = &rule::kUnitFamily,
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// The attributes have the names of the unit's keys, because MIL's are not published.
absl::Status Build(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kNotConverted));
  CostVolumeParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.direction, c.Int("DisparityDirection", 0));
  ANEMONE_ASSIGN_OR_RETURN(p.range, c.Int("DisparityRange", 0));
  Operand aux = c.In(0);
  Operand ref = c.In(1);
  Operand y = c.Add(Kind(), p, {aux, ref});
  c.AddOutput("y", y);
  return absl::OkStatus();
}

// A value shifted along W: element x is base[x + offset], or `beyond` outside the base.
struct Shifted {
  ValueId base = kNone;
  int64_t base_width = 0, offset = 0, width = 0;
  int64_t first = 0, end = 0;  // the part of the base that no slice has cut off
  std::optional<float> beyond;
  std::vector<NodeId> nodes;

  // Whether no slice has cut off an element that the shifted value reads from the base.
  bool IsWhole() const {
    return std::max<int64_t>(offset, 0) >= first && std::min(offset + width, base_width) <= end;
  }
};

constexpr int kWidthAxis = 3, kChannelAxis = 1;  // ONNX axes of rank 4

std::optional<std::vector<int64_t>> ConstantInput(const GraphView& view, const Node& node,
                                                  size_t i) {
  const Tensor* constant = HasInput(node, i) ? view.Constant(node.inputs[i]) : nullptr;
  if (constant == nullptr || constant->elements() > MostIntegers()) return std::nullopt;
  return IntegersOf(*constant);
}

bool IsAxis(absl::Span<const int64_t> axes, int axis) {
  return axes.size() == 1 && (axes[0] == axis || axes[0] == axis - 4);
}

// Whether `node` slices only the width, with step 1. Updates `s`.
bool ThroughSlice(const GraphView& view, const Node& node, Shifted& s) {
  const auto starts = ConstantInput(view, node, 1), ends = ConstantInput(view, node, 2);
  const auto axes = ConstantInput(view, node, 3), steps = ConstantInput(view, node, 4);
  if (!starts || !ends || !axes || starts->size() != 1 || ends->size() != 1) return false;
  if (!IsAxis(*axes, kWidthAxis)) return false;
  if (HasInput(node, 4) && (!steps || *steps != std::vector<int64_t>{1})) return false;
  auto range = RangeOf((*starts)[0], (*ends)[0], 1, s.width);
  if (!range.ok() || range->size < 1) return false;
  s.offset += range->offset;
  s.width = range->size;
  return true;
}

// Whether `node` pads only the width, with a constant; negative pads crop. Updates `s`.
bool ThroughPad(const GraphView& view, const Node& node, Shifted& s) {
  auto mode = Attributes(node).String("mode", "constant");
  const auto pads = ConstantInput(view, node, 1);
  std::vector<int64_t> axes = {0, 1, 2, kWidthAxis};
  if (HasInput(node, 3)) axes = ConstantInput(view, node, 3).value_or(std::vector<int64_t>());
  if (!mode.ok() || *mode != "constant" || !pads || pads->size() != 2 * axes.size()) return false;
  int64_t before = 0, after = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t front = (*pads)[i], back = (*pads)[axes.size() + i];
    if (IsAxis({&axes[i], 1}, kWidthAxis)) {
      before = front;
      after = back;
    } else if (front != 0 || back != 0) {
      return false;
    }
  }
  if (std::max({before, after, -before, -after}) > kAttributeBound) return false;
  float value = 0;
  if (HasInput(node, 2)) {
    const std::optional<double> given = view.Scalar(node.inputs[2]);
    if (!given) return false;
    value = static_cast<float>(*given);
  }
  if (s.beyond && *s.beyond != value) return false;
  s.beyond = value;
  s.offset -= before;
  s.width += before + after;
  return s.width > 0;
}

// Follows up to `depth` Slice and Pad nodes, whose outputs have no other readers, to the value that
// they shift.
std::optional<Shifted> FindShift(const GraphView& view, ValueId value, int depth = 2) {
  const Value& v = view.graph.values[value];
  if (!v.is_static() || v.shape->size() != 4) return std::nullopt;
  for (const char* op : {"Slice", "Pad"}) {
    const Node* node = depth > 0 ? view.OnlyProducer(value, op) : nullptr;
    if (node == nullptr) continue;
    std::optional<Shifted> s = FindShift(view, node->inputs[0], depth - 1);
    if (!s || !(node->op_type == "Slice" ? ThroughSlice : ThroughPad)(view, *node, *s)) break;
    s->first = std::max(s->first, s->offset);
    s->end = std::min(s->end, s->offset + s->width);
    s->nodes.push_back(view.IdOf(*node));
    return s;
  }
  const int64_t width = v.dims()[kWidthAxis];
  return Shifted{.base = value, .base_width = width, .width = width, .end = width};
}

// One input of the Concat: |a - b|, or its mean or sum over the channels.
struct Difference {
  const Node* sub = nullptr;
  const Node* reduce = nullptr;  // null if there is none
  int64_t channels = 1;

  bool is_mean() const { return reduce != nullptr && reduce->op_type == "ReduceMean"; }
};

std::optional<Difference> DifferenceOf(const GraphView& view, ValueId part,
                                       std::vector<NodeId>& nodes) {
  Difference found;
  for (const char* op : {"ReduceMean", "ReduceSum"}) {
    const Node* reduce = view.OnlyProducer(part, op);
    if (reduce == nullptr) continue;
    auto keepdims = Attributes(*reduce).Int("keepdims", 1);
    if (!keepdims.ok() || *keepdims == 0 ||
        ReducedAxes(view, *reduce) != std::vector<int>{kChannelAxis}) {
      return std::nullopt;
    }
    found.reduce = reduce;
    nodes.push_back(view.IdOf(*reduce));
    part = reduce->inputs[0];
    break;
  }
  const Node* abs = view.OnlyProducer(part, "Abs");
  found.sub = abs == nullptr ? nullptr : view.OnlyProducer(abs->inputs[0], "Sub");
  if (found.sub == nullptr) return std::nullopt;
  const Value& made = view.graph.values[found.sub->outputs[0]];
  if (!made.is_static() || made.shape->size() != 4) return std::nullopt;
  found.channels = made.dims()[kChannelAxis];
  if (found.reduce == nullptr && found.channels != 1) return std::nullopt;
  nodes.insert(nodes.end(), {view.IdOf(*abs), view.IdOf(*found.sub)});
  return found;
}

struct Stack {
  ValueId aux = kNone, ref = kNone;
  int64_t range = 0;
  bool descending = false;  // the last part has the smallest offset
  int64_t channels = 1;
  double scale = 1;  // factor of the sum over the channels
  // The part of ref along W that is read, and the padding before and after it.
  int64_t first = 0, size = 0, before = 0, after = 0;
  float beyond = 0;
  std::vector<NodeId> nodes;
};

// The stack if every part k is |aux[x] - ref[x + offset + k]|, or every part has - k instead.
std::optional<Stack> StackOf(const GraphView& view, absl::Span<const Node* const> parts,
                             ValueId aux) {
  const std::vector<int64_t> dims = view.graph.values[aux].dims();
  Stack stack{.aux = aux, .range = static_cast<int64_t>(parts.size()) - 1};
  std::vector<Shifted> shifts;
  for (const Node* sub : parts) {
    if (sub->inputs[0] != aux && sub->inputs[1] != aux) return std::nullopt;
    const ValueId other = sub->inputs[sub->inputs[0] == aux ? 1 : 0];
    std::optional<Shifted> s = FindShift(view, other);
    // Neither Sub nor the unit may broadcast.
    if (!s || !s->IsWhole() || view.graph.values[other].dims() != dims) return std::nullopt;
    shifts.push_back(*std::move(s));
  }
  const Shifted &front = shifts.front(), &back = shifts.back();
  stack.ref = front.base;
  stack.descending = back.offset < front.offset;
  std::optional<float> beyond;
  for (int64_t k = 0; k <= stack.range; ++k) {
    const Shifted& s = shifts[k];
    if (s.base != stack.ref || s.offset != front.offset + (stack.descending ? -k : k)) {
      return std::nullopt;
    }
    if (s.beyond && beyond && *s.beyond != *beyond) return std::nullopt;
    if (s.beyond) beyond = s.beyond;
    stack.nodes.insert(stack.nodes.end(), s.nodes.begin(), s.nodes.end());
  }
  const int64_t least = std::min(front.offset, back.offset);
  const int64_t end = std::max(front.offset, back.offset) + front.width;
  stack.first = std::max<int64_t>(least, 0);
  stack.size = std::min(end, front.base_width) - stack.first;
  if (stack.size < 1) return std::nullopt;
  stack.before = std::max<int64_t>(-least, 0);
  stack.after = std::max<int64_t>(end - front.base_width, 0);
  stack.beyond = beyond.value_or(0);
  return stack;
}

std::optional<Stack> FindStack(const GraphView& view, const Node& anchor) {
  auto axis = Attributes(anchor).Int("axis", 0);
  if (!axis.ok() || !IsAxis({&*axis, 1}, kChannelAxis) || anchor.inputs.size() < 2) {
    return std::nullopt;
  }
  std::vector<NodeId> nodes;
  std::vector<const Node*> parts;
  std::optional<Difference> first;
  for (ValueId input : anchor.inputs) {
    const std::optional<Difference> part = DifferenceOf(view, input, nodes);
    if (!part) return std::nullopt;
    if (!first) first = part;
    const bool differs = part->channels != first->channels || part->is_mean() != first->is_mean();
    if (differs && (part->channels > 1 || first->channels > 1)) return std::nullopt;
    parts.push_back(part->sub);
  }
  for (ValueId aux : parts.back()->inputs) {
    const Value& made = view.graph.values[parts.back()->outputs[0]];
    const Value& v = view.graph.values[aux];
    if (!v.is_static() || v.dims() != made.dims()) continue;
    std::optional<Stack> stack = StackOf(view, parts, aux);
    if (!stack) continue;
    stack->nodes.insert(stack->nodes.end(), nodes.begin(), nodes.end());
    stack->channels = first->channels;
    if (first->is_mean()) stack->scale = 1.0 / static_cast<double>(first->channels);
    return stack;
  }
  return std::nullopt;
}

bool MatchStack(const GraphView& view, const Node& anchor, Match& match) {
  std::optional<Stack> stack = FindStack(view, anchor);
  if (stack) match.nodes = std::move(stack->nodes);
  return stack.has_value();
}

// The sum of the volumes of all channels. They are added in pairs, so that rounding errors do not
// accumulate.
Operand SumOfVolumes(LowerContext& c, const Stack& stack, const Operand& aux, const Operand& ref) {
  std::vector<Operand> volumes;
  for (int64_t channel = 0; channel < stack.channels; ++channel) {
    Operand a = Sliced(c, aux, Axis::kC, channel, 1);
    Operand b = Sliced(c, ref, Axis::kC, channel, 1);
    volumes.emplace_back() = c.Add(Kind(), CostVolumeParams{.range = stack.range}, {a, b});
  }
  while (volumes.size() > 1) {
    std::vector<Operand> sums;
    for (size_t i = 0; i + 1 < volumes.size(); i += 2) {
      sums.emplace_back() = Combined(c, ElementWiseType::kAdd, volumes[i], volumes[i + 1]);
    }
    if (volumes.size() % 2 == 1) sums.push_back(volumes.back());
    volumes = std::move(sums);
  }
  return ScaleAndShift(c, volumes.front(), stack.scale, 0);
}

// With one channel, the result has the same bits as the nodes: both round the difference once.
absl::Status LowerStack(const Match& match, LowerContext& c) {
  if (c.route() == Route::kMil) return c.Refuse(rule::kNotConverted);
  const Node& anchor = c.anchor(match);
  const Stack stack = *FindStack(c.view(), anchor);
  // Each channel needs 4 units: two slices, a volume and an addition.
  if (stack.channels > 1 && 4 * stack.channels > static_cast<int64_t>(match.nodes.size())) {
    return c.NotLowered(absl::StrCat(
        "a cost volume of ", stack.channels,
        " channels: a unit for each channel would need more units than the model has nodes"));
  }
  Operand aux = c.In(stack.aux);
  Operand ref = c.In(stack.ref);
  ref = Sliced(c, ref, Axis::kW, stack.first, stack.size);
  ref = Framed(c, ref, {.left = stack.before, .right = stack.after}, stack.beyond);
  Operand y = SumOfVolumes(c, stack, aux, ref);
  if (stack.descending) {
    y = Sliced(c, y, Axis::kC, stack.range, stack.range + 1, /*step=*/-1);
  }
  return c.Out(anchor.outputs[0], y);
}

constexpr Lowering kLowerings[] = {{.op = "Concat",
                                    .pattern = "cost-volume",
                                    .rewritten = true,
                                    .match = MatchStack,
                                    .lower = LowerStack}};

constexpr MilOperation kOperations[] = {{"cost_volume", Build}};

}  // namespace

KernelRows CostVolumeRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
