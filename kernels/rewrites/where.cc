// Where: no unit that selects elements has a known netplist form, so it is computed from the
// condition c, which is 0 or 1, as c * a + (1 - c) * b. One of the two terms is 0 and the other is
// an operand times 1, so the result is exact for finite operands. An infinite constant becomes
// +-65504, because 0 times infinity is NaN; for a softmax, 65504 has the same effect as infinity.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil/mil_operands.h"
#include "kernels/units/goc.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// A constant with f applied to every element. A fill stays a fill.
Operand MappedConstant(LowerContext& c, const Tensor& tensor, absl::Span<const int64_t> shape,
                       absl::FunctionRef<float(float)> f) {
  if (!IsEngineConstant(tensor.type())) return c.Refuse(rule::kPortFormat);
  if (tensor.is_fill()) {
    math::Half element;
    ReadHalves(tensor, 0, {&element, 1});
    float value = f(math::ToFloat(element));
    return AlignedConstant(c,
                           Tensor::Fill(DataType::kFloat, tensor.dims(),
                                        {reinterpret_cast<std::byte*>(&value), sizeof(value)}),
                           shape);
  }
  std::vector<float> values = RoundedFloats(tensor);
  for (float& v : values) v = f(v);
  return AlignedConstant(c, Tensor::Floats(tensor.dims(), values), shape);
}

// condition * scale + bias.
Operand ScaledCondition(LowerContext& c, ValueId condition, absl::Span<const int64_t> shape,
                        double scale, double bias) {
  if (const Tensor* constant = c.view().Constant(condition)) {
    return MappedConstant(c, *constant, shape,
                          [&](float v) { return static_cast<float>(v * scale + bias); });
  }
  Operand mask = AlignedOperand(c, condition, shape);
  return ScaleAndShift(c, mask, scale, bias);
}

double Finite(double value) { return std::clamp<double>(value, fp16::kLowest, fp16::kLargest); }

// One of the two terms: `value` where the condition equals `when`, 0 elsewhere. nullopt if it is 0
// everywhere. For a scalar value, only the condition is scaled, without a product of tensors.
absl::StatusOr<std::optional<Operand>> Term(LowerContext& c, const Node& node, ValueId value,
                                            bool when, absl::Span<const int64_t> shape) {
  double scale = when ? 1 : -1, bias = when ? 0 : 1;
  std::optional<Operand> term;
  if (auto number = c.view().Scalar(value)) {
    if (*number == 0) return term;
    term =
        ScaledCondition(c, node.inputs[0], shape, scale * Finite(*number), bias * Finite(*number));
    return term;
  }
  Operand mask = ScaledCondition(c, node.inputs[0], shape, scale, bias);
  Operand x;
  if (const Tensor* constant = c.view().Constant(value)) {
    x = MappedConstant(c, c.Held(*constant), shape,
                       [](float v) { return static_cast<float>(Finite(v)); });
  } else {
    x = AlignedOperand(c, value, shape);
  }
  term = Combined(c, ElementWiseType::kMult, mask, x);
  return term;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(auto yes, Term(c, node, node.inputs[1], true, shape));
  ANEMONE_ASSIGN_OR_RETURN(auto no, Term(c, node, node.inputs[2], false, shape));
  if (!yes && !no) return c.NotLowered("Where between two zeros");
  Operand y = yes ? *yes : *no;
  if (yes && no) {
    y = Combined(c, ElementWiseType::kAdd, *yes, *no);
  }
  if (c.DimsOf(y) != PlaceShape(shape)) {
    return c.NotLowered("Where whose output shape comes only from a constant");
  }
  return c.Out(node.outputs[0], y);
}

// MIL's select. The condition is computed, or is a constant of unknown value, so both terms are
// always added.
absl::Status BuildSelect(MilContext& c) {
  static constexpr const char* kNames[] = {"cond", "a", "b"};
  ANEMONE_ASSIGN_OR_RETURN(BroadcastOperands in, OperandsOf(c, kNames));
  const Operand& condition = in.operands[0];
  Operand opposite = ScaleAndShift(c, condition, -1, 1);
  Operand yes = Combined(c, ElementWiseType::kMult, condition, in.operands[1]);
  Operand no = Combined(c, ElementWiseType::kMult, opposite, in.operands[2]);
  Operand y = Combined(c, ElementWiseType::kAdd, yes, no);
  return c.Out(y, in.shape);
}

constexpr MilOperation kOperations[] = {{"select", BuildSelect}};

constexpr Lowering kLowerings[] = {{.op = "Where", .lower = Lower}};

}  // namespace

KernelRows WhereRows() { return {{}, kLowerings, kOperations}; }

}  // namespace anemone
