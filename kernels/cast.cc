// Cast between types that are one inside the engine: nothing happens there, all of them are fp16.
// To bool it is a comparison with 0.
#include "anemone/status_macros.h"
#include "kernels/elementwise.h"
#include "kernels/lowering.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

bool IsEngineFloat(DataType type) {
  return type == DataType::kFloat || type == DataType::kFloat16 || type == DataType::kBFloat16;
}

// Cast, CastLike, Identity: the types of input and output say it all. A bool is 0 or 1 already.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  DataType from = c.graph().values[node.inputs[0]].type;
  DataType to = c.graph().values[node.outputs[0]].type;
  if (!IsEngineFloat(to) && to != DataType::kBool) return c.Refuse(rule::kPortFormat);
  if (to == DataType::kBool && from != DataType::kBool) {
    ANEMONE_ASSIGN_OR_RETURN(x, Combined(c, ElementWiseType::kNotEqual, x, ScalarConstant(c, 0)));
  }
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Cast", .lower = Lower},
    {.op = "CastLike", .lower = Lower},
    {.op = "Identity", .lower = Lower},
};

}  // namespace

KernelRows CastRows() { return {{}, kLowerings}; }

}  // namespace anemone
