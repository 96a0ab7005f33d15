// How ONNX's Resize and MIL's resize and upsample operations become units. For a target without a
// texture engine, the lowering adds the units of the compiler's software route: deconvolutions of
// stride 2 if every element is repeated, otherwise a matrix product along each axis
// (validators.json Resize; conflicts.md C-resize-m1).
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/conv/conv.h"
#include "kernels/node_inputs.h"
#include "kernels/resize/resize.h"
#include "kernels/resize/resize_form.h"
#include "kernels/shared/axis_matrix.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/broadcast.h"
#include "kernels/units/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// The positions at which ONNX samples axis `a`, in [0, in - 1]. For nearest they are rounded.
absl::StatusOr<Positions> Wanted(const ResizeForm& form, const ResizeAxis& a, NetworkBuilder& c) {
  Positions at;
  for (int64_t i = 0; i < a.out; ++i) {
    std::optional<float> x = ResizePlace(form.coordinates, a, i);
    if (x && form.method == SamplingMethod::kNearestNeighbor) x = RoundedPlace(form.rounding, *x);
    if (!x) {
      return c.NotLowered(absl::StrCat("Resize with coordinate_transformation_mode '",
                                       form.coordinates, "' and nearest_mode '", form.rounding,
                                       "'"));
    }
    // A scale near 0 may give NaN, which becomes the first element too.
    at.push_back(*x > 0 ? std::min<double>(*x, a.in - 1) : 0);
  }
  return at;
}

// Reads the forms that the unit and its software route can compute: nearest or linear, without
// antialiasing, and without positions outside of the image.
absl::StatusOr<ResizeForm> ReadPlainForm(const Node& node, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(ResizeForm form, ReadResizeForm(node, c));
  if (form.mode != "nearest" && form.mode != "linear") {
    return c.NotLowered(absl::StrCat("Resize in mode ", form.mode, ", as one unit"));
  }
  if (form.antialias) return c.NotLowered("Resize with antialias, as one unit");
  if (form.coordinates == kCropAndResize) {
    return c.NotLowered("Resize with tf_crop_and_resize, as one unit");
  }
  return form;
}

// Whether sampling on `grid` gives the positions `wanted`. For nearest, only the default grid is
// accepted, because the sampler's rounding on the other grids is not published. For linear,
// positions may differ by 1 / 2048, the precision of an fp16 fraction.
bool Agrees(SamplingMethod method, SamplingGridMode grid, const ResizeAxis& a,
            const Positions& wanted) {
  Positions at = OnGrid(grid, a.in, a.out);
  if (method == SamplingMethod::kNearestNeighbor) {
    return grid == SamplingGridMode::kDefault && Floors(at) == Floors(wanted);
  }
  for (size_t i = 0; i < at.size(); ++i) {
    if (std::abs(at[i] - wanted[i]) > fp16::kRoundingError) return false;
  }
  return true;
}

// One Resize unit with the grid that has ONNX's positions.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ResizeForm form, ReadPlainForm(node, c));
  Operand x = c.In(node.inputs[0]);
  if (form.axes.empty()) return c.Out(node.outputs[0], x);
  ResizeParams p{.method = form.method, .h = c.DimsOf(x).h(), .w = c.DimsOf(x).w()};
  std::vector<Positions> wanted;
  for (const ResizeAxis& a : form.axes) {
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
    Operand y = c.Add(ResizeUnit(), p, {x});
    return c.Out(node.outputs[0], y);
  }
  return c.NotLowered("Resize at positions that no sampling grid of the Resize unit has");
}

// Linear interpolation along one axis, as a product with a matrix.
Operand Multiplied(NetworkBuilder& c, Operand x, const ResizeAxis& a, const Positions& at) {
  Tensor kernel = Tensor::Zeros(DataType::kFloat, {a.out, a.in, 1, 1});
  math::AxisTaps taps = TapsOf(at, a.in);
  for (size_t i = 0; i < taps.indices.size(); ++i) {
    int64_t row = static_cast<int64_t>(i) / taps.taps;
    kernel.mutable_data<float>()[row * a.in + taps.indices[i]] += taps.weights[i];
  }
  return TimesMatrix(c, x, a.axis, kernel);
}

// The factor by which every element is repeated, or nullopt if `at` does not repeat all elements
// equally.
std::optional<int64_t> RepeatFactor(const ResizeAxis& a, const Positions& at) {
  if (a.out % a.in != 0) return std::nullopt;
  if (Floors(at) != Floors(OnGrid(SamplingGridMode::kDefault, a.in, a.out))) return std::nullopt;
  return a.out / a.in;
}

// The software route along height and width; `at` has the positions for each of `axes`. Not lowered
// if a matrix would have more than 2^24 weights.
Operand InSoftware(NetworkBuilder& c, Operand x, SamplingMethod method,
                   absl::Span<const ResizeAxis> axes, absl::Span<const Positions> at) {
  int64_t times_h = 1, times_w = 1;  // repeats, which are done together at the end
  for (size_t i = 0; i < axes.size(); ++i) {
    const ResizeAxis& a = axes[i];
    std::optional<int64_t> times =
        method == SamplingMethod::kNearestNeighbor ? RepeatFactor(a, at[i]) : std::nullopt;
    if (times) {
      (a.axis == Axis::kH ? times_h : times_w) = *times;
      continue;
    }
    if (a.in * a.out > MostMatrixElements()) {
      return RefuseOverLimit(c, ModelLimit::kMatrixElements, "Resize whose matrix would have");
    }
    x = Multiplied(c, x, a, at[i]);
  }
  while (times_h % 2 == 0 || times_w % 2 == 0) {
    const bool height = times_h % 2 == 0, width = times_w % 2 == 0;
    x = Doubled(c, x, height, width);
    if (height) times_h /= 2;
    if (width) times_w /= 2;
  }
  x = Repeated(c, x, Axis::kH, times_h, /*each=*/true);
  return Repeated(c, x, Axis::kW, times_w, /*each=*/true);
}

absl::Status LowerInSoftware(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ResizeForm form, ReadPlainForm(node, c));
  Operand x = c.In(node.inputs[0]);
  std::vector<Positions> wanted;
  for (const ResizeAxis& a : form.axes) {
    if (a.axis != Axis::kH && a.axis != Axis::kW) return c.Refuse(rule::kResizeAxes);
    ANEMONE_ASSIGN_OR_RETURN(Positions at, Wanted(form, a, c));
    wanted.push_back(std::move(at));
  }
  x = InSoftware(c, x, form.method, form.axes, wanted);
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
  return absl::InvalidArgumentError(
      absl::StrCat(c.call().op, ", attribute 'sampling_mode': there is no mode '", name, "'"));
}

// The extent of one of the last two axes: from its size, else from `listed` (attribute `shape`),
// else from its factor; `in` if there are none.
absl::StatusOr<int64_t> ReadExtent(MilContext& c, const char* axis, int64_t in, int64_t listed) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t size, c.Int(absl::StrCat("target_size_", axis), listed));
  ANEMONE_ASSIGN_OR_RETURN(float factor, c.Number(absl::StrCat("scale_factor_", axis), 0));
  if (size == 0 && factor != 0) return Enlarged(in, factor);
  if (size == 0) return in;
  if (size < 1 || size > kTableBound) {
    return absl::InvalidArgumentError(
        absl::StrCat(c.call().op, ": want a ", axis, " in 1..", kTableBound));
  }
  return size;
}

// The output shape according to attribute `shape` of `resize`, which lists the last axes. Only the
// last two may change.
absl::StatusOr<std::vector<int64_t>> ReadShape(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> listed, c.Ints("shape", {}));
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, c.Int("resized_dims", 2));
  std::vector<int64_t> shape = c.ShapeOf(0);
  if (listed.size() > shape.size() || count < 0 || count > static_cast<int64_t>(shape.size())) {
    return absl::InvalidArgumentError(
        "resize: want a shape and resized_dims of at most the rank of the input");
  }
  std::copy(listed.begin(), listed.end(), shape.end() - static_cast<int64_t>(listed.size()));
  for (size_t i = 0; i + 2 < shape.size(); ++i) {
    if (shape[i] != c.ShapeOf(0)[i]) return c.Refuse(rule::kResizeAxes);
  }
  return shape;
}

// Builds the MIL operations that sample height and width. On a target without a texture engine, the
// compiler is known to have a software route for upsample_nearest_neighbor; the other operations
// work only as a rewrite (conflicts.md C-resize-m1; op_matrix.json).
absl::Status Build(MilContext& c) {
  const std::string& op = c.call().op;
  Operand x = c.In(0);
  if (c.rank(0) < 3) return absl::InvalidArgumentError(absl::StrCat(op, ": want rank 3 or more"));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ReadShape(c));
  const size_t rank = shape.size();
  const int64_t in_h = c.ShapeOf(0)[rank - 2], in_w = c.ShapeOf(0)[rank - 1];
  if (std::max(in_h, in_w) > kTableBound) return c.Refuse(rule::kMaxDimension);
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
  x = ReshapeToDims(c, x, dims);
  const bool by_compiler = op == "upsample_nearest_neighbor";
  const bool has_sampler = Judge(c.target(), c.route()).Has(Cap::kTextureEngine);
  if (!has_sampler && c.rewrites() && !by_compiler) c.SetRewritten();
  if (has_sampler || (!c.rewrites() && !by_compiler)) {
    x = c.Add(ResizeUnit(), p, {x});
  } else if (!IsKnownGrid(p.grid)) {
    return c.NotLowered("resize on a sampling grid whose positions are not published");
  } else {
    const ResizeAxis axes[] = {{Axis::kH, in_h, p.h}, {Axis::kW, in_w, p.w}};
    const Positions at[] = {OnGrid(p.grid, in_h, p.h), OnGrid(p.grid, in_w, p.w)};
    x = InSoftware(c, x, p.method, axes, at);
  }
  x = ReshapeToDims(c, x, PlaceShape(shape));
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
