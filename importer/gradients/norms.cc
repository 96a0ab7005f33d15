// Gradients of softmax, normalizations and reductions. In comments, dx and dy are the derivatives
// of the loss by the input x and the output y.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/gradients/gradient.h"
#include "importer/gradients/rules.h"

namespace anemone::gradient {
namespace {

int64_t AxisOf(const Context& g, int64_t fallback) {
  return AxisFromZero(IntOr(g.node(), "axis", fallback), g.in_dims(0).size());
}

// x normalized over `axes`: (x - mean) / sqrt(variance + epsilon).
struct Normalized {
  ValueId x, rate;  // rate: 1 / sqrt(variance + epsilon), with the axes as sizes of 1
};

Normalized Normalize(Context& g, ValueId x, const Sizes& axes, double epsilon) {
  const ValueId centre = g.Sub(x, g.Mean(x, axes, /*keep=*/true));
  const ValueId variance = g.Mean(g.Mul(centre, centre), axes, /*keep=*/true);
  const ValueId root = g.Emit("Sqrt", {g.Add(variance, g.Scalar(g.type(), epsilon))});
  const ValueId rate = g.Div(g.Scalar(g.type(), 1), root);
  return {g.Mul(centre, rate), rate};
}

// dx = rate (d - mean(d) - xhat mean(d xhat)), where d is the derivative by xhat.
ValueId ByInput(Context& g, const Normalized& n, ValueId d, const Sizes& axes) {
  const ValueId along = g.Mul(n.x, g.Mean(g.Mul(d, n.x), axes, /*keep=*/true));
  const ValueId across = g.Sub(d, g.Mean(d, axes, /*keep=*/true));
  return g.Mul(n.rate, g.Sub(across, along));
}

void GiveScaleAndBias(Context& g, ValueId normalized, const Sizes& dims) {
  const ValueId dy = g.cotangent();
  if (g.wants(1)) g.Give(1, g.SumOfChannels(g.Mul(dy, normalized), dims.size()));
  if (g.wants(2)) g.Give(2, g.SumOfChannels(dy, dims.size()));
}

// The sizes of the sum over `axes` with these axes kept as 1. An empty list means all axes, unless
// noop_with_empty_axes is set.
absl::StatusOr<Sizes> ReducedSizes(Context& g) {
  Sizes sizes = g.in_dims(0);
  ANEMONE_ASSIGN_OR_RETURN(Sizes axes, g.IntsOfInput(1, {}));
  if (axes.empty() && IntOr(g.node(), "noop_with_empty_axes", 0) == 0) {
    axes = Range(0, static_cast<int64_t>(sizes.size()));
  }
  for (int64_t axis : axes) sizes[AxisFromZero(axis, sizes.size())] = 1;
  return sizes;
}

// dy with the reduced axes as sizes of 1.
absl::StatusOr<ValueId> Kept(Context& g) {
  ANEMONE_ASSIGN_OR_RETURN(const Sizes sizes, ReducedSizes(g));
  return sizes == g.out_dims() ? g.cotangent() : g.Reshape(g.cotangent(), sizes);
}

}  // namespace

// dx = y (dy - sum(dy y))
absl::Status Softmax(Context& g) {
  const Sizes axes = {AxisOf(g, -1)};
  const ValueId y = g.output(0), dy = g.cotangent();
  g.Give(0, g.Mul(y, g.Sub(dy, g.Sum(g.Mul(dy, y), axes, /*keep=*/true))));
  return absl::OkStatus();
}

// dx = dy - exp(y) sum(dy)
absl::Status LogSoftmax(Context& g) {
  const Sizes axes = {AxisOf(g, -1)};
  const ValueId dy = g.cotangent();
  g.Give(0, g.Sub(dy, g.Mul(g.Emit("Exp", {g.output(0)}), g.Sum(dy, axes, /*keep=*/true))));
  return absl::OkStatus();
}

absl::Status LayerNormalization(Context& g) {
  if (g.output(1) != kNone && g.cotangent(1) != kNone) {
    return g.Refuse("only the first output of a normalization has a gradient");
  }
  const Sizes dims = g.in_dims(0);
  const Sizes axes = Range(AxisOf(g, -1), static_cast<int64_t>(dims.size()));
  const ValueId dy = g.cotangent();
  const Normalized n = Normalize(g, g.input(0), axes, FloatOr(g.node(), "epsilon", 1e-5f));
  if (g.wants(0)) g.Give(0, ByInput(g, n, g.Mul(dy, g.input(1)), axes));
  if (g.wants(1)) g.Give(1, g.SumTo(g.Mul(dy, n.x), dims, g.in_dims(1)));
  if (g.wants(2)) g.Give(2, g.SumTo(dy, dims, g.in_dims(2)));
  return absl::OkStatus();
}

// Over the elements of each group of channels; InstanceNormalization has one channel in a group.
absl::Status GroupNormalization(Context& g) {
  const Sizes dims = g.in_dims(0);
  const bool is_instance = g.node().op_type == "InstanceNormalization";
  const int64_t groups = is_instance ? dims[1] : IntOr(g.node(), "num_groups", 1);
  const int64_t inner = Product(absl::MakeConstSpan(dims).subspan(1));
  const Sizes grouped = {dims[0], groups, inner / groups};
  const Sizes axes = {2};
  const ValueId x = g.Reshape(g.input(0), grouped);
  const Normalized n = Normalize(g, x, axes, FloatOr(g.node(), "epsilon", 1e-5f));
  if (g.wants(0)) {
    const ValueId d = g.Mul(g.cotangent(), g.PerChannel(g.input(1), dims));
    g.Give(0, g.Reshape(ByInput(g, n, g.Reshape(d, grouped), axes), dims));
  }
  if (g.wants(1) || g.wants(2)) GiveScaleAndBias(g, g.Reshape(n.x, dims), dims);
  return absl::OkStatus();
}

// With given statistics; TrainedBatchNormalization replaces a node that computes those of the
// batch.
absl::Status BatchNormalization(Context& g) {
  if (g.wants(3) || g.wants(4)) {
    return g.Refuse("BatchNormalization has no gradient by its mean and variance");
  }
  const Sizes dims = g.in_dims(0);
  const double epsilon = FloatOr(g.node(), "epsilon", 1e-5f);
  const ValueId variance = g.Add(g.PerChannel(g.input(4), dims), g.Scalar(g.type(), epsilon));
  const ValueId rate = g.Div(g.Scalar(g.type(), 1), g.Emit("Sqrt", {variance}));
  if (g.wants(0)) {
    g.Give(0, g.Mul(g.cotangent(), g.Mul(rate, g.PerChannel(g.input(1), dims))));
  }
  if (g.wants(1) || g.wants(2)) {
    const ValueId centre = g.Sub(g.input(0), g.PerChannel(g.input(3), dims));
    GiveScaleAndBias(g, g.Mul(centre, rate), dims);
  }
  return absl::OkStatus();
}

// y = x / |x|: dx = (dy - y sum(dy y)) / |x|
absl::Status LpNormalization(Context& g) {
  if (IntOr(g.node(), "p", 2) != 2)
    return g.Refuse("LpNormalization has a gradient for p = 2 only");
  const Sizes axes = {AxisOf(g, -1)};
  const ValueId x = g.input(0), y = g.output(0), dy = g.cotangent();
  const ValueId length = g.Emit("Sqrt", {g.Sum(g.Mul(x, x), axes, /*keep=*/true)});
  const ValueId along = g.Mul(y, g.Sum(g.Mul(dy, y), axes, /*keep=*/true));
  g.Give(0, g.Div(g.Sub(dy, along), length));
  return absl::OkStatus();
}

absl::Status ReduceSum(Context& g) {
  ANEMONE_ASSIGN_OR_RETURN(const ValueId dy, Kept(g));
  g.Give(0, g.Expand(dy, g.in_dims(0)));
  return absl::OkStatus();
}

absl::Status ReduceMean(Context& g) {
  ANEMONE_ASSIGN_OR_RETURN(const ValueId dy, Kept(g));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t all, ElementCount(g.in_dims(0)));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t made, ElementCount(g.out_dims()));
  const double share = static_cast<double>(made) / static_cast<double>(all);
  g.Give(0, g.Expand(g.Mul(dy, g.Scalar(g.type(), share)), g.in_dims(0)));
  return absl::OkStatus();
}

absl::Status ReduceSumSquare(Context& g) {
  ANEMONE_ASSIGN_OR_RETURN(const ValueId dy, Kept(g));
  g.Give(0, g.Mul(g.Mul(g.input(0), g.Scalar(g.type(), 2)), dy));
  return absl::OkStatus();
}

}  // namespace anemone::gradient
