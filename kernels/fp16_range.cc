#include "kernels/fp16_range.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/fp16.h"
#include "importer/operators/beyond_ranges.h"
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
         view.Beyond().flat_for_constants()[node.outputs[0]];
}

// A bound of Max, Min or Clip that no number of fp16 reaches is never the result.
bool IsOnlyBound(const Node& node, size_t input, const Bounds& b) {
  if (node.op_type == "Where") return false;
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
    case LargeNumbers::kPickLargest:
    case LargeNumbers::kPickSmallest:
      return HoldsMask(view, node) ? ConstantForm::kClamped : ConstantForm::kLost;
    case LargeNumbers::kCompare:
    case LargeNumbers::kFlat:
      return ConstantForm::kClamped;
    case LargeNumbers::kChange:
    case LargeNumbers::kQuantize:
      break;
  }
  const bool moves = OperatorOf(node).moves != Moves::kNo;
  return moves && HoldsMask(view, node) ? ConstantForm::kClamped : ConstantForm::kLost;
}

ConstantForm FormOfSmall(const Node& node, size_t input, double magnitude) {
  if (IsProduct(node)) {
    return FactorsOf(magnitude) ? ConstantForm::kFactored : ConstantForm::kLost;
  }
  if (IsWeight(node, input)) {
    return magnitude < kSmallestWeight ? ConstantForm::kLost : ConstantForm::kHeld;
  }
  const bool counts =
      IsOneOf(node, {"Add", "Sub", "Sum", "Max", "Min", "Clip", "Pow", "Where", "Pad", "PRelu"});
  return magnitude <= kVanishes && counts ? ConstantForm::kVanished : ConstantForm::kHeld;
}

Verdict Refuse(std::string why) {
  return OwnRefusal(Layer::kCoverage, kFp16Range, std::move(why),
                    "no action needed: the CPU computes the node in float32; --policy "
                    "insist:fp16-range puts it on the engine all the same");
}

// "value 'x' in -8.3e+06..8.3e+06", "constant 'c' of 1e+09". Of a value of unknown bounds, the
// numbers that it is known to have: "value 'd' with numbers of -1e+09".
std::string Named(const GraphView& view, ValueId value) {
  const bool is_constant = view.Constant(value) != nullptr;
  const bool is_partial = !is_constant && !view.Floats().IsKnown(value);
  const Bounds& b = is_constant ? view.Floats().bounds[value] : view.Beyond().NumbersOf(value);
  const auto text = [](double x) {
    return std::fabs(x) < kEndless ? absl::StrFormat("%.6g", x)
                                   : std::string(x < 0 ? "-inf" : "inf");
  };
  std::string numbers = absl::StrCat("in ", text(b.low), "..", text(b.high));
  if (b.low == b.high) numbers = absl::StrCat("of ", text(b.low));
  if (is_partial && b.low < 0 && b.high == 0) numbers = absl::StrCat("of ", text(b.low));
  if (is_partial && b.low == 0) numbers = absl::StrCat("of ", text(b.high));
  return absl::StrCat(is_constant ? "constant" : "value", " '", view.graph.values[value].name, "' ",
                      is_partial ? "with numbers " : "", numbers);
}

std::string Exceeds(const std::string& what) {
  return absl::StrCat(what, " exceeds ", fp16::kLargest, ", the largest number of fp16");
}

std::string BeyondText(const GraphView& view, ValueId value) { return Exceeds(Named(view, value)); }

std::string TooSmall(const std::string& what) {
  return absl::StrCat(what, " is too small: fp16 keeps few of its digits");
}

// The attribute by which the operator multiplies the input, or 1.
double AttributeFactorOf(const Node& node, size_t input) {
  const NumberAttributes::Names& factors = OperatorOf(node).numbers.factors;
  if (input == 0 || input > factors.size() || factors[input - 1].empty()) return 1;
  const Attribute* attribute = node.FindAttribute(factors[input - 1]);
  const float* number = attribute == nullptr ? nullptr : std::get_if<float>(&attribute->value);
  return number == nullptr ? 1 : std::fabs(*number);
}

std::optional<Verdict> RefusalOfConstant(const GraphView& view, const Node& node, size_t input) {
  if (FormOf(view, node, input) != ConstantForm::kLost) return std::nullopt;
  const ValueId value = node.inputs[input];
  const double factor = AttributeFactorOf(node, input);
  std::string what = Named(view, value);
  if (factor != 1) absl::StrAppend(&what, ", times ", factor, ",");
  return Refuse(ExceedsHalf(view.Floats().MagnitudeOf(value) * factor) ? Exceeds(what)
                                                                       : TooSmall(what));
}

// An attribute that the engine holds as an fp16 number.
struct NumberAttribute {
  absl::string_view name;
  double number;
  bool is_factor;
};

std::vector<NumberAttribute> NumberAttributesOf(const Node& node) {
  std::vector<NumberAttribute> found;
  const NumberAttributes& names = OperatorOf(node).numbers;
  for (bool is_factor : {false, true}) {
    for (absl::string_view name : is_factor ? names.factors : names.held) {
      const Attribute* attribute = name.empty() ? nullptr : node.FindAttribute(name);
      const float* number = attribute == nullptr ? nullptr : std::get_if<float>(&attribute->value);
      if (number != nullptr && *number != 0) found.push_back({name, *number, is_factor});
    }
  }
  return found;
}

std::optional<Verdict> RefusalOfAttributes(const Node& node) {
  for (const NumberAttribute& a : NumberAttributesOf(node)) {
    const double magnitude = std::fabs(a.number);
    const std::string what = absl::StrFormat("attribute '%s' of %.6g", a.name, a.number);
    if (a.is_factor && FactorsOf(magnitude)) continue;
    if (ExceedsHalf(magnitude)) return Refuse(Exceeds(what));
    if (a.is_factor) return Refuse(TooSmall(what));
  }
  return std::nullopt;
}

// The value is known to have numbers beyond fp16's range. Integers at ports are judged elsewhere
// (kernels/integers.h).
bool IsBeyond(const GraphView& view, ValueId value) {
  return IsFloating(view.graph.values[value].type) && view.Beyond().IsBeyond(value);
}

// The numbers beyond fp16's range that the value is known to have are infinities, which fp16 has
// too.
bool IsEndless(const GraphView& view, ValueId value) {
  const Bounds& b = view.Beyond().NumbersOf(value);
  return !view.Floats().IsKnown(value) && (b.low == 0 || b.low <= -kEndless) &&
         (b.high == 0 || b.high >= kEndless);
}

bool IsInside(const GraphView& view, const Match& match, ValueId value) {
  const NodeId producer = view.graph.values[value].producer;
  return std::find(match.nodes.begin(), match.nodes.end(), producer) != match.nodes.end();
}

std::optional<Verdict> RefusalOfNode(const GraphView& view, const Match& match, const Node& node) {
  if (auto refusal = RefusalOfAttributes(node)) return refusal;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i];
    if (value == kNone) continue;
    if (auto refusal = RefusalOfConstant(view, node, i)) return refusal;
    const bool is_read = view.Constant(value) == nullptr && !IsInside(view, match, value);
    if (is_read && IsBeyond(view, value) && !IsEndless(view, value) &&
        !view.Beyond().IsFlat(node, value)) {
      return Refuse(BeyondText(view, value));
    }
  }
  for (ValueId made : node.outputs) {
    if (made == kNone || !IsBeyond(view, made) || view.Beyond().IsFlat(made)) continue;
    // A constant infinity of the node itself would be clamped.
    if (node.op_type != "Where" && IsEndless(view, made)) continue;
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
  std::optional<double> magnitude =
      HasInput(node, input) ? MagnitudeOf(view, node.inputs[input]) : std::nullopt;
  if (!magnitude || *magnitude == 0 || !RoundsEachConstant(node)) return ConstantForm::kHeld;
  *magnitude *= AttributeFactorOf(node, input);
  if (*magnitude == 0) return ConstantForm::kHeld;
  if (ExceedsHalf(*magnitude)) return FormOfLarge(view, node, input, *magnitude);
  if (*magnitude < fp16::kSmallestNormal) return FormOfSmall(node, input, *magnitude);
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
  for (const NumberAttribute& a : NumberAttributesOf(node)) {
    if (!a.is_factor && std::fabs(a.number) <= kVanishes) return {{std::string(a.name), a.number}};
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (FormOf(view, node, i) != ConstantForm::kVanished) continue;
    const ValueId value = node.inputs[i];
    return {{absl::StrCat("constant '", view.graph.values[value].name, "'"),
             view.Scalar(value).value_or(view.Floats().MagnitudeOf(value))}};
  }
  return std::nullopt;
}

}  // namespace anemone
