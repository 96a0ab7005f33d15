// The lift of BitShift, which supports signed integers and shifts of any size from opset 28.
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {
namespace {

ValueId CastTo(LiftContext& c, ValueId x, DataType type) {
  return c.Emit("Cast", {x}, {{"to", static_cast<int64_t>(type)}});
}

ValueId Int64(LiftContext& c, int64_t value) { return c.Constant(Tensor::Int64s({}, {value})); }

}  // namespace

// Shifts as uint64, for which ONNX Runtime has a kernel: casts between integers extend the sign and
// discard high bits. A shift by a negative number, or by at least the number of bits, gives 0, or
// ~0 if the operand was inverted.
absl::Status LiftBitShift(LiftContext& c) {
  const DataType type = c.value(c.input(0)).type;
  if (type == DataType::kUndefined) return c.Refuse("the type of its input is not known");
  const bool is_right = StringOr(c.node(), "direction", "") == "RIGHT";
  const bool is_signed = type == DataType::kInt8 || type == DataType::kInt16 ||
                         type == DataType::kInt32 || type == DataType::kInt64;
  // A right shift of a negative x shifts in ones: it is ~(~x >> n), and ~x is -1 - x.
  ValueId x = c.input(0);
  ValueId is_negative = kNone;
  const auto inverted = [&](ValueId value) {
    return c.Emit("Where", {is_negative, c.Emit("Sub", {Int64(c, -1), value}), value});
  };
  if (is_right && is_signed) {
    x = CastTo(c, x, DataType::kInt64);
    is_negative = c.Emit("Less", {x, Int64(c, 0)});
    x = inverted(x);
  }
  const ValueId by = CastTo(c, c.input(1), DataType::kInt64);  // 2^63 and more become negative
  const ValueId is_within = c.Emit(
      "And", {c.Emit("Less", {Int64(c, -1), by}), c.Emit("Less", {by, Int64(c, BitsOf(type))})});
  const ValueId bits = CastTo(c, c.Emit("Where", {is_within, by, Int64(c, 0)}), DataType::kUInt64);
  const ValueId shifted = c.Emit("BitShift", {CastTo(c, x, DataType::kUInt64), bits},
                                 {{"direction", std::string(is_right ? "RIGHT" : "LEFT")}});
  ValueId result = c.Emit("Mul", {shifted, CastTo(c, is_within, DataType::kUInt64)});
  if (is_negative != kNone) result = inverted(CastTo(c, result, DataType::kInt64));
  return c.EmitLast("Cast", {result}, {{"to", static_cast<int64_t>(type)}});
}

}  // namespace anemone
