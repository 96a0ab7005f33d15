// Softmax over one axis. Needs A13. Facts: validators.json Softmax; numerics.json sm-*.
#include "math/reduce/softmax.h"

#include <vector>

#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/shared/permuted.h"
#include "kernels/units/reduction.h"
#include "math/exact/exact_reduce.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct SoftmaxParams {
  Axis axis = Axis::kW;
};

absl::StatusOr<Dims> Shape(const SoftmaxParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const SoftmaxParams&, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  return judge.Has(Cap::kSoftmax) ? judge.Accept() : judge.Reject(rule::kSoftmaxArch);
}

constexpr Field<SoftmaxParams> kFields[] = {Required<&SoftmaxParams::axis>("Dimension")};

void Compute(const SoftmaxParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::Softmax(in[0].dims.extent, math::AxisSet({static_cast<int>(p.axis)}), in[0].span(),
                out.span());
}

void Exact(const SoftmaxParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  math::ExactSoftmax(unit.numerics, in[0].dims.extent, math::AxisSet({static_cast<int>(p.axis)}),
                     in[0].span(), out.span());
}

std::shared_ptr<const void> Permuted(const SoftmaxParams& p, const Permutation& order) {
  return std::make_shared<const SoftmaxParams>(SoftmaxParams{Permute(p.axis, order)});
}

absl::Status WriteMil(const SoftmaxParams& p, const Unit& unit, MilEmitter& e) {
  e.Result(
      e.Emit("softmax", {{"x", {e.In(0)}}, {"axis", {e.Int(e.ToMilAxis(p.axis))}}}, unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<SoftmaxParams>& Kind() {
  static const UnitKindOf<SoftmaxParams> kind({
      .type = "Softmax",
      .permuted = Permuted,
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

absl::StatusOr<Axis> ReadAxis(LowerContext& c, const Node& node) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", -1));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
  return ToEngineAxis(rank, at);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Axis axis, ReadAxis(c, node));
  Operand x = c.In(node.inputs[0]);
  x = c.Add(Kind(), SoftmaxParams{axis}, {x});
  return c.Out(node.outputs[0], x);
}

// (x - m) - log(sum(exp(x - m))), where m is the largest element. It is not computed as the
// logarithm of a Softmax: fp16 has no probabilities below 6e-8, so all results below -16.6 would be
// lost. The absolute error is about 1e-3, or one ulp of the result if that is larger.
absl::Status LowerLogSoftmax(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Axis axis, ReadAxis(c, node));
  Operand x = c.In(node.inputs[0]);
  Operand largest = Reduced(c, x, ReduceType::kMax, axis);
  x = Combined(c, ElementWiseType::kSub, x, largest);
  Operand sum = Activated(c, NeuronType::kExp, x);
  sum = Reduced(c, sum, ReduceType::kSum, axis);
  sum = NaturalLog(c, sum);
  x = Combined(c, ElementWiseType::kSub, x, sum);
  return c.Out(node.outputs[0], x);
}

absl::Status BuildSoftmax(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", -1));
  Operand x = c.In(0);
  x = c.Add(Kind(), SoftmaxParams{ToEngineAxis(c.rank(0), axis)}, {x});
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"softmax", BuildSoftmax}};

constexpr Lowering kLowerings[] = {
    {.op = "Softmax", .lower = Lower},
    {.op = "LogSoftmax", .rewritten = true, .lower = LowerLogSoftmax},
};

}  // namespace

KernelRows SoftmaxRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
