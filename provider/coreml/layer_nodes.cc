// Operators that combine elements: reductions, products, normalizations.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

std::vector<int64_t> ReducedAxes(NodeWriter& w) {
  std::vector<int64_t> axes = w.Has(1) ? w.IntsAt(1) : w.Ints("axes", {});
  const int64_t rank = w.RankOf(0);
  if (axes.empty() && w.Int("noop_with_empty_axes", 0) == 0) {
    axes.resize(std::max<int64_t>(rank, 1));
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  return axes;
}

// The axes of x from `first` on.
std::vector<int64_t> AxesFrom(const MilVar& x, int64_t first) {
  std::vector<int64_t> axes;
  axes.reserve(x.shape.size());
  for (auto axis = first; axis < static_cast<int64_t>(x.shape.size()); ++axis) axes.push_back(axis);
  return axes;
}

MilVar Reduced(NodeWriter& w, const std::string& op, const MilVar& x,
               const std::vector<int64_t>& axes) {
  MilShape shape = x.shape;
  for (int64_t axis : axes) shape[axis] = 1;
  return w.Emit(
      op, {{"x", {x.name}}, {"axes", {w.to().Ints(axes)}}, {"keep_dims", {w.to().Bool(true)}}},
      x.dtype, shape);
}

template <const char* kOp>
void WriteReduce(NodeWriter& w) {
  const std::string dtype = w.TypeOf(0);
  const MilVar x = w.In(0, dtype == "bool" ? "int32" : dtype);
  const std::vector<int64_t> axes = ReducedAxes(w);
  if (!w.ok()) return;
  w.Out(axes.empty() ? x : Reduced(w, kOp, x, axes));
}

constexpr char kSum[] = "reduce_sum", kMean[] = "reduce_mean", kMaxOf[] = "reduce_max",
               kMinOf[] = "reduce_min", kProd[] = "reduce_prod", kL1[] = "reduce_l1_norm",
               kL2[] = "reduce_l2_norm", kSquares[] = "reduce_sum_square",
               kLogSumExp[] = "reduce_log_sum_exp";

void WriteMatMul(NodeWriter& w) {
  MilVar x = w.In(0, w.floats()), y = w.In(1, w.floats());
  if (w.TypeOf(0) == "int32") return w.Fail("a product of integers");
  // A vector is a matrix of one row or column, and the axis leaves the result by its shape.
  if (w.RankOf(0) == 1) x = w.Reshape(x, {1, x.shape[0]});
  if (w.RankOf(1) == 1) y = w.Reshape(y, {y.shape[0], 1});
  w.Out(w.MatMul(x, y));
}

void WriteGemm(NodeWriter& w) {
  const MilVar x = w.In(0), y = w.In(1);
  MilVar product = w.Emit("matmul", {{"x", {x.name}},
                                     {"y", {y.name}},
                                     {"transpose_x", {w.to().Bool(w.Int("transA", 0) != 0)}},
                                     {"transpose_y", {w.to().Bool(w.Int("transB", 0) != 0)}}});
  const double alpha = w.Number("alpha", 1), beta = w.Number("beta", 1);
  if (alpha != 1) product = w.Binary("mul", product, alpha);
  if (w.Has(2)) {
    const MilVar bias = beta == 1 ? w.In(2) : w.Binary("mul", w.In(2), beta);
    product = w.Binary("add", product, bias);
  }
  w.Out(product);
}

void WriteSoftmax(NodeWriter& w) {
  w.Out(w.Emit("softmax", {{"x", {w.In(0).name}}, {"axis", {w.to().Int(w.Axis("axis", -1))}}}));
}

void WriteLogSoftmax(NodeWriter& w) {
  const MilVar x = w.In(0);
  const std::vector<int64_t> axes = {w.Axis("axis", -1)};
  if (!w.ok()) return;
  w.Out(w.Binary("sub", x, Reduced(w, "reduce_log_sum_exp", x, axes)));
}

template <const char* kOp>
void WriteGlobalPool(NodeWriter& w) {
  const MilVar x = w.In(0);
  if (w.ok()) w.Out(Reduced(w, kOp, x, AxesFrom(x, 2)));
}

// By the norm of the channels' elements, or of one axis.
MilVar Norm(NodeWriter& w, const MilVar& x, const std::vector<int64_t>& axes) {
  const int64_t p = w.Int("p", 2);
  if (p != 1 && p != 2) w.Fail("a norm other than the first and second");
  return w.ok() ? Reduced(w, p == 1 ? "reduce_l1_norm" : "reduce_l2_norm", x, axes) : x;
}

void WriteGlobalLpPool(NodeWriter& w) {
  const MilVar x = w.In(0);
  w.Out(Norm(w, x, AxesFrom(x, 2)));
}

// Zeros stay zeros.
void WriteLpNormalization(NodeWriter& w) {
  constexpr double kTiny = 6e-8;  // fp16's smallest number
  const MilVar x = w.In(0);
  w.Out(w.Binary("real_div", x, w.Binary("maximum", Norm(w, x, {w.Axis("axis", -1)}), kTiny)));
}

void WriteLrn(NodeWriter& w) {
  const MilVar x = w.In(0);
  w.Out(
      w.Emit("local_response_norm", {{"x", {x.name}},
                                     {"size", {w.to().Int(w.Int("size", 1))}},
                                     {"alpha", {w.to().Number(w.Number("alpha", 1e-4F), x.dtype)}},
                                     {"beta", {w.to().Number(w.Number("beta", 0.75F), x.dtype)}},
                                     {"k", {w.to().Number(w.Number("bias", 1), x.dtype)}}}));
}

// (x - mean) / sqrt(variance + epsilon), over `axes`.
MilVar Normalized(NodeWriter& w, const MilVar& x, const std::vector<int64_t>& axes) {
  const MilVar centered = w.Binary("sub", x, Reduced(w, "reduce_mean", x, axes));
  const MilVar variance = Reduced(w, "reduce_mean", w.Binary("mul", centered, centered), axes);
  const MilVar deviation = w.Unary("sqrt", w.Binary("add", variance, w.Number("epsilon", 1e-5F)));
  return w.Binary("real_div", centered, deviation);
}

void WriteLayerNormalization(NodeWriter& w) {
  if (OutputOr(w.node(), 1) != kNone || OutputOr(w.node(), 2) != kNone) {
    return w.Fail("the mean and the deviation as results");
  }
  const MilVar x = w.In(0);
  const std::vector<int64_t> axes = AxesFrom(x, w.Axis("axis", -1));
  if (!w.ok()) return;
  MilVar result = w.Binary("mul", Normalized(w, x, axes), w.In(1));
  if (w.Has(2)) result = w.Binary("add", result, w.In(2));
  w.Out(result);
}

// A vector of the channels, against the axis 1.
MilVar Channels(NodeWriter& w, size_t i, size_t rank) {
  MilVar x = w.In(i);
  MilShape shape(rank, 1);
  if (rank > 1) shape[1] = x.shape[0];
  return w.ok() ? w.Reshape(x, shape) : x;
}

void WriteInstanceNormalization(NodeWriter& w) {
  const MilVar x = w.In(0);
  const size_t rank = x.shape.size();
  if (!w.ok()) return;
  const MilVar scaled = w.Binary("mul", Normalized(w, x, AxesFrom(x, 2)), Channels(w, 1, rank));
  w.Out(w.Binary("add", scaled, Channels(w, 2, rank)));
}

// The number of elements for each example and group.
int64_t RestOf(const MilShape& shape, int64_t groups) {
  int64_t rest = 1;
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] == kFree) return kFree;
    rest *= shape[i];
  }
  return rest / groups;
}

void WriteGroupNormalization(NodeWriter& w) {
  const MilVar x = w.In(0);
  const int64_t groups = w.Int("num_groups", 1);
  if (!w.ok()) return;
  const MilShape apart = {x.shape[0], groups, RestOf(x.shape, groups)};
  MilVar normal;
  if (HasFree(x.shape)) {
    normal = w.ReshapeBy(x, w.Joined({w.SizeOf(x, 0), w.VectorOf({groups, -1})}), apart);
    normal = w.ReshapeBy(Normalized(w, normal, {2}), w.to().ExtentsOf(x), x.shape);
  } else {
    normal = w.Reshape(Normalized(w, w.Reshape(x, apart), {2}), x.shape);
  }
  const MilVar scaled = w.Binary("mul", normal, Channels(w, 1, x.shape.size()));
  w.Out(w.Binary("add", scaled, Channels(w, 2, x.shape.size())));
}

// A batch normalization by constants: x * scale + shift, of which fp16 may hold less than of the
// variance.
void WriteScaled(NodeWriter& w, const MilVar& x) {
  const std::vector<double> gain = w.NumbersAt(1), bias = w.NumbersAt(2), mean = w.NumbersAt(3),
                            variance = w.NumbersAt(4);
  if (!w.ok()) return;
  std::vector<float> scale, shift;
  for (size_t i = 0; i < gain.size(); ++i) {
    const double factor = gain[i] / std::sqrt(variance[i] + w.Number("epsilon", 1e-5F));
    scale.push_back(static_cast<float>(factor));
    shift.push_back(static_cast<float>(bias[i] - mean[i] * factor));
  }
  MilShape shape(std::max<size_t>(x.shape.size(), 1), 1);
  const auto count = static_cast<int64_t>(gain.size());
  if (shape.size() > 1) shape[1] = count;
  const auto along = [&](const std::vector<float>& numbers) {
    return w.to().Constant(Tensor::Floats({count}, numbers), x.dtype, shape);
  };
  w.Out(w.Binary("add", w.Binary("mul", x, along(scale)), along(shift)));
}

// By the mean and variance of the batch, which also move those that are given.
void WriteTrainingNormalization(NodeWriter& w, const MilVar& x) {
  const size_t rank = x.shape.size();
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (rank > 1) axes.erase(axes.begin() + 1);
  if (!w.ok()) return;
  const MilVar mean = Reduced(w, "reduce_mean", x, axes), centered = w.Binary("sub", x, mean);
  const MilVar variance = Reduced(w, "reduce_mean", w.Binary("mul", centered, centered), axes);
  const MilVar deviation = w.Unary("sqrt", w.Binary("add", variance, w.Number("epsilon", 1e-5F)));
  const MilVar scaled =
      w.Binary("mul", w.Binary("real_div", centered, deviation), Channels(w, 1, rank));
  w.Out(w.Binary("add", scaled, Channels(w, 2, rank)));
  const double momentum = w.Number("momentum", 0.9F);
  const auto moved = [&](size_t i, const MilVar& found) {
    return w.Binary("add", w.Binary("mul", Channels(w, i, rank), momentum),
                    w.Binary("mul", found, 1 - momentum));
  };
  if (OutputOr(w.node(), 1) != kNone) w.Out(moved(3, mean), 1);
  if (OutputOr(w.node(), 2) != kNone) w.Out(moved(4, variance), 2);
}

void WriteBatchNormalization(NodeWriter& w) {
  const MilVar x = w.In(0);
  if (w.Int("training_mode", 0) != 0) return WriteTrainingNormalization(w, x);
  const size_t rank = x.shape.size();
  bool is_constant = true;
  for (size_t i = 1; i < 5; ++i) is_constant = is_constant && w.IsConstant(i);
  if (is_constant) return WriteScaled(w, x);
  const MilVar deviation =
      w.Unary("sqrt", w.Binary("add", Channels(w, 4, rank), w.Number("epsilon", 1e-5F)));
  const MilVar scale = w.Binary("real_div", Channels(w, 1, rank), deviation);
  const MilVar scaled = w.Binary("mul", w.Binary("sub", x, Channels(w, 3, rank)), scale);
  w.Out(w.Binary("add", scaled, Channels(w, 2, rank)));
}

void WriteRmsNormalization(NodeWriter& w) {
  const MilVar x = w.In(0);
  const std::vector<int64_t> axes = AxesFrom(x, w.Axis("axis", -1));
  if (!w.ok()) return;
  const MilVar mean = Reduced(w, "reduce_mean", w.Binary("mul", x, x), axes);
  const MilVar root = w.Unary("sqrt", w.Binary("add", mean, w.Number("epsilon", 1e-5F)));
  w.Out(w.Binary("mul", w.Binary("real_div", x, root), w.In(1)));
}

// By constant factors of the last two axes. For other forms, see the units of kernels/resize.
void WriteResize(NodeWriter& w) {
  const MilVar x = w.In(0, w.floats());
  const std::string mode = w.Text("mode", "nearest"),
                    at = w.Text("coordinate_transformation_mode", "half_pixel");
  if (x.shape.size() != 4 || !w.Has(2) || w.Has(3) ||
      w.Text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    return w.Fail("a size that is not given by factors, or other than two axes");
  }
  const std::vector<double> factors = w.NumbersAt(2);
  if (!w.ok()) return;
  if (factors.size() != 4 || factors[0] != 1 || factors[1] != 1) {
    return w.Fail("factors of other than the last two axes");
  }
  const bool is_floor = mode == "nearest" && at == "asymmetric" &&
                        w.Text("nearest_mode", "round_prefer_floor") == "floor";
  const bool is_linear = mode == "linear" && (at == "half_pixel" || at == "align_corners");
  const bool is_whole =
      factors[2] == std::floor(factors[2]) && factors[3] == std::floor(factors[3]);
  if (!is_whole || factors[2] < 1 || factors[3] < 1 || !(is_floor || is_linear)) {
    return w.Fail("this mode, or factors that are not whole numbers");
  }
  std::vector<MilArgument> arguments = {{"x", {x.name}}};
  const char* names[] = {"scale_factor_height", "scale_factor_width"};
  for (int i : {0, 1}) {
    const double factor = factors[2 + i];
    arguments.push_back(
        {names[i],
         {is_floor ? w.to().Int(static_cast<int64_t>(factor)) : w.to().Number(factor, "fp32")}});
  }
  if (is_linear) {
    arguments.push_back({"align_corners", {w.to().Bool(at == "align_corners")}});
    arguments.push_back({"half_pixel_centers", {w.to().Bool(at == "half_pixel")}});
  }
  w.Out(w.Emit(is_floor ? "upsample_nearest_neighbor" : "upsample_bilinear", std::move(arguments),
               x.dtype, w.OutShape()));
}

constexpr MilNode kLayerNodes[] = {
    {"BatchNormalization", WriteBatchNormalization},
    {"Gemm", WriteGemm},
    {"GlobalAveragePool", WriteGlobalPool<kMean>},
    {"GlobalLpPool", WriteGlobalLpPool},
    {"GlobalMaxPool", WriteGlobalPool<kMaxOf>},
    {"GroupNormalization", WriteGroupNormalization},
    {"InstanceNormalization", WriteInstanceNormalization},
    {"LayerNormalization", WriteLayerNormalization},
    {"LRN", WriteLrn},
    {"LogSoftmax", WriteLogSoftmax},
    {"LpNormalization", WriteLpNormalization},
    {"MatMul", WriteMatMul},
    {"RMSNormalization", WriteRmsNormalization},
    {"Resize", WriteResize},
    {"ReduceL1", WriteReduce<kL1>},
    {"ReduceL2", WriteReduce<kL2>},
    {"ReduceLogSumExp", WriteReduce<kLogSumExp>},
    {"ReduceMax", WriteReduce<kMaxOf>},
    {"ReduceMean", WriteReduce<kMean>},
    {"ReduceMin", WriteReduce<kMinOf>},
    {"ReduceProd", WriteReduce<kProd>},
    {"ReduceSum", WriteReduce<kSum>},
    {"ReduceSumSquare", WriteReduce<kSquares>},
    {"Softmax", WriteSoftmax},
};

}  // namespace

absl::Span<const MilNode> LayerMilNodes() { return kLayerNodes; }

}  // namespace anemone
