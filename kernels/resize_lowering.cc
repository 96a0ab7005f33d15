// How ONNX's Resize and MIL's resize and upsample operations become units. A target without a
// texture engine has the compiler's software route, spelled out: deconvolutions of stride 2 where
// every element is repeated, a matrix product along each axis elsewhere (validators.json Resize;
// conflicts.md C-resize-m1).
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/broadcast.h"
#include "kernels/conv.h"
#include "kernels/node_inputs.h"
#include "kernels/reshape.h"
#include "kernels/resize.h"
#include "kernels/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// The node's words about one axis.
struct AxisForm {
  Axis axis = Axis::kW;
  int64_t in = 1, out = 1;
  float scale = 1;
};

struct Form {
  SamplingMethod method = SamplingMethod::kNearestNeighbor;
  std::string coordinates, rounding;
  std::vector<AxisForm> axes;  // those that change
};

// ONNX's coordinate_transformation_mode; nullopt for those that sample elsewhere. In fp32 as ONNX
// Runtime computes it: nearest may fall on the edge between two elements.
std::optional<float> Coordinate(const std::string& mode, const AxisForm& a, int64_t i) {
  float x = static_cast<float>(i);
  if (mode == "asymmetric") return x / a.scale;
  if (mode == "align_corners") return a.out == 1 ? 0 : x * (a.in - 1) / (a.out - 1);
  if (mode == "pytorch_half_pixel" && a.out == 1) return 0;
  if (mode == "half_pixel" || mode == "pytorch_half_pixel") return (x + 0.5f) / a.scale - 0.5f;
  if (mode == "half_pixel_symmetric") {
    float adjustment = a.out / (a.scale * a.in);
    return a.in * 0.5f * (1 - adjustment) + (x + 0.5f) / a.scale - 0.5f;
  }
  return std::nullopt;
}

std::optional<float> Round(const std::string& mode, float x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_floor") return std::ceil(x - 0.5f);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5f);
  return std::nullopt;
}

// Where ONNX samples axis `a`, inside [0, in - 1]; nearest already rounded.
absl::StatusOr<Positions> Wanted(const Form& form, const AxisForm& a, NetworkBuilder& c) {
  Positions at;
  for (int64_t i = 0; i < a.out; ++i) {
    std::optional<float> x = Coordinate(form.coordinates, a, i);
    if (x && form.method == SamplingMethod::kNearestNeighbor) x = Round(form.rounding, *x);
    if (!x) {
      return c.NotLowered(absl::StrCat("resize with coordinates '", form.coordinates,
                                       "' and rounding '", form.rounding, "'"));
    }
    // Not a number, of a scale near 0, is the first element too.
    at.push_back(*x > 0 ? std::min<double>(*x, a.in - 1) : 0);
  }
  return at;
}

// `size / extent` where a size is given, the same for all axes if the policy keeps the aspect.
std::vector<float> ScalesFromSizes(const std::string& policy, absl::Span<const AxisForm> axes,
                                   absl::Span<const int64_t> sizes) {
  std::vector<float> scales;
  for (size_t i = 0; i < axes.size(); ++i) {
    scales.push_back(static_cast<float>(sizes[i]) / static_cast<float>(axes[i].in));
  }
  if (policy == "stretch" || scales.empty()) return scales;
  auto [least, most] = std::minmax_element(scales.begin(), scales.end());
  float one = policy == "not_larger" ? *least : *most;
  std::fill(scales.begin(), scales.end(), one);
  return scales;
}

// Scale by listed axis, from the scales or the sizes.
absl::StatusOr<std::vector<float>> ReadScales(const Node& node, LowerContext& c,
                                              const std::string& policy,
                                              absl::Span<const AxisForm> axes) {
  std::vector<float> scales;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ConstantIntegers(c, node, 3, {}));
  if (sizes.size() == axes.size()) {
    scales = ScalesFromSizes(policy, axes, sizes);
  } else {
    const Tensor* given = HasInput(node, 2) ? c.view().Constant(node.inputs[2]) : nullptr;
    if (given == nullptr || given->type() != DataType::kFloat) {
      return c.NotLowered("resize whose scales are computed at run time");
    }
    int64_t count = std::min<int64_t>(given->elements(), kMaxRank + 1);
    for (int64_t i = 0; i < count; ++i) scales.push_back(given->at<float>(i));
  }
  bool positive = std::all_of(scales.begin(), scales.end(), [](float s) { return s > 0; });
  if (scales.size() != axes.size() || scales.size() > kMaxRank || !positive) {
    return absl::InvalidArgumentError(
        "scales or sizes: want one above 0 for every axis; run the ONNX checker on the model");
  }
  return scales;
}

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, a.String("mode", "nearest"));
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(form.coordinates,
                           a.String("coordinate_transformation_mode", "half_pixel"));
  ANEMONE_ASSIGN_OR_RETURN(form.rounding, a.String("nearest_mode", "round_prefer_floor"));
  ANEMONE_ASSIGN_OR_RETURN(int64_t antialias, a.Int("antialias", 0));
  ANEMONE_ASSIGN_OR_RETURN(std::string policy, a.String("keep_aspect_ratio_policy", "stretch"));
  for (const char* unused : {"cubic_coeff_a", "exclude_outside", "extrapolation_value"}) {
    a.Ignore(unused);
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  std::vector<int64_t> all(from.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> listed, a.Ints("axes", all));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  if (mode != "nearest" && mode != "linear") return c.NotLowered(mode + " resize");
  form.method = mode == "linear" ? SamplingMethod::kLinear : SamplingMethod::kNearestNeighbor;
  for (int64_t extent : from) {
    if (extent < 1) return c.Refuse(rule::kEmptyTensor);
  }
  int rank = static_cast<int>(from.size());
  std::vector<AxisForm> axes;
  for (int64_t at : listed) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, rank));
    if (to[axis] < 1) return c.Refuse(rule::kEmptyTensor);
    if (std::max(from[axis], to[axis]) > kMostResized) return c.Refuse(rule::kMaxDimension);
    axes.push_back({AxisOf(rank, axis), from[axis], to[axis]});
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<float> scales, ReadScales(node, c, policy, axes));
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].scale = scales[i];
    if (axes[i].in != axes[i].out || scales[i] != 1) form.axes.push_back(axes[i]);
    if (antialias != 0 && axes[i].out < axes[i].in) {
      return c.NotLowered("resize with antialiasing");
    }
  }
  return form;
}

// Whether sampling on `grid` is what `wanted` says. Nearest counts on the default grid alone: how
// the sampler rounds on the others is not published. Linear may be off by what the fraction of a
// step can be in fp16.
bool Agrees(SamplingMethod method, SamplingGridMode grid, const AxisForm& a,
            const Positions& wanted) {
  Positions at = OnGrid(grid, a.in, a.out);
  if (method == SamplingMethod::kNearestNeighbor) {
    return grid == SamplingGridMode::kDefault && Floors(at) == Floors(wanted);
  }
  constexpr double kStep = 1.0 / 2048;
  for (size_t i = 0; i < at.size(); ++i) {
    if (std::abs(at[i] - wanted[i]) > kStep) return false;
  }
  return true;
}

// One Resize unit, on the grid that samples where ONNX says.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  if (form.axes.empty()) return c.Out(node.outputs[0], x);
  ResizeParams p{.method = form.method, .h = c.DimsOf(x).h(), .w = c.DimsOf(x).w()};
  std::vector<Positions> wanted;
  for (const AxisForm& a : form.axes) {
    if (a.axis != Axis::kH && a.axis != Axis::kW) return c.Refuse(rule::kResizeAxes);
    (a.axis == Axis::kH ? p.h : p.w) = a.out;
    ANEMONE_ASSIGN_OR_RETURN(Positions at, Wanted(form, a, c));
    wanted.push_back(std::move(at));
  }
  for (SamplingGridMode grid : {SamplingGridMode::kDefault, SamplingGridMode::kUnalignedCorners,
                                SamplingGridMode::kStrictAlignedCorners}) {
    p.grid = grid;
    bool agrees = true;
    for (size_t i = 0; i < wanted.size(); ++i) {
      agrees = agrees && Agrees(form.method, grid, form.axes[i], wanted[i]);
    }
    if (!agrees) continue;
    ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(ResizeUnit(), p, {x}));
    return c.Out(node.outputs[0], y);
  }
  return c.NotLowered("resize on a grid that the sampler does not have");
}

// Along one axis y = x times a matrix of in rows and out columns: the axis is brought to C, where a
// 1x1 convolution contracts it.
absl::StatusOr<Operand> Multiplied(NetworkBuilder& c, Operand x, const AxisForm& a,
                                   const Positions& at) {
  Tensor kernel = Tensor::Zeros(DataType::kFloat, {a.out, a.in, 1, 1});
  math::AxisTaps taps = TapsOf(at, a.in);
  for (size_t i = 0; i < taps.indices.size(); ++i) {
    int64_t row = static_cast<int64_t>(i) / taps.taps;
    kernel.mutable_data<float>()[row * a.in + taps.indices[i]] += taps.weights[i];
  }
  ANEMONE_ASSIGN_OR_RETURN(x, SwapAxes(c, x, Axis::kC, a.axis));
  ANEMONE_ASSIGN_OR_RETURN(x, PointwiseConv(c, x, a.out, kernel, /*in_major=*/false, nullptr));
  return SwapAxes(c, x, Axis::kC, a.axis);
}

// The factor by which every element is repeated, if that is what `at` says.
std::optional<int64_t> RepeatFactor(const AxisForm& a, const Positions& at) {
  if (a.out % a.in != 0) return std::nullopt;
  if (Floors(at) != Floors(OnGrid(SamplingGridMode::kDefault, a.in, a.out))) return std::nullopt;
  return a.out / a.in;
}

// The software route along height and width, `at` the places of each. Its size is bounded: a matrix
// of more than 2^24 weights is not made.
absl::StatusOr<Operand> InSoftware(NetworkBuilder& c, Operand x, SamplingMethod method,
                                   absl::Span<const AxisForm> axes,
                                   absl::Span<const Positions> at) {
  int64_t times_h = 1, times_w = 1;  // repeats, done together after the rest
  for (size_t i = 0; i < axes.size(); ++i) {
    const AxisForm& a = axes[i];
    std::optional<int64_t> times =
        method == SamplingMethod::kNearestNeighbor ? RepeatFactor(a, at[i]) : std::nullopt;
    if (times) {
      (a.axis == Axis::kH ? times_h : times_w) = *times;
      continue;
    }
    if (a.in * a.out > (int64_t{1} << 24)) return c.NotLowered("resize by a very large matrix");
    ANEMONE_ASSIGN_OR_RETURN(x, Multiplied(c, x, a, at[i]));
  }
  while (times_h % 2 == 0 || times_w % 2 == 0) {
    const bool height = times_h % 2 == 0, width = times_w % 2 == 0;
    ANEMONE_ASSIGN_OR_RETURN(x, Doubled(c, x, height, width));
    if (height) times_h /= 2;
    if (width) times_w /= 2;
  }
  ANEMONE_ASSIGN_OR_RETURN(x, Repeated(c, x, Axis::kH, times_h, /*each=*/true));
  return Repeated(c, x, Axis::kW, times_w, /*each=*/true);
}

absl::Status LowerInSoftware(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  std::vector<Positions> wanted;
  for (const AxisForm& a : form.axes) {
    if (a.axis != Axis::kH && a.axis != Axis::kW) return c.Refuse(rule::kResizeAxes);
    ANEMONE_ASSIGN_OR_RETURN(Positions at, Wanted(form, a, c));
    wanted.push_back(std::move(at));
  }
  ANEMONE_ASSIGN_OR_RETURN(x, InSoftware(c, x, form.method, form.axes, wanted));
  return c.Out(node.outputs[0], x);
}

absl::StatusOr<SamplingGridMode> ReadGrid(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(bool aligned, c.Bool("align_corners", false));
  ANEMONE_ASSIGN_OR_RETURN(bool half_pixel, c.Bool("half_pixel_centers", false));
  ANEMONE_ASSIGN_OR_RETURN(std::string name,
                           c.Text("sampling_mode", aligned      ? "STRICT_ALIGN_CORNERS"
                                                   : half_pixel ? "UNALIGN_CORNERS"
                                                                : "DEFAULT"));
  for (const auto& [mode, grid] : kMilGrids) {
    if (name == mode) return grid;
  }
  return absl::InvalidArgumentError(absl::StrCat(c.call().op, ": no sampling_mode ", name));
}

// One of the last two axes: its size, or its factor, or that of `shape`.
absl::StatusOr<int64_t> ReadExtent(MilContext& c, const char* axis, int64_t in, int64_t listed) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t size, c.Int(absl::StrCat("target_size_", axis), listed));
  ANEMONE_ASSIGN_OR_RETURN(float factor, c.Number(absl::StrCat("scale_factor_", axis), 0));
  if (size == 0 && factor != 0) return Enlarged(in, factor);
  if (size == 0) return in;
  if (size < 1 || size > kMostResized) {
    return absl::InvalidArgumentError(
        absl::StrCat(c.call().op, ": want a ", axis, " of 1 to ", kMostResized));
  }
  return size;
}

// The sizes of the last axes that `resize` lists; only two may change.
absl::StatusOr<std::vector<int64_t>> ReadShape(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> listed, c.Ints("shape", {}));
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, c.Int("resized_dims", 2));
  std::vector<int64_t> shape = c.ShapeOf(0);
  if (listed.size() > shape.size() || count < 0 || count > static_cast<int64_t>(shape.size())) {
    return absl::InvalidArgumentError("resize: shape and resized_dims do not fit the input");
  }
  std::copy(listed.begin(), listed.end(), shape.end() - static_cast<int64_t>(listed.size()));
  for (size_t i = 0; i + 2 < shape.size(); ++i) {
    if (shape[i] != c.ShapeOf(0)[i]) return c.Refuse(rule::kResizeAxes);
  }
  return shape;
}

// Of the operations that sample height and width. Without a texture engine the compiler is known to
// take upsample_nearest_neighbor by a software route of its own; the others only as a rewrite
// (conflicts.md C-resize-m1; op_matrix.json).
absl::Status Build(MilContext& c) {
  const std::string& op = c.call().op;
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  if (c.rank(0) < 3) return absl::InvalidArgumentError(absl::StrCat(op, ": want rank 3 or more"));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ReadShape(c));
  const size_t rank = shape.size();
  const int64_t in_h = c.ShapeOf(0)[rank - 2], in_w = c.ShapeOf(0)[rank - 1];
  if (std::max(in_h, in_w) > kMostResized) return c.Refuse(rule::kMaxDimension);
  ANEMONE_ASSIGN_OR_RETURN(shape[rank - 2], ReadExtent(c, "height", in_h, shape[rank - 2]));
  ANEMONE_ASSIGN_OR_RETURN(shape[rank - 1], ReadExtent(c, "width", in_w, shape[rank - 1]));
  ANEMONE_ASSIGN_OR_RETURN(std::string mode,
                           c.Text("interpolation_mode",
                                  op.find("bilinear") == std::string::npos ? "NEAREST" : "LINEAR"));
  ResizeParams p{.method = mode.find("LINEAR") == std::string::npos
                               ? SamplingMethod::kNearestNeighbor
                               : SamplingMethod::kLinear,
                 .h = shape[rank - 2],
                 .w = shape[rank - 1]};
  ANEMONE_ASSIGN_OR_RETURN(p.grid, ReadGrid(c));
  // Rank 3 is C, H, W here.
  Dims dims = rank == 3 ? MakeDims(1, shape[0], in_h, in_w) : c.DimsOf(x);
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, dims));
  const bool by_compiler = op == "upsample_nearest_neighbor";
  const bool has_sampler = Judge(c.target(), c.route()).Has(Cap::kTextureEngine);
  if (!has_sampler && c.rewrites() && !by_compiler) c.SetRewritten();
  if (has_sampler || (!c.rewrites() && !by_compiler)) {
    ANEMONE_ASSIGN_OR_RETURN(x, c.Add(ResizeUnit(), p, {x}));
  } else if (!IsKnownGrid(p.grid)) {
    return c.NotLowered("resize on a grid whose places are not published");
  } else {
    const AxisForm axes[] = {{Axis::kH, in_h, p.h}, {Axis::kW, in_w, p.w}};
    const Positions at[] = {OnGrid(p.grid, in_h, p.h), OnGrid(p.grid, in_w, p.w)};
    ANEMONE_ASSIGN_OR_RETURN(x, InSoftware(c, x, p.method, axes, at));
  }
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, PlaceShape(shape)));
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {{"resize", Build},
                                        {"resize_bilinear", Build},
                                        {"resize_nearest_neighbor", Build},
                                        {"upsample_bilinear", Build},
                                        {"upsample_nearest_neighbor", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "Resize", .lower = Lower},
    {.op = "Resize", .rewritten = true, .lower = LowerInSoftware},
};

}  // namespace

KernelRows ResizeLoweringRows() { return {{&ResizeUnit()}, kLowerings, kOperations}; }

}  // namespace anemone
