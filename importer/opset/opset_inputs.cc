// Lifts of attributes that became inputs.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {
namespace {

// Removes and returns an attribute that is a list of integers.
std::optional<std::vector<int64_t>> TakeInts(Node& node, absl::string_view name) {
  std::optional<std::vector<int64_t>> ints = IntsOf(node, name);
  RemoveAttribute(node, name);
  return ints;
}

}  // namespace

absl::Status LiftClip(LiftContext& c) {
  Node node = c.node();
  RemoveAttribute(node, "consumed_inputs");
  const DataType type = c.value(c.input(0)).type;
  if (!IsFloating(type)) {
    return c.Refuse(
        "the type of its input is not known, so its bounds cannot be converted to inputs");
  }
  // A missing bound was the largest float, which clips only infinities.
  for (const char* name : {"min", "max"}) {
    const bool given = node.FindAttribute(name) != nullptr;
    node.inputs.push_back(given ? c.Scalar(type, FloatOr(node, name, 0)) : kNone);
    RemoveAttribute(node, name);
  }
  while (node.inputs.back() == kNone) node.inputs.pop_back();
  return c.EmitLifted(std::move(node));
}

absl::Status LiftDft(LiftContext& c) {
  Node node = c.node();
  const int64_t axis = IntOr(node, "axis", 1);
  RemoveAttribute(node, "axis");
  node.inputs.resize(2, kNone);
  node.inputs.push_back(c.Constant(Tensor::Int64s({}, {axis})));
  return c.EmitLifted(std::move(node));
}

// Before opset 7 the attribute is_test selected inference (default: training). Since then inference
// is the default, and an input can select training. Before opset 10 the mask had the input's type.
absl::Status LiftDropout(LiftContext& c) {
  Node node = c.node();
  const bool training = node.version < 7 && IntOr(node, "is_test", 0) == 0;
  if (training) {
    node.inputs.push_back(c.Scalar(DataType::kFloat, FloatOr(node, "ratio", 0.5f)));
    Tensor yes = Tensor::Zeros(DataType::kBool, {});
    yes.mutable_data<bool>()[0] = true;
    node.inputs.push_back(c.Constant(std::move(yes)));
  }
  for (const char* gone : {"consumed_inputs", "is_test", "ratio"}) RemoveAttribute(node, gone);
  const ValueId mask = OutputOr(node, 1);
  if (mask == kNone || node.version >= 10) return c.EmitLifted(std::move(node));
  node.outputs[1] = c.NewValue();
  const DataType type = c.value(c.input(0)).type;
  const ValueId new_mask = node.outputs[1];
  ANEMONE_RETURN_IF_ERROR(c.EmitLifted(std::move(node)));
  Node cast;
  cast.op_type = "Cast";
  cast.version = kWorkingOpset;
  cast.origins = c.node().origins;
  cast.inputs = {new_mask};
  cast.outputs = {mask};
  SetAttribute(cast, "to", static_cast<int64_t>(type));
  c.EmitNode(std::move(cast));
  return absl::OkStatus();
}

absl::Status LiftPad(LiftContext& c) {
  Node node = c.node();
  const DataType type = c.value(c.input(0)).type;
  if (!IsFloating(type)) {
    return c.Refuse(
        "the type of its input is not known, so its value cannot be converted to an input");
  }
  const auto pads = TakeInts(node, node.version < 2 ? "paddings" : "pads");
  node.inputs.push_back(c.Ints(pads.value_or(std::vector<int64_t>())));
  if (const float value = FloatOr(node, "value", 0); value != 0) {
    node.inputs.push_back(c.Scalar(type, value));
  }
  RemoveAttribute(node, "value");
  return c.EmitLifted(std::move(node));
}

absl::Status LiftReduce(LiftContext& c) {
  Node node = c.node();
  const auto axes = TakeInts(node, "axes");
  if (axes.has_value() && !axes->empty()) node.inputs.push_back(c.Ints(*axes));
  return c.EmitLifted(std::move(node));
}

absl::Status LiftReshape(LiftContext& c) {
  Node node = c.node();
  RemoveAttribute(node, "consumed_inputs");
  const auto shape = TakeInts(node, "shape");
  if (!shape.has_value()) return c.Refuse("attribute 'shape' is missing");
  node.inputs.push_back(c.Ints(*shape));
  return c.EmitLifted(std::move(node));
}

absl::Status LiftSlice(LiftContext& c) {
  Node node = c.node();
  const auto starts = TakeInts(node, "starts");
  const auto ends = TakeInts(node, "ends");
  const auto axes = TakeInts(node, "axes");
  const size_t count = starts->size();
  if (ends->size() != count || (axes.has_value() && axes->size() != count)) {
    return c.Refuse(
        absl::StrCat("attributes 'starts', 'ends' and 'axes' must have the same length, ", "found ",
                     count, ", ", ends->size(), " and ", axes.has_value() ? axes->size() : count));
  }
  node.inputs.push_back(c.Ints(*starts));
  node.inputs.push_back(c.Ints(*ends));
  if (axes.has_value()) node.inputs.push_back(c.Ints(*axes));
  return c.EmitLifted(std::move(node));
}

// Without sizes the parts are equal; since opset 18 the node must give their number.
absl::Status LiftSplit(LiftContext& c) {
  Node node = c.node();
  const auto split = TakeInts(node, "split");
  if (split.has_value() && InputOr(node, 1) == kNone) {
    if (split->size() != node.outputs.size()) {
      return c.Refuse(absl::StrCat("attribute 'split' has ", split->size(), " sizes for ",
                                   node.outputs.size(), " outputs"));
    }
    node.inputs.resize(1);
    node.inputs.push_back(c.Ints(*split));
  }
  if (InputOr(node, 1) == kNone) {
    node.inputs.resize(1);
    SetAttribute(node, "num_outputs", static_cast<int64_t>(node.outputs.size()));
  }
  return c.EmitLifted(std::move(node));
}

absl::Status LiftSqueeze(LiftContext& c) {
  Node node = c.node();
  const auto axes = TakeInts(node, "axes");
  if (axes.has_value()) node.inputs.push_back(c.Ints(*axes));
  return c.EmitLifted(std::move(node));
}

// Tile(x, tiles, axis) -> Tile(x, repeats), where repeats is `tiles` at `axis` and 1 elsewhere.
absl::Status LiftTile(LiftContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(const int64_t rank, c.RankOf(0));
  const auto as_int64 = [&](size_t index) {
    const ValueId cast =
        c.Emit("Cast", {c.input(index)}, {{"to", static_cast<int64_t>(DataType::kInt64)}});
    return c.Emit("Reshape", {cast, c.Ints({1})});
  };
  const ValueId off_on = c.Emit("Concat", {c.Ints({1}), as_int64(1)}, {{"axis", int64_t{0}}});
  const ValueId depth = c.Constant(Tensor::Int64s({}, {rank}));
  const ValueId row = c.Emit("OneHot", {as_int64(2), depth, off_on});
  const ValueId repeats = c.Emit("Reshape", {row, c.Ints({rank})});
  return c.EmitLast("Tile", {c.input(0), repeats});
}

absl::Status LiftTopK(LiftContext& c) {
  Node node = c.node();
  node.inputs.push_back(c.Ints({IntOr(node, "k", 0)}));
  RemoveAttribute(node, "k");
  return c.EmitLifted(std::move(node));
}

}  // namespace anemone
