// Lifts of Upsample and Resize.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {
namespace {

std::vector<Attribute> OldResize(const Node& node, absl::string_view nearest_mode) {
  const std::string mode = StringOr(node, "mode", "nearest");
  return {{"mode", mode == "bilinear" ? std::string("linear") : mode},
          {"coordinate_transformation_mode", std::string("asymmetric")},
          {"nearest_mode", std::string(nearest_mode)}};
}

// True if every scale is known to be at most 1 (`at_most`), or at least 1.
bool AllScales(const Tensor* scales, bool at_most) {
  if (scales == nullptr || scales->type() != DataType::kFloat || scales->elements() > 64) {
    return false;
  }
  for (int64_t i = 0; i < scales->elements(); ++i) {
    if (at_most ? scales->at<float>(i) > 1 : scales->at<float>(i) < 1) return false;
  }
  return true;
}

// Opset 11 required empty tensors for inputs that are not given; later opsets omit the inputs. One
// of scales and sizes had to be empty, and the region of interest is used in only one mode.
void LeaveOutEmpty(const LiftContext& c, Node& node) {
  node.inputs.resize(std::max<size_t>(node.inputs.size(), 2), kNone);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    const Value& value = c.value(node.inputs[i]);
    if (value.is_static() && value.dims() == std::vector<int64_t>{0}) node.inputs[i] = kNone;
  }
  if (InputOr(node, 3) != kNone) node.inputs[2] = kNone;
  if (StringOr(node, "coordinate_transformation_mode", "") != "tf_crop_and_resize") {
    node.inputs[1] = kNone;
  }
  while (node.inputs.back() == kNone) node.inputs.pop_back();
}

// Resize-10 mapped an output pixel to x / scale. Of the nearest pixels it used the preceding one on
// an axis that grows and the following one on an axis that shrinks (this is ONNX Runtime's choice;
// opset 10 does not specify it). If both may occur, it becomes two Resizes.
absl::Status LiftResize10(LiftContext& c) {
  const Node& node = c.node();
  const ValueId x = c.input(0);
  const ValueId scales = c.input(1);
  const Tensor* known = c.ConstantOf(1);
  if (StringOr(node, "mode", "nearest") != "nearest" || AllScales(known, /*at_most=*/false)) {
    return c.EmitLast("Resize", {x, kNone, scales}, OldResize(node, "floor"));
  }
  if (AllScales(known, /*at_most=*/true)) {
    return c.EmitLast("Resize", {x, kNone, scales}, OldResize(node, "ceil"));
  }
  const ValueId one = c.Scalar(DataType::kFloat, 1);
  const ValueId grown =
      c.Emit("Resize", {x, kNone, c.Emit("Max", {scales, one})}, OldResize(node, "floor"));
  return c.EmitLast("Resize", {grown, kNone, c.Emit("Min", {scales, one})},
                    OldResize(node, "ceil"));
}

}  // namespace

absl::Status LiftUpsample(LiftContext& c) {
  const Node& node = c.node();
  ValueId scales = c.input(1);
  if (scales == kNone) {
    std::vector<float> values;
    if (node.version < 7) {
      values = {1, 1, FloatOr(node, "height_scale", 1), FloatOr(node, "width_scale", 1)};
    } else {
      values = FloatsOf(node, "scales").value_or(values);
    }
    scales = c.Constant(Tensor::Floats({static_cast<int64_t>(values.size())}, values));
  }
  return c.EmitLast("Resize", {c.input(0), kNone, scales}, OldResize(node, "floor"));
}

absl::Status LiftResize(LiftContext& c) {
  if (c.node().version <= 10) return LiftResize10(c);
  Node node = c.node();
  // floor((i + 0.5) / scale) in today's modes: half_pixel subtracts a half, and the rounding mode
  // adds it again.
  if (StringOr(node, "coordinate_transformation_mode", "") == "tf_half_pixel_for_nn" &&
      StringOr(node, "mode", "nearest") == "nearest" &&
      StringOr(node, "nearest_mode", "round_prefer_floor") == "floor") {
    SetAttribute(node, "coordinate_transformation_mode", std::string("half_pixel"));
    SetAttribute(node, "nearest_mode", std::string("round_prefer_ceil"));
  }
  LeaveOutEmpty(c, node);
  return c.EmitLifted(std::move(node));
}

}  // namespace anemone
