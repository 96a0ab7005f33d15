// Operators that combine the elements of windows: convolutions and pools.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

// [a, b] of each axis in ONNX's order [a0, a1, b0, b1] as MIL's [a0, b0, a1, b1].
std::vector<int64_t> PadsOf(NodeWriter& w, size_t axes) {
  const std::vector<int64_t> given = w.Ints("pads", std::vector<int64_t>(2 * axes, 0));
  std::vector<int64_t> pads;
  pads.reserve(2 * axes);
  for (size_t i = 0; i < axes; ++i) {
    pads.push_back(given[i]);
    pads.push_back(given[i + axes]);
  }
  return pads;
}

// The window's attributes that convolutions and pools have in common.
bool AddWindow(NodeWriter& w, size_t axes, std::vector<MilArgument>& arguments) {
  const std::string automatic = w.Text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") {
    w.Fail(absl::StrCat("auto_pad ", automatic));
    return false;
  }
  const std::vector<int64_t> ones(axes, 1);
  arguments.push_back({"strides", {w.to().Ints(w.Ints("strides", ones))}});
  arguments.push_back({"pad_type", {w.to().Text("custom")}});
  arguments.push_back({"pad", {w.to().Ints(PadsOf(w, axes))}});
  return w.ok();
}

// MIL wants constant weights of transposed convolutions.
MilVar ConvolvedAs(NodeWriter& w, const char* op, const MilVar& x, const MilVar& weight,
                   const std::vector<MilArgument>& more) {
  const size_t axes = x.shape.size() - 2;
  if (axes < 1 || axes > 3) w.Fail("a convolution over other than 1 to 3 axes");
  std::vector<MilArgument> arguments = {{"x", {x.name}}, {"weight", {weight.name}}};
  if (!w.ok() || !AddWindow(w, axes, arguments)) return x;
  const std::vector<int64_t> ones(axes, 1);
  arguments.push_back({"dilations", {w.to().Ints(w.Ints("dilations", ones))}});
  arguments.push_back({"groups", {w.to().Int(w.Int("group", 1))}});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return w.Emit(op, std::move(arguments), x.dtype, w.OutShape());
}

template <bool kTransposed>
void WriteConv(NodeWriter& w) {
  const MilVar x = w.In(0), weight = w.In(1);
  if (kTransposed && !w.IsConstant(1)) return w.Fail("a weight that is only known at run time");
  std::vector<MilArgument> more;
  if (kTransposed && !HasFree(w.OutShape())) {
    more.push_back({"output_shape", {w.to().Ints(w.OutShape())}});
  } else if (kTransposed &&
             w.Ints("output_padding", {}).size() + w.Ints("output_shape", {}).size() > 0) {
    return w.Fail("output_padding or output_shape, and sizes that are only known at run time");
  }
  const bool has_constant_bias = w.Has(2) && w.IsConstant(2);  // MIL wants a constant
  if (has_constant_bias) more.push_back({"bias", {w.In(2).name}});
  const MilVar y = ConvolvedAs(w, kTransposed ? "conv_transpose" : "conv", x, weight, more);
  if (!w.Has(2) || has_constant_bias) return w.Out(y);
  const MilVar bias = w.In(2);
  MilShape along(y.shape.size(), 1);
  along[1] = y.shape[1];
  if (w.ok()) w.Out(w.Binary("add", y, w.Reshape(bias, along)));
}

MilVar Pooled(NodeWriter& w, const char* op, const MilVar& x,
              const std::vector<MilArgument>& more) {
  const size_t axes = x.shape.size() - 2;
  if (axes < 1 || axes > 3) w.Fail("a pool over other than 1 to 3 axes");
  const std::vector<int64_t> ones(axes, 1);
  if (w.Ints("dilations", ones) != ones) w.Fail("a pool with dilations");
  if (!w.ok()) return x;
  std::vector<MilArgument> arguments = {
      {"x", {x.name}}, {"kernel_sizes", {w.to().Ints(w.Ints("kernel_shape", ones))}}};
  if (!AddWindow(w, axes, arguments)) return x;
  arguments.push_back({"ceil_mode", {w.to().Bool(w.Int("ceil_mode", 0) != 0)}});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return w.Emit(op, std::move(arguments), x.dtype, w.OutShape());
}

void WriteMaxPool(NodeWriter& w) {
  const std::string type = w.TypeOf(0);
  const MilVar x = w.In(0, type == "int32" ? "fp32" : type);  // exact up to 2^24
  if (OutputOr(w.node(), 1) != kNone) return w.Fail("the indices of a maximum pool");
  const MilVar y = Pooled(w, "max_pool", x, {});
  if (w.ok()) w.Out(w.to().Cast(y, type));
}

// How many elements of an axis a window reads, for each of `count` windows: elements from 0 to
// `extent` (with padding at the ends, if it counts).
std::vector<double> CountsOf(int64_t count, int64_t first, int64_t stride, int64_t size,
                             int64_t dilation, int64_t low, int64_t extent) {
  std::vector<double> counts(count, 0);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t tap = 0; tap < size; ++tap) {
      const int64_t at = first + i * stride + tap * dilation;
      if (at >= low && at < extent) ++counts[i];
    }
  }
  return counts;
}

// The mean of elements that are apart: a convolution by ones, over the number of elements.
void WriteDilatedMean(NodeWriter& w, const MilVar& x) {
  const MilShape shape = w.OutShape();
  const size_t axes = x.shape.size() - 2;
  if (axes < 1 || axes > 3) return w.Fail("a pool over other than 1 to 3 axes");
  if (HasFree(x.shape) || HasFree(shape)) return w.Fail("a pool with dilations and free sizes");
  const std::vector<int64_t> ones(axes, 1), sizes = w.Ints("kernel_shape", ones),
                                            strides = w.Ints("strides", ones),
                                            dilations = w.Ints("dilations", ones);
  const bool counts_padding = w.Int("count_include_pad", 0) != 0;
  std::vector<MilArgument> window;
  if (!AddWindow(w, axes, window)) return;
  std::vector<int64_t> pads = PadsOf(w, axes);
  std::vector<MilVar> shares;
  shares.reserve(axes);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t first = -pads[2 * i], extent = x.shape[i + 2], count = shape[i + 2];
    const std::vector<double> counts =
        CountsOf(count, first, strides[i], sizes[i], dilations[i], counts_padding ? first : 0,
                 counts_padding ? extent + pads[2 * i + 1] : extent);
    std::vector<float> share;
    share.reserve(counts.size());
    for (double number : counts) share.push_back(static_cast<float>(1 / std::max(number, 1.0)));
    MilShape along(x.shape.size(), 1);
    along[i + 2] = count;
    shares.push_back(w.to().Constant(Tensor::Floats({count}, share), x.dtype, along));
    // The last window of a rounded-up number may end beyond the padding.
    const int64_t end = first + (count - 1) * strides[i] + (sizes[i] - 1) * dilations[i] + 1;
    pads[2 * i + 1] = std::max(pads[2 * i + 1], end - extent);
  }
  MilShape of_weight = {x.shape[1], 1};
  of_weight.insert(of_weight.end(), sizes.begin(), sizes.end());
  MilVar y = w.Emit("conv",
                    {{"x", {x.name}},
                     {"weight", {w.Filled(w.VectorOf(of_weight), 1, x.dtype, of_weight).name}},
                     {"strides", {w.to().Ints(strides)}},
                     {"pad_type", {w.to().Text("custom")}},
                     {"pad", {w.to().Ints(pads)}},
                     {"dilations", {w.to().Ints(dilations)}},
                     {"groups", {w.to().Int(x.shape[1])}}},
                    x.dtype, shape);
  for (const MilVar& share : shares) y = w.Binary("mul", y, share);
  w.Out(y);
}

void WriteAveragePool(NodeWriter& w) {
  const MilVar x = w.In(0);
  const std::vector<int64_t> dilations = w.Ints("dilations", {});
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; })) {
    return WriteDilatedMean(w, x);
  }
  const bool leaves_out = w.Int("count_include_pad", 0) == 0;
  w.Out(Pooled(w, "avg_pool", x, {{"exclude_padding_from_average", {w.to().Bool(leaves_out)}}}));
}

// The root of the sum of powers: the mean, which counts the padding, times the window's size.
void WriteLpPool(NodeWriter& w) {
  if (w.Int("ceil_mode", 0) != 0) return w.Fail("windows that end beyond the padding");
  const auto p = static_cast<double>(w.Int("p", 2));
  double size = 1;
  for (int64_t extent : w.Ints("kernel_shape", {})) size *= static_cast<double>(extent);
  const MilVar x = w.Unary("abs", w.In(0));
  const MilVar mean = Pooled(w, "avg_pool", p == 1 ? x : w.Binary("pow", x, p),
                             {{"exclude_padding_from_average", {w.to().Bool(false)}}});
  const MilVar sum = w.Binary("mul", mean, size);
  w.Out(p == 1 ? sum : w.Binary("pow", sum, 1 / p));
}

constexpr MilNode kWindowNodes[] = {
    {"AveragePool", WriteAveragePool},  {"Conv", WriteConv<false>},
    {"ConvTranspose", WriteConv<true>}, {"LpPool", WriteLpPool},
    {"MaxPool", WriteMaxPool},
};

}  // namespace

MilVar Convolved(NodeWriter& w, const MilVar& x, const MilVar& weight) {
  return ConvolvedAs(w, "conv", x, weight, {});
}

absl::Span<const MilNode> WindowMilNodes() { return kWindowNodes; }

}  // namespace anemone
