// Lifts of softmax and the normalizations.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {
namespace {

// The only axis from `axis` on that may be longer than 1; nullopt if there are several.
std::optional<int64_t> OnlyAxis(const Shape& shape, int64_t axis) {
  std::optional<int64_t> only;
  for (int64_t i = axis; i < static_cast<int64_t>(shape.size()); ++i) {
    if (shape[i].size == 1) continue;
    if (only.has_value()) return std::nullopt;
    only = i;
  }
  return only.has_value() ? only : static_cast<int64_t>(shape.size()) - 1;
}

}  // namespace

// Softmax, LogSoftmax and Hardmax treated all axes from `axis` on as one flattened axis.
absl::Status LiftSoftmax(LiftContext& c) {
  Node node = c.node();
  const std::optional<Shape>& shape_of_x = c.value(c.input(0)).shape;
  int64_t axis = IntOr(node, "axis", 1);
  if (shape_of_x.has_value()) {
    const auto rank = static_cast<int64_t>(shape_of_x->size());
    if (axis < -rank || axis > rank) {
      return c.Refuse(absl::StrCat("attribute 'axis' is ", axis, " for an input of rank ", rank));
    }
    if (axis < 0) axis += rank;
    const std::optional<int64_t> only = axis < rank ? OnlyAxis(*shape_of_x, axis) : std::nullopt;
    if (only.has_value()) {
      SetAttribute(node, "axis", *only);
      return c.EmitLifted(std::move(node));
    }
  }
  const ValueId shape = c.Emit("Shape", {c.input(0)});
  const ValueId flat = c.Emit("Flatten", {c.input(0)}, {{"axis", axis}});
  const ValueId result = c.Emit(node.op_type, {flat}, {{"axis", int64_t{1}}});
  return c.EmitLast("Reshape", {result, shape});
}

// Before opset 14 the node was in training mode if it had training outputs; before opset 7 is_test
// said so too. Before opset 9 `spatial` 0 meant statistics per activation, not per channel.
absl::Status LiftBatchNormalization(LiftContext& c) {
  Node node = c.node();
  const bool spatial = IntOr(node, "spatial", 1) != 0;
  for (const char* gone : {"consumed_inputs", "is_test", "spatial"}) RemoveAttribute(node, gone);
  while (node.outputs.size() > 1 && node.outputs.back() == kNone) node.outputs.pop_back();
  if (node.outputs.size() > 3) {
    return c.Refuse(
        "it saves the statistics of a training step, which later opsets do not support; "
        "export the model for inference");
  }
  if (node.outputs.size() > 1) SetAttribute(node, "training_mode", int64_t{1});
  if (spatial) return c.EmitLifted(std::move(node));
  if (node.outputs.size() > 1) return c.Refuse("training with 'spatial' 0 is not supported");
  const DataType type = c.value(c.input(0)).type;
  if (!IsFloating(type)) return c.Refuse("the type of its input is not known");
  const ValueId epsilon = c.Scalar(type, FloatOr(node, "epsilon", 1e-5f));
  const ValueId deviation = c.Emit("Sqrt", {c.Emit("Add", {c.input(4), epsilon})});
  const ValueId centred = c.Emit("Sub", {c.input(0), c.input(3)});
  const ValueId normal = c.Emit("Div", {centred, deviation});
  return c.EmitLast("Add", {c.Emit("Mul", {normal, c.input(1)}), c.input(2)});
}

// Scale and bias have one element per group, which is repeated for each channel of the group.
absl::Status LiftGroupNormalization(LiftContext& c) {
  Node node = c.node();
  const int64_t groups = IntOr(node, "num_groups", 1);
  const std::optional<Shape> x = c.value(c.input(0)).shape;
  if (groups < 1) return c.Refuse(absl::StrCat("attribute 'num_groups' is ", groups));
  ValueId shape = kNone;
  if (x.has_value() && x->size() > 1 && (*x)[1].known()) {
    shape = c.Ints({1, (*x)[1].size / groups});
  } else {
    const ValueId channels =
        c.Emit("Shape", {c.input(0)}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    const ValueId per_group = c.Emit("Div", {channels, c.Ints({groups})});
    shape = c.Emit("Concat", {c.Ints({1}), per_group}, {{"axis", int64_t{0}}});
  }
  for (size_t i : {1, 2}) {
    const ValueId column = c.Emit("Reshape", {c.input(i), c.Ints({-1, 1})});
    node.inputs[i] = c.Emit("Reshape", {c.Emit("Expand", {column, shape}), c.Ints({-1})});
  }
  return c.EmitLifted(std::move(node));
}

}  // namespace anemone
