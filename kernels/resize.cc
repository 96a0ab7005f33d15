// Resize: sampling height and width on another grid. From A14 the texture engine does it. Before,
// the compiler has a software route, which the second lowering spells out: deconvolutions of stride
// 2 where every element is repeated, a matrix product along each axis elsewhere. Facts:
// validators.json Resize; conflicts.md C-resize-m1; enums.json ZinIrSamplingGridMode.
#include "engine/math/resize.h"

#include <algorithm>
#include <cmath>
#include <memory>
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
#include "kernels/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class Method { kNearest, kLinear };

// Where output i of `out` lies among the `in` elements of the input:
//   kDefault           i * in / out
//   kUnalignedCorners  (i + 0.5) * in / out - 0.5
//   kStrictAligned     i * (in - 1) / (out - 1), the first element if there is one output
// Nearest takes the element at or before it, linear the two around it.
enum class Grid { kDefault, kUnalignedCorners, kStrictAligned };

struct ResizeParams {
  Method method = Method::kNearest;
  Grid grid = Grid::kDefault;
  Dims dims;  // of the output
};

absl::StatusOr<Dims> Shape(const ResizeParams& p, Bottoms) { return p.dims; }

Verdict Validate(const ResizeParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  for (Axis axis : {Axis::kN, Axis::kD, Axis::kC}) {
    if (p.dims[axis] != in[0].dims[axis]) return judge.Reject(rule::kResizeAxes);
  }
  if (!judge.Has(Cap::kTextureEngine)) return judge.Reject(rule::kResizeTexture);
  return judge.Accept();
}

const char* MethodName(Method m) { return m == Method::kLinear ? "Linear" : "NearestNeighbor"; }

const char* GridName(Grid g) {
  switch (g) {
    case Grid::kUnalignedCorners:
      return "UnalignedCorners";
    case Grid::kStrictAligned:
      return "StrictAlignedCorners";
    case Grid::kDefault:
      break;
  }
  return "Default";
}

constexpr Field<ResizeParams> kFields[] = {
    {"OutputHeight", [](const ResizeParams& p) { return absl::StrCat(p.dims.h()); }},
    {"OutputWidth", [](const ResizeParams& p) { return absl::StrCat(p.dims.w()); }},
    {"SamplingMethodInfo", [](const ResizeParams& p) { return std::string(MethodName(p.method)); }},
    {"SamplingGridInfo", [](const ResizeParams& p) { return std::string(GridName(p.grid)); }},
};

// Positions in the input, by output element, inside [0, in - 1].
using Positions = std::vector<double>;

Positions OnGrid(Grid grid, int64_t in, int64_t out) {
  Positions at(out);
  for (int64_t i = 0; i < out; ++i) {
    double x = static_cast<double>(i);
    switch (grid) {
      case Grid::kDefault:
        at[i] = x * in / out;
        break;
      case Grid::kUnalignedCorners:
        at[i] = (x + 0.5) * in / out - 0.5;
        break;
      case Grid::kStrictAligned:
        at[i] = out == 1 ? 0 : x * (in - 1) / (out - 1);
        break;
    }
    at[i] = std::clamp<double>(at[i], 0, in - 1);
  }
  return at;
}

std::vector<int32_t> Floors(const Positions& at) {
  std::vector<int32_t> floors;
  for (double x : at) floors.push_back(static_cast<int32_t>(x));
  return floors;
}

math::AxisTaps TapsOf(const Positions& at, int64_t in) {
  math::AxisTaps taps{.taps = 2};
  for (double x : at) {
    int32_t first = static_cast<int32_t>(x);
    float share = static_cast<float>(x - first);
    taps.indices.push_back(first);
    taps.indices.push_back(std::min<int32_t>(first + 1, in - 1));
    taps.weights.push_back(1 - share);
    taps.weights.push_back(share);
  }
  return taps;
}

struct Tables {
  std::vector<int32_t> rows, columns;    // nearest
  math::AxisTaps row_taps, column_taps;  // linear
};

absl::StatusOr<Prepared> Prepare(const ResizeParams& p, Bottoms in, absl::Span<const Tensor>) {
  const Dims& x = in[0].dims;
  Positions rows = OnGrid(p.grid, x.h(), p.dims.h()), columns = OnGrid(p.grid, x.w(), p.dims.w());
  auto tables = std::make_shared<Tables>();
  if (p.method == Method::kNearest) {
    tables->rows = Floors(rows);
    tables->columns = Floors(columns);
  } else {
    tables->row_taps = TapsOf(rows, x.h());
    tables->column_taps = TapsOf(columns, x.w());
  }
  return tables;
}

math::ResizeShape PlanesOf(const Dims& x) {
  return {.planes = x.n() * x.d() * x.c(), .in_h = x.h(), .in_w = x.w()};
}

void Compute(const ResizeParams& p, const void* prepared, absl::Span<const ConstView> in,
             View out) {
  const Tables& tables = *static_cast<const Tables*>(prepared);
  math::ResizeShape shape = PlanesOf(in[0].dims);
  if (p.method == Method::kNearest) {
    math::ResizeNearest(shape, tables.rows, tables.columns, in[0].span(), out.span());
  } else {
    math::ResizeLinear(shape, tables.row_taps, tables.column_taps, in[0].span(), out.span());
  }
}

const UnitKindOf<ResizeParams>& Kind() {
  static const UnitKindOf<ResizeParams>& kind = *new UnitKindOf<ResizeParams>({.type = "Resize",
                                                                               .shape = Shape,
                                                                               .validate = Validate,
                                                                               .fields = kFields,
                                                                               .prepare = Prepare,
                                                                               .compute = Compute});
  return kind;
}

// Nearest upsampling by 2 as the compiler's clients write it: a channelwise deconvolution whose
// kernel is all ones (compiler_texts.json lowering_recipes, "nearest upsampling by 2^n").
struct DoublingParams {
  bool h = false, w = false;  // the axes that grow
};

absl::StatusOr<Dims> DoubledShape(const DoublingParams& p, Bottoms in) {
  Dims out = in[0].dims;
  if (p.h) out[Axis::kH] *= 2;
  if (p.w) out[Axis::kW] *= 2;
  return out;
}

constexpr Field<DoublingParams> kDoublingFields[] = {
    {"Type", [](const DoublingParams&) { return std::string("ChannelWiseDeConv"); }},
    {"KernelMode", [](const DoublingParams&) { return std::string("Unity"); }},
    {"KernelWidth", [](const DoublingParams& p) { return absl::StrCat(p.w ? 2 : 1); }},
    {"KernelHeight", [](const DoublingParams& p) { return absl::StrCat(p.h ? 2 : 1); }},
    {"Step", [](const DoublingParams& p) { return absl::StrCat(p.w ? 2 : 1, ",", p.h ? 2 : 1); }},
    {"PadLeft", [](const DoublingParams& p) { return absl::StrCat(p.w ? 1 : 0); }},
    {"PadTop", [](const DoublingParams& p) { return absl::StrCat(p.h ? 1 : 0); }},
};

void ComputeDoubled(const DoublingParams&, const void*, absl::Span<const ConstView> in, View out) {
  const Dims& x = in[0].dims;
  math::ResizeNearest(PlanesOf(x), Floors(OnGrid(Grid::kDefault, x.h(), out.dims.h())),
                      Floors(OnGrid(Grid::kDefault, x.w(), out.dims.w())), in[0].span(),
                      out.span());
}

const UnitKindOf<DoublingParams>& DoublingKind() {
  static const UnitKindOf<DoublingParams>& kind =
      *new UnitKindOf<DoublingParams>({.type = "Conv",
                                       .shape = DoubledShape,
                                       .fields = kDoublingFields,
                                       .compute = ComputeDoubled});
  return kind;
}

// The node's words about one axis.
struct AxisForm {
  Axis axis = Axis::kW;
  int64_t in = 1, out = 1;
  float scale = 1;
};

// Past the cap of every target; keeps tables small that are made before a target is asked.
constexpr int64_t kMostExtent = 1 << 20;

struct Form {
  Method method = Method::kNearest;
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
absl::StatusOr<Positions> Wanted(const Form& form, const AxisForm& a, LowerContext& c) {
  Positions at;
  for (int64_t i = 0; i < a.out; ++i) {
    std::optional<float> x = Coordinate(form.coordinates, a, i);
    if (x && form.method == Method::kNearest) x = Round(form.rounding, *x);
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
  form.method = mode == "linear" ? Method::kLinear : Method::kNearest;
  for (int64_t extent : from) {
    if (extent < 1) return c.Refuse(rule::kEmptyTensor);
  }
  int rank = static_cast<int>(from.size());
  std::vector<AxisForm> axes;
  for (int64_t at : listed) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, rank));
    if (to[axis] < 1) return c.Refuse(rule::kEmptyTensor);
    if (std::max(from[axis], to[axis]) > kMostExtent) return c.Refuse(rule::kMaxDimension);
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
bool Agrees(Method method, Grid grid, const AxisForm& a, const Positions& wanted) {
  Positions at = OnGrid(grid, a.in, a.out);
  if (method == Method::kNearest) {
    return grid == Grid::kDefault && Floors(at) == Floors(wanted);
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
  ResizeParams p{.method = form.method, .dims = c.DimsOf(x)};
  std::vector<Positions> wanted;
  for (const AxisForm& a : form.axes) {
    p.dims[a.axis] = a.out;
    ANEMONE_ASSIGN_OR_RETURN(Positions at, Wanted(form, a, c));
    wanted.push_back(std::move(at));
  }
  for (Grid grid : {Grid::kDefault, Grid::kUnalignedCorners, Grid::kStrictAligned}) {
    p.grid = grid;
    bool agrees = true;
    for (size_t i = 0; i < wanted.size(); ++i) {
      agrees = agrees && Agrees(form.method, grid, form.axes[i], wanted[i]);
    }
    if (!agrees) continue;
    ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(Kind(), p, {x}));
    return c.Out(node.outputs[0], y);
  }
  return c.NotLowered("resize on a grid that the sampler does not have");
}

// Along one axis y = x times a matrix of in rows and out columns: the axis is brought to C, where a
// 1x1 convolution contracts it.
absl::StatusOr<Operand> Multiplied(LowerContext& c, Operand x, const AxisForm& a,
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
  if (Floors(at) != Floors(OnGrid(Grid::kDefault, a.in, a.out))) return std::nullopt;
  return a.out / a.in;
}

// The software route. Its size is bounded: a matrix of more than 2^24 weights is not made.
absl::Status LowerInSoftware(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  int64_t times_h = 1, times_w = 1;  // repeats, done together after the rest
  for (const AxisForm& a : form.axes) {
    if (a.axis != Axis::kH && a.axis != Axis::kW) return c.Refuse(rule::kResizeAxes);
    ANEMONE_ASSIGN_OR_RETURN(Positions at, Wanted(form, a, c));
    std::optional<int64_t> times =
        form.method == Method::kNearest ? RepeatFactor(a, at) : std::nullopt;
    if (times) {
      (a.axis == Axis::kH ? times_h : times_w) = *times;
      continue;
    }
    if (a.in * a.out > (int64_t{1} << 24)) return c.NotLowered("resize by a very large matrix");
    ANEMONE_ASSIGN_OR_RETURN(x, Multiplied(c, x, a, at));
  }
  while (times_h % 2 == 0 || times_w % 2 == 0) {
    DoublingParams p{.h = times_h % 2 == 0, .w = times_w % 2 == 0};
    ANEMONE_ASSIGN_OR_RETURN(x, c.Add(DoublingKind(), p, {x}));
    if (p.h) times_h /= 2;
    if (p.w) times_w /= 2;
  }
  ANEMONE_ASSIGN_OR_RETURN(x, Repeated(c, x, Axis::kH, times_h, /*each=*/true));
  ANEMONE_ASSIGN_OR_RETURN(x, Repeated(c, x, Axis::kW, times_w, /*each=*/true));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Resize", .lower = Lower},
    {.op = "Resize", .rewritten = true, .lower = LowerInSoftware},
};

}  // namespace

KernelRows ResizeRows() { return {{&Kind(), &DoublingKind()}, kLowerings}; }

}  // namespace anemone
