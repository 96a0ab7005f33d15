// Lifts of operators that ONNX had as experiments, outside of any opset, and later dropped or
// defined anew. Old exporters wrote them, and ONNX Runtime still runs them.
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {
namespace {

absl::StatusOr<DataType> FloatingType(const LiftContext& c) {
  const DataType type = c.value(c.input(0)).type;
  if (IsFloating(type)) return type;
  return c.Refuse("the type of its input is not known, or not floating");
}

// The input times attribute `name`.
absl::StatusOr<ValueId> Scaled(LiftContext& c, ValueId x, absl::string_view name) {
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, FloatingType(c));
  return c.Emit("Mul", {x, c.Scalar(type, FloatOr(c.node(), name, 1))});
}

// alpha * op(beta * x)
absl::Status ScaledInAndOut(LiftContext& c, absl::string_view op_type) {
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, FloatingType(c));
  ANEMONE_ASSIGN_OR_RETURN(const ValueId inner, Scaled(c, c.input(0), "beta"));
  const ValueId alpha = c.Scalar(type, FloatOr(c.node(), "alpha", 1));
  return c.EmitLast("Mul", {c.Emit(op_type, {inner}), alpha});
}

}  // namespace

absl::Status LiftUnchanged(LiftContext& c) { return c.EmitLifted(c.node()); }

absl::Status LiftScaledTanh(LiftContext& c) { return ScaledInAndOut(c, "Tanh"); }

absl::Status LiftParametricSoftplus(LiftContext& c) { return ScaledInAndOut(c, "Softplus"); }

absl::Status LiftAffine(LiftContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, FloatingType(c));
  ANEMONE_ASSIGN_OR_RETURN(const ValueId scaled, Scaled(c, c.input(0), "alpha"));
  return c.EmitLast("Add", {scaled, c.Scalar(type, FloatOr(c.node(), "beta", 0))});
}

absl::Status LiftScale(LiftContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, FloatingType(c));
  return c.EmitLast("Mul", {c.input(0), c.Scalar(type, FloatOr(c.node(), "scale", 1))});
}

// x * scale + bias[channel]
absl::Status LiftImageScaler(LiftContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, FloatingType(c));
  ANEMONE_ASSIGN_OR_RETURN(const ValueId scaled, Scaled(c, c.input(0), "scale"));
  const std::vector<float> bias = FloatsOf(c.node(), "bias").value_or(std::vector<float>());
  const std::vector<double> values(bias.begin(), bias.end());
  const auto channels = static_cast<int64_t>(values.size());
  return c.EmitLast("Add", {scaled, c.Constant(FromDoubles(type, {channels, 1, 1}, values))});
}

// `border` is left, top, right, bottom; `scale`, if given, is height and width of what stays.
absl::Status LiftCrop(LiftContext& c) {
  const auto border = IntsOf(c.node(), "border");
  if (!border.has_value() || border->size() != 4) {
    return c.Refuse("attribute 'border': want 4 numbers");
  }
  const int64_t left = (*border)[0];
  const int64_t top = (*border)[1];
  // The end of an axis of which nothing is cut off, as Slice has it.
  const auto before_end = [](int64_t cut) { return cut == 0 ? int64_t{1} << 40 : -cut; };
  std::vector<int64_t> ends = {before_end((*border)[3]), before_end((*border)[2])};
  if (const auto scale = IntsOf(c.node(), "scale"); scale.has_value() && !scale->empty()) {
    if (scale->size() != 2) return c.Refuse("attribute 'scale': want 2 numbers");
    ends = {top + (*scale)[0], left + (*scale)[1]};
  }
  return c.EmitLast("Slice", {c.input(0), c.Ints({top, left}), c.Ints(ends), c.Ints({2, 3})});
}

absl::Status LiftDynamicSlice(LiftContext& c) {
  Node node = c.node();
  node.op_type = "Slice";
  return c.EmitLifted(std::move(node));
}

// Over all axes but the channels, or over those, too.
absl::Status LiftMeanVarianceNormalization(LiftContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(const int64_t rank, c.RankOf(0));
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (IntOr(c.node(), "across_channels", 0) == 0 && rank > 1) axes.erase(axes.begin() + 1);
  if (IntOr(c.node(), "normalize_variance", 1) != 0) {
    return c.EmitLast("MeanVarianceNormalization", {c.input(0)}, {{"axes", std::move(axes)}});
  }
  return c.EmitLast("Sub", {c.input(0), c.Emit("ReduceMean", {c.input(0), c.Ints(axes)})});
}

}  // namespace anemone
