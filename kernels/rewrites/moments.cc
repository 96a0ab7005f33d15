// LayerNormalization whose mean or deviation is used too, and MeanVarianceNormalization. The
// normalization units do not return these moments, so they are computed by separate units. The
// differences from the mean are first divided by the largest magnitude, if that is above 1, so that
// the squares do not overflow.
#include <algorithm>
#include <vector>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/units/goc.h"
#include "kernels/units/reduction.h"

namespace anemone {
namespace {

struct Moments {
  Operand mean, inverse_deviation;
  Operand normal;  // (x - mean) * inverse_deviation
};

// Relative error of the deviation at most 3e-3. An epsilon below the smallest positive fp16 number
// is replaced by that number; constant inputs still give zeros.
absl::StatusOr<Moments> MomentsOf(LowerContext& c, const Operand& x, const std::vector<Axis>& axes,
                                  double epsilon) {
  Moments m;
  m.mean = Reduced(c, x, ReduceType::kAvg, axes);
  Operand d = Combined(c, ElementWiseType::kSub, x, m.mean);
  Operand scale = Absolute(c, d);
  scale = Reduced(c, scale, ReduceType::kMax, axes);
  scale = Combined(c, ElementWiseType::kMax, scale, ScalarConstant(c, 1));
  Operand inverse = Activated(c, NeuronType::kInv, scale);
  d = Combined(c, ElementWiseType::kMult, d, inverse);
  Operand v = Combined(c, ElementWiseType::kMult, d, d);
  v = Reduced(c, v, ReduceType::kAvg, axes);
  Operand e = Combined(c, ElementWiseType::kMult, inverse, inverse);
  e = ScaleAndShift(c, e, std::max<double>(epsilon, fp16::kSmallest), 0);
  v = Combined(c, ElementWiseType::kAdd, v, e);
  v = Activated(c, NeuronType::kRsqrt, v);
  m.inverse_deviation = Combined(c, ElementWiseType::kMult, v, inverse);
  m.normal = Combined(c, ElementWiseType::kMult, d, v);
  return m;
}

absl::Status LowerLayerNormalization(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t first, a.Int("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(float epsilon, a.Float("epsilon", 1e-5f));
  a.Ignore("stash_type");  // inputs are fp16 and sums are wide in any case
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  const int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(first, rank));
  Operand x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(Moments m, MomentsOf(c, x, AxesFrom(rank, axis), epsilon));
  Operand scale = AlignedOperand(c, node.inputs[1], shape);
  Operand y = Combined(c, ElementWiseType::kMult, m.normal, scale);
  if (HasInput(node, 2)) {
    Operand bias = AlignedOperand(c, node.inputs[2], shape);
    y = Combined(c, ElementWiseType::kAdd, y, bias);
  }
  const Operand* outputs[] = {&y, &m.mean, &m.inverse_deviation};
  for (size_t i = 0; i < std::size(outputs); ++i) {
    if (i > 0 && !IsRead(c.view(), node, i)) continue;
    ANEMONE_RETURN_IF_ERROR(c.Out(node.outputs[i], *outputs[i]));
  }
  return absl::OkStatus();
}

// ONNX adds 1e-9 to the deviation. Here it is added to the variance.
absl::Status LowerMeanVariance(const Match& match, LowerContext& c) {
  constexpr double kEpsilon = 1e-9;
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> given, a.Ints("axes", {0, 2, 3}));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  const int rank = static_cast<int>(shape.size());
  std::vector<Axis> axes;
  for (int64_t at : given) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, rank));
    axes.push_back(ToEngineAxis(rank, axis));
  }
  Operand x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(Moments m, MomentsOf(c, x, axes, kEpsilon));
  return c.Out(node.outputs[0], m.normal);
}

constexpr Lowering kLowerings[] = {
    {.op = "LayerNormalization", .rewritten = true, .lower = LowerLayerNormalization},
    {.op = "MeanVarianceNormalization", .rewritten = true, .lower = LowerMeanVariance},
};

}  // namespace

KernelRows MomentsRows() { return {{}, kLowerings}; }

}  // namespace anemone
