#include "kernels/fp16_range.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/fp16.h"
#include "importer/operators/operators.h"
#include "kernels/units/goc.h"

namespace anemone {
namespace {

// Half of the smallest fp16 number. Smaller numbers, and this one, are rounded to 0.
constexpr double kVanishes = fp16::kSmallest / 2;

// Weights whose largest is below this keep less than half of fp16's digits. (Families that read
// subnormals as zero lose more; `run --hazards` tells that of results.)
constexpr double kSmallestWeight = 0x1p-19;

// The largest magnitude of a float constant. nullopt if it is not a float constant, has a NaN, or
// was not read.
std::optional<double> MagnitudeOf(const GraphView& view, ValueId value) {
  if (view.Constant(value) == nullptr || !IsFloating(view.graph.values[value].type)) {
    return std::nullopt;
  }
  const Bounds& b = view.Floats().bounds[value];
  const bool is_unknown = std::isinf(b.low) && std::isinf(b.high) && b.low < b.high;
  if (is_unknown) return std::nullopt;
  return view.Floats().MagnitudeOf(value);
}

bool IsOneOf(const Node& node, std::initializer_list<absl::string_view> ops) {
  return node.domain.empty() && std::find(ops.begin(), ops.end(), node.op_type) != ops.end();
}

bool IsProduct(const Node& node) { return IsOneOf(node, {"Mul", "Div"}); }

// The input is multiplied with the other operand and summed up.
bool IsWeight(const Node& node, size_t input) {
  return input < 2 && OperatorOf(node).weight_axes != nullptr;
}

// The result holds a mask: all readers give the same result for the clamped number.
bool HoldsMask(const GraphView& view, const Node& node) {
  return !node.outputs.empty() && node.outputs[0] != kNone &&
         view.Floats().flat_for_constants[node.outputs[0]];
}

// A bound of Max, Min or Clip that no number of fp16 reaches is never the result, and a negative
// number that a Where puts in place is a mask.
bool IsOnlyBound(const Node& node, size_t input, const Bounds& b) {
  if (node.op_type == "Where") return b.high <= 0;
  const bool is_lower = node.op_type == "Max" || (node.op_type == "Clip" && input == 1);
  return is_lower ? !ExceedsHalf(b.high) : !ExceedsHalf(-b.low);
}

ConstantForm FormOfLarge(const GraphView& view, const Node& node, size_t input, double magnitude) {
  const Bounds& b = view.Floats().bounds[node.inputs[input]];
  if (IsProduct(node)) {
    // A mask is made by a factor below 0. Other factors before a softmax count.
    const bool has_factors = FactorsOf(magnitude).has_value();
    const bool is_masking = b.low < 0 || !has_factors;
    if (is_masking && HoldsMask(view, node)) return ConstantForm::kClamped;
    return has_factors ? ConstantForm::kFactored : ConstantForm::kLost;
  }
  switch (OperatorOf(node).large) {
    case LargeNumbers::kChoose:
      if (IsOnlyBound(node, input, b)) return ConstantForm::kClamped;
      [[fallthrough]];
    case LargeNumbers::kPass:
      return HoldsMask(view, node) ? ConstantForm::kClamped : ConstantForm::kLost;
    case LargeNumbers::kPick:
    case LargeNumbers::kFlat:
      return ConstantForm::kClamped;
    case LargeNumbers::kChange:
      break;
  }
  const bool moves = OperatorOf(node).moves != Moves::kNo;
  return moves && HoldsMask(view, node) ? ConstantForm::kClamped : ConstantForm::kLost;
}

ConstantForm FormOfSmall(const GraphView& view, const Node& node, size_t input, double magnitude) {
  if (IsProduct(node)) {
    return FactorsOf(magnitude) ? ConstantForm::kFactored : ConstantForm::kLost;
  }
  if (IsWeight(node, input)) {
    return magnitude < kSmallestWeight ? ConstantForm::kLost : ConstantForm::kHeld;
  }
  const bool is_number = view.Constant(node.inputs[input])->elements() == 1;
  const bool vanishes = magnitude <= kVanishes && is_number &&
                        IsOneOf(node, {"Add", "Sub", "Sum", "Max", "Min", "Clip"});
  return vanishes ? ConstantForm::kVanished : ConstantForm::kHeld;
}

Verdict Refuse(std::string why) {
  return OwnRefusal(Layer::kCoverage, kFp16Range, std::move(why),
                    "no action needed: the CPU computes the node in float32; --policy "
                    "insist:fp16-range puts it on the engine all the same");
}

// "value 'x' in -8.3e+06..8.3e+06", "constant 'c' of 1e+09".
std::string Named(const GraphView& view, ValueId value) {
  const Bounds& b = view.Floats().bounds[value];
  const std::string numbers = b.low == b.high ? absl::StrFormat("of %.6g", b.low)
                                              : absl::StrFormat("in %.6g..%.6g", b.low, b.high);
  const char* what = view.Constant(value) != nullptr ? "constant" : "value";
  return absl::StrCat(what, " '", view.graph.values[value].name, "' ", numbers);
}

std::string BeyondText(const GraphView& view, ValueId value) {
  return absl::StrCat(Named(view, value), " exceeds ", fp16::kLargest,
                      ", the largest number of fp16");
}

std::optional<Verdict> RefusalOfConstant(const GraphView& view, const Node& node, size_t input) {
  if (FormOf(view, node, input) != ConstantForm::kLost) return std::nullopt;
  const ValueId value = node.inputs[input];
  if (ExceedsHalf(view.Floats().MagnitudeOf(value))) return Refuse(BeyondText(view, value));
  return Refuse(absl::StrCat(Named(view, value), " is too small: fp16 keeps few of its digits"));
}

// The value is known to be beyond fp16's range. Integers at ports are judged elsewhere
// (kernels/integers.h).
bool IsBeyond(const GraphView& view, ValueId value) {
  return IsFloating(view.graph.values[value].type) && view.Floats().IsKnown(value) &&
         ExceedsHalf(view.Floats().MagnitudeOf(value));
}

bool IsInside(const GraphView& view, const Match& match, ValueId value) {
  const NodeId producer = view.graph.values[value].producer;
  return std::find(match.nodes.begin(), match.nodes.end(), producer) != match.nodes.end();
}

std::optional<Verdict> RefusalOfNode(const GraphView& view, const Match& match, const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i];
    if (value == kNone) continue;
    if (auto refusal = RefusalOfConstant(view, node, i)) return refusal;
    const bool is_read = view.Constant(value) == nullptr && !IsInside(view, match, value);
    if (is_read && IsBeyond(view, value) && !IsFlat(view.Floats(), node)) {
      return Refuse(BeyondText(view, value));
    }
  }
  for (ValueId made : node.outputs) {
    if (made == kNone || !IsBeyond(view, made) || view.Floats().flat[made]) continue;
    const bool is_inner = view.graph.values[made].producer != match.nodes.back();
    if (!is_inner) return Refuse(BeyondText(view, made));
  }
  return std::nullopt;
}

}  // namespace

bool RoundsEachConstant(const Node& node) {
  return !IsOneOf(node, {"BatchNormalization", "QuantizeLinear", "DequantizeLinear", "Resize"});
}

ConstantForm FormOf(const GraphView& view, const Node& node, size_t input) {
  const std::optional<double> magnitude =
      HasInput(node, input) ? MagnitudeOf(view, node.inputs[input]) : std::nullopt;
  if (!magnitude || *magnitude == 0 || !RoundsEachConstant(node)) return ConstantForm::kHeld;
  if (ExceedsHalf(*magnitude)) return FormOfLarge(view, node, input, *magnitude);
  if (*magnitude < fp16::kSmallestNormal) return FormOfSmall(view, node, input, *magnitude);
  return ConstantForm::kHeld;
}

double RescalingOf(const GraphView& view, const Node& node, size_t input) {
  if (FormOf(view, node, input) != ConstantForm::kFactored) return 1;
  return 1 / FactorsOf(*MagnitudeOf(view, node.inputs[input]))->first;
}

std::optional<Verdict> JudgeRange(const GraphView& view, const Match& match) {
  for (NodeId id : match.nodes) {
    if (auto refusal = RefusalOfNode(view, match, view.graph.nodes[id])) return refusal;
  }
  return std::nullopt;
}

std::optional<VanishingConstant> VanishingOf(const GraphView& view, const Node& node) {
  const Attribute* epsilon = node.FindAttribute("epsilon");
  if (epsilon != nullptr && RoundsEachConstant(node)) {
    const float* number = std::get_if<float>(&epsilon->value);
    if (number != nullptr && *number > 0 && *number <= kVanishes) return {{"epsilon", *number}};
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (FormOf(view, node, i) != ConstantForm::kVanished) continue;
    const ValueId value = node.inputs[i];
    return {{absl::StrCat("constant '", view.graph.values[value].name, "'"), *view.Scalar(value)}};
  }
  return std::nullopt;
}

}  // namespace anemone
