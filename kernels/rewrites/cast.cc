// Cast between types that are all fp16 inside the engine: it needs no unit. A cast to bool is a
// comparison with 0.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// Cast, CastLike and Identity, according to the types of input and output. A bool is already 0 or
// 1, and an integer that the engine holds is in the range of the new type.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  DataType from = c.graph().values[node.inputs[0]].type;
  DataType to = c.graph().values[node.outputs[0]].type;
  if (to == DataType::kBool && from != DataType::kBool) {
    x = Combined(c, ElementWiseType::kNotEqual, x, ScalarConstant(c, 0));
  }
  return c.Out(node.outputs[0], x);
}

absl::Status BuildCast(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::string to, c.Text("dtype", ""));
  c.Ignore("then");  // names the reader of the result; a port of the new type is checked separately
  Operand x = c.In(0);
  if (to == "int32") return c.Refuse(rule::kCastInteger);
  if (to == "bool") {
    x = Mapped(c, ElementWiseType::kNotEqualZero, x);
  } else if (to != "fp16" && to != "fp32") {
    return c.NotLowered(absl::StrCat("cast to '", to, "'"));
  }
  return c.Out(x, c.ShapeOf(0));
}

absl::Status BuildIdentity(MilContext& c) {
  Operand x = c.In(0);
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"cast", BuildCast}, {"identity", BuildIdentity}};

constexpr Lowering kLowerings[] = {
    {.op = "Cast", .lower = Lower},
    {.op = "CastLike", .lower = Lower},
    {.op = "Identity", .lower = Lower},
};

}  // namespace

KernelRows CastRows() { return {{}, kLowerings, kOperations}; }

}  // namespace anemone
