// Dropout: at rate 0 the identity, from A13 on; at other rates by the random-number block, from A15
// on (conflicts.md C-dropout). ONNX's Dropout is the identity outside training mode. Facts:
// validators.json Dropout; hidden_layers.json Dropout.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/bool_element.h"
#include "kernels/node_inputs.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct DropoutParams {
  float rate = 0;
  int64_t seed = 0;
};

absl::StatusOr<Dims> Shape(const DropoutParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const DropoutParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.rate == 0) return judge.Requires(rule::kDropoutArch);
  if (!judge.Has(Cap::kDropoutRandom)) return judge.Reject(rule::kDropoutArch);
  return p.rate > 0 && p.rate < 1 ? judge.Accept() : judge.Reject(rule::kDropoutRate);
}

constexpr Field<DropoutParams> kFields[] = {
    Key<&DropoutParams::rate>("DropoutRate"),
    Alias<&DropoutParams::rate>("rate"),
    Key<&DropoutParams::seed>("Seed"),
};

absl::StatusOr<Prepared> Prepare(const DropoutParams& p, Bottoms, absl::Span<const Tensor>) {
  if (p.rate == 0) return Prepared();
  return absl::UnimplementedError(
      "Dropout with a rate above 0 can be checked but not run: the engine's random number "
      "generator is not published");
}

// At rate 0. It copies, and is not a view, for the same reason as Flatten (flatten.cc).
void Compute(const DropoutParams&, const void*, absl::Span<const ConstView> in, View out) {
  std::copy_n(in[0].data, out.dims.elements(), out.data);
}

const UnitKindOf<DropoutParams>& Kind() {
  static const UnitKindOf<DropoutParams> kind({
      .type = "Dropout",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.prepare = Prepare, .compute = Compute},
  });
  return kind;
}

// Whether the node drops elements; it does not in inference, or if its ratio is 0.
absl::StatusOr<bool> IsTraining(LowerContext& c, const Node& node) {
  if (!HasInput(node, 2)) return false;
  if (HasInput(node, 1) && c.view().Scalar(node.inputs[1]) == 0) return false;
  const Tensor* training = c.view().Constant(node.inputs[2]);
  if (training == nullptr || training->elements() != 1) {
    return c.NotLowered("Dropout whose training_mode is computed at run time");
  }
  return BoolAt(*training, 0);
}

// In training mode a target without the random-number block refuses the unit. On others the result
// would be another one than ONNX Runtime's.
absl::Status LowerTraining(LowerContext& c, const Node& node) {
  const std::optional<double> ratio =
      HasInput(node, 1) ? c.view().Scalar(node.inputs[1]) : std::optional(0.5);
  if (!ratio) return c.NotLowered("Dropout whose ratio is computed at run time");
  const DropoutParams p{.rate = static_cast<float>(*ratio)};
  const Bottom x = c.BottomOf(c.In(node.inputs[0]));
  Verdict verdict = Kind().Validate(&p, {&x, 1}, c.target(), c.route());
  if (!verdict.accepted) return c.Refuse(std::move(verdict));
  return c.NotLowered("Dropout in training mode");
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(bool is_training, IsTraining(c, node));
  if (is_training) return LowerTraining(c, node);
  if (IsRead(c.view(), node, 1)) return c.NotLowered("the mask output of Dropout");
  Operand x = c.In(node.inputs[0]);
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "Dropout", .lower = Lower}};

}  // namespace

KernelRows DropoutRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
