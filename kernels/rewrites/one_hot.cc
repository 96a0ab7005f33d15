// OneHot, for which no target has a unit (op_matrix.json one_hot). Each index is compared with 0,
// 1, 2, ... along the new axis, and the result is scaled to the two values, within one ulp. A float
// index is rounded to fp16 at the port before its fraction is dropped.
#include <vector>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/integers.h"
#include "kernels/lowering.h"
#include "kernels/units/goc.h"
#include "kernels/units/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// ONNX drops the fraction of an index and counts a negative index from the end. (ONNX Runtime keeps
// the fraction, so that such an index matches no class.)
Operand WholeIndex(LowerContext& c, const Operand& x, int64_t classes) {
  Operand sign = Activated(c, NeuronType::kSign, x);
  Operand index = Absolute(c, x);
  index = Activated(c, NeuronType::kFloor, index);
  index = Combined(c, ElementWiseType::kMult, index, sign);
  Operand around = Combined(c, ElementWiseType::kLessThan, index, ScalarConstant(c, 0));
  around = ScaleAndShift(c, around, static_cast<double>(classes), 0);
  return Combined(c, ElementWiseType::kAdd, index, around);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t at, a.Int("axis", -1));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  // Input and output must have a float type that a port of the engine can hold.
  Operand x = c.In(node.inputs[0]);
  DataType type = c.graph().values[node.outputs[0]].type;
  if (!IsEngineConstant(type) || type == DataType::kDouble) return c.Refuse(rule::kPortFormat);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, static_cast<int64_t>(to.size())));
  const Tensor* values = c.view().Constant(node.inputs[2]);
  if (values == nullptr || !IsEngineConstant(values->type())) {
    return c.NotLowered("OneHot with values that are not a float constant");
  }
  const int64_t classes = to[axis];
  if (classes > fp16::kLargestExactInteger) {
    return c.NotLowered("OneHot with more than 2048 classes, which fp16 cannot count");
  }
  if (classes < 1) return c.Refuse(rule::kEmptyTensor);
  std::vector<float> off_and_on = RoundedFloats(*values);
  if (off_and_on.size() != 2) {
    return absl::InvalidArgumentError("values: want two; run the ONNX checker on the model");
  }

  x = WholeIndex(c, x, classes);
  std::vector<int64_t> with_one = from, line(to.size(), 1);
  with_one.insert(with_one.begin() + axis, 1);
  line[axis] = classes;
  x = ToOnnxOrder(c, x, static_cast<int>(from.size()));
  x = FromOnnxOrder(c, x, with_one);
  std::vector<float> counted(classes);
  for (int64_t i = 0; i < classes; ++i) counted[i] = static_cast<float>(i);
  Operand numbers = AlignedConstant(c, Tensor::Floats(line, counted), to);
  Operand y = Combined(c, ElementWiseType::kEqual, x, numbers);
  const double off = off_and_on[0], on = off_and_on[1];
  y = ScaleAndShift(c, y, on - off, off);
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {{.op = "OneHot", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows OneHotRows() { return {{}, kLowerings}; }

}  // namespace anemone
