// Lifts of small semantic changes: broadcasting, defaults, spellings.
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/opset/opset_lifts.h"
#include "onnx/onnx_pb.h"

namespace anemone {
namespace {

// `id` with `behind` dimensions of size 1 appended.
ValueId WithTrailingOnes(LiftContext& c, ValueId id, int64_t rank, int64_t behind) {
  if (behind <= 0) return id;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < behind; ++i) axes.push_back(rank + i);
  return c.Emit("Unsqueeze", {id, c.Ints(axes)});
}

bool IsOneElement(const Value& value) {
  if (!value.is_static()) return false;
  for (const Dim& dim : *value.shape) {
    if (dim.size != 1) return false;
  }
  return true;
}

void Rename(Node& node, absl::string_view attribute, absl::string_view from, absl::string_view to) {
  if (StringOr(node, attribute, "") == from) SetAttribute(node, attribute, std::string(to));
}

}  // namespace

// B's dimensions were aligned with A's from `axis` on; without `axis`, at the end, as today.
absl::Status LiftBroadcast(LiftContext& c) {
  Node node = c.node();
  const bool along_axis = IntOr(node, "broadcast", 0) != 0 && node.FindAttribute("axis") != nullptr;
  int64_t axis = IntOr(node, "axis", 0);
  for (const char* gone : {"consumed_inputs", "broadcast", "axis"}) RemoveAttribute(node, gone);
  if (!along_axis || IsOneElement(c.value(c.input(1)))) return c.EmitLifted(std::move(node));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t rank_a, c.RankOf(0));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t rank_b, c.RankOf(1));
  if (axis < 0) axis += rank_a;
  if (axis < 0 || axis + rank_b > rank_a) {
    return c.Refuse(absl::StrCat("attribute 'axis' is ", axis, ": an input of rank ", rank_b,
                                 " does not fit there in one of rank ", rank_a));
  }
  node.inputs[1] = WithTrailingOnes(c, node.inputs[1], rank_b, rank_a - axis - rank_b);
  return c.EmitLifted(std::move(node));
}

absl::Status LiftGemm(LiftContext& c) {
  Node node = c.node();
  RemoveAttribute(node, "broadcast");
  return c.EmitLifted(std::move(node));
}

// The slope had one element, or one per channel (axis 1); now it is broadcast from the last axis.
absl::Status LiftPRelu(LiftContext& c) {
  Node node = c.node();
  RemoveAttribute(node, "consumed_inputs");
  if (IsOneElement(c.value(c.input(1)))) return c.EmitLifted(std::move(node));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t rank, c.RankOf(0));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t slope_rank, c.RankOf(1));
  if (slope_rank == 1) node.inputs[1] = WithTrailingOnes(c, node.inputs[1], 1, rank - 2);
  return c.EmitLifted(std::move(node));
}

absl::Status LiftCast(LiftContext& c) {
  Node node = c.node();
  const std::string name = absl::AsciiStrToUpper(StringOr(node, "to", ""));
  onnx::TensorProto::DataType type;
  if (!onnx::TensorProto::DataType_Parse(name, &type)) {
    return c.Refuse(absl::StrCat("attribute 'to' is '", name, "', which is not a type of ONNX"));
  }
  SetAttribute(node, "to", static_cast<int64_t>(type));
  return c.EmitLifted(std::move(node));
}

absl::Status LiftConcat(LiftContext& c) {
  Node node = c.node();
  SetAttribute(node, "axis", IntOr(node, "axis", 1));
  return c.EmitLifted(std::move(node));
}

absl::Status LiftSelu(LiftContext& c) {
  Node node = c.node();
  RemoveAttribute(node, "consumed_inputs");
  SetAttribute(node, "alpha", FloatOr(node, "alpha", 1.6732f));
  SetAttribute(node, "gamma", FloatOr(node, "gamma", 1.0507f));
  return c.EmitLifted(std::move(node));
}

absl::Status LiftLpPool(LiftContext& c) {
  Node node = c.node();
  const float p = FloatOr(node, "p", 2);
  if (p != std::floor(p) || std::fabs(p) > 1e6f) {
    return c.Refuse(absl::StrCat("attribute 'p' is ", p, "; later opsets allow only integers"));
  }
  SetAttribute(node, "p", static_cast<int64_t>(p));
  return c.EmitLifted(std::move(node));
}

absl::Status LiftRecurrent(LiftContext& c) {
  Node node = c.node();
  RemoveAttribute(node, "output_sequence");
  Rename(node, "direction", "foward", "forward");
  return c.EmitLifted(std::move(node));
}

absl::Status LiftScatter(LiftContext& c) {
  Node node = c.node();
  node.op_type = "ScatterElements";
  return c.EmitLifted(std::move(node));
}

absl::Status LiftGridSample(LiftContext& c) {
  Node node = c.node();
  Rename(node, "mode", "bilinear", "linear");
  Rename(node, "mode", "bicubic", "cubic");
  return c.EmitLifted(std::move(node));
}

absl::Status LiftRoiAlign(LiftContext& c) {
  Node node = c.node();
  SetAttribute(node, "coordinate_transformation_mode", std::string("output_half_pixel"));
  return c.EmitLifted(std::move(node));
}

// Opset 28 allows fmod 0 for floating types: the remainder then has the divisor's sign. It is
// computed from the remainder with the dividend's sign, which the working opset has, by adding the
// divisor if the signs differ.
absl::Status LiftMod(LiftContext& c) {
  Node node = c.node();
  if (IntOr(node, "fmod", 0) != 0 || !IsFloating(c.value(c.input(0)).type)) {
    return c.EmitLifted(std::move(node));
  }
  const ValueId b = c.input(1);
  const ValueId zero = c.Scalar(c.value(b).type, 0);
  const ValueId rest = c.Emit("Mod", {c.input(0), b}, {{"fmod", int64_t{1}}});
  const ValueId differ = c.Emit("Xor", {c.Emit("Less", {rest, zero}), c.Emit("Less", {b, zero})});
  const ValueId nonzero = c.Emit("Not", {c.Emit("Equal", {rest, zero})});
  const ValueId moves = c.Emit("And", {differ, nonzero});
  return c.EmitLast("Where", {moves, c.Emit("Add", {rest, b}), rest});
}

}  // namespace anemone
