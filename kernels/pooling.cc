// Pooling: maximum, average or root of the sum of squares over a sliding window. Facts:
// validators.json Pool; netplist.md Pooling; op_matrix.json l2_pool.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/pool.h"
#include "kernels/attributes.h"
#include "kernels/input_view.h"
#include "kernels/node_inputs.h"
#include "kernels/padding.h"
#include "kernels/reduction.h"
#include "rule_table.h"  // generated
#include "tbb/parallel_for.h"

namespace anemone {
namespace {

enum class Mode { kMax, kAvg, kL2 };

// Along one spatial axis.
struct Along {
  int64_t kernel = 1, stride = 1, pad_before = 0, pad_after = 0;
  int64_t pads() const { return pad_before + pad_after; }
};

struct PoolingParams {
  Mode mode = Mode::kMax;
  bool exclude_padding = true;  // from the count of an average
  Along h, w;
};

int64_t OutExtent(const Along& a, int64_t in) {
  int64_t span = in + a.pads() - a.kernel;
  return span < 0 ? 0 : span / a.stride + 1;
}

absl::StatusOr<Dims> Shape(const PoolingParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[Axis::kH] = OutExtent(p.h, out.h());
  out[Axis::kW] = OutExtent(p.w, out.w());
  return out;
}

// A kernel of 1 is no window, so an axis of extent 1 may be left alone.
bool WindowFits(const Along& a, int64_t extent) { return a.kernel == 1 || a.kernel < extent; }

Verdict Validate(const PoolingParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!WindowFits(p.h, in[0].dims.h()) || !WindowFits(p.w, in[0].dims.w())) {
    return judge.Reject(rule::kPoolWindow);
  }
  for (const Along* a : {&p.h, &p.w}) {
    if (std::max(a->pad_before, a->pad_after) >= a->kernel && a->pads() > 0) {
      bool has_text = route == Route::kMil && p.mode == Mode::kAvg && p.exclude_padding;
      return judge.Reject(has_text ? rule::kPoolExcludedPad : rule::kPoolPad);
    }
    if (a->stride == 3 && p.mode != Mode::kAvg) return judge.Reject(rule::kPoolStride3);
  }
  return judge.Accept();
}

std::string ShowMode(const PoolingParams& p) {
  return p.mode == Mode::kMax ? "Max" : p.mode == Mode::kAvg ? "Avg" : "L2";
}

constexpr Field<PoolingParams> kFields[] = {
    {"Type", ShowMode},
    {"KernelWidth", [](const PoolingParams& p) { return absl::StrCat(p.w.kernel); }},
    {"KernelHeight", [](const PoolingParams& p) { return absl::StrCat(p.h.kernel); }},
    {"Step",
     [](const PoolingParams& p) { return absl::StrCat(p.w.stride, ",", p.h.stride, ",1"); }},
    {"PadLeft", [](const PoolingParams& p) { return absl::StrCat(p.w.pad_before); }},
    {"PadRight", [](const PoolingParams& p) { return absl::StrCat(p.w.pad_after); }},
    {"PadTop", [](const PoolingParams& p) { return absl::StrCat(p.h.pad_before); }},
    {"PadBot", [](const PoolingParams& p) { return absl::StrCat(p.h.pad_after); }},
    {"PaddingMode",
     [](const PoolingParams& p) {
       return std::string(p.mode == Mode::kMax ? "Negative" : "Zero");
     }},
    {"AverageCountExcludePadding",
     [](const PoolingParams& p) { return std::string(p.exclude_padding ? "true" : "false"); }},
};

math::PoolShape PoolShapeOf(const PoolingParams& p, const Dims& in, const Dims& out) {
  return {.planes = in.n() * in.d() * in.c(),
          .in_h = in.h(),
          .in_w = in.w(),
          .out_h = out.h(),
          .out_w = out.w(),
          .window = {.kernel_h = p.h.kernel,
                     .kernel_w = p.w.kernel,
                     .stride_h = p.h.stride,
                     .stride_w = p.w.stride,
                     .pad_top = p.h.pad_before,
                     .pad_left = p.w.pad_before,
                     .pad_bottom = p.h.pad_after,
                     .pad_right = p.w.pad_after}};
}

// Row by row in fp32; rare enough to stay plain.
void L2Pool(const math::PoolShape& s, const math::Half* x, math::Half* y) {
  auto inside = [](int64_t at, int64_t stride, int64_t pad, int64_t kernel, int64_t extent) {
    int64_t first = at * stride - pad;
    return std::pair(std::max<int64_t>(first, 0), std::min(first + kernel, extent));
  };
  tbb::parallel_for(int64_t{0}, s.planes * s.out_h, [&](int64_t row) {
    const math::Half* plane = x + row / s.out_h * s.in_h * s.in_w;
    auto [top, bottom] =
        inside(row % s.out_h, s.window.stride_h, s.window.pad_top, s.window.kernel_h, s.in_h);
    for (int64_t j = 0; j < s.out_w; ++j) {
      auto [left, right] =
          inside(j, s.window.stride_w, s.window.pad_left, s.window.kernel_w, s.in_w);
      float sum = 0;
      for (int64_t h = top; h < bottom; ++h) {
        for (int64_t w = left; w < right; ++w) {
          float value = math::ToFloat(plane[h * s.in_w + w]);
          sum += value * value;
        }
      }
      y[row * s.out_w + j] = math::ToHalf(std::sqrt(sum));
    }
  });
}

void Compute(const PoolingParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::PoolShape shape = PoolShapeOf(p, in[0].dims, out.dims);
  if (p.mode == Mode::kMax) {
    math::MaxPool(shape, in[0].span(), out.span());
  } else if (p.mode == Mode::kAvg) {
    auto divisor =
        p.exclude_padding ? math::AverageDivisor::kInside : math::AverageDivisor::kInsideAndPads;
    math::AveragePool(shape, divisor, in[0].span(), out.span());
  } else {
    L2Pool(shape, in[0].data, out.data);
  }
}

const UnitKindOf<PoolingParams>& Kind() {
  static const UnitKindOf<PoolingParams>& kind =
      *new UnitKindOf<PoolingParams>({.type = "Pooling",
                                      .shape = Shape,
                                      .validate = Validate,
                                      .fields = kFields,
                                      .compute = Compute});
  return kind;
}

constexpr int64_t kMostWindow = 1 << 30;  // sums of a few stay far from overflow

// A node's pool. Where ceil_mode lets the last window reach past the padding, `past_h` and `past_w`
// say how far; those elements count for nothing.
struct Form {
  PoolingParams params;
  int64_t past_h = 0, past_w = 0;
};

// Pads of auto_pad, and how far past them the last window reaches.
int64_t SettlePads(const std::string& auto_pad, Along& along, int64_t in, int64_t out) {
  int64_t reach = (out - 1) * along.stride + along.kernel;
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    int64_t total = std::max<int64_t>(reach - in, 0);
    along.pad_before = auto_pad == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
    along.pad_after = total - along.pad_before;
  } else if (auto_pad == "VALID") {
    along.pad_before = along.pad_after = 0;
  }
  return std::max<int64_t>(reach - (in + along.pads()), 0);
}

absl::Status ReadMode(const Node& node, LowerContext& c, Attributes& a, PoolingParams& p) {
  if (node.op_type == "MaxPool") {
    a.Ignore("storage_order");  // of the indices, which we do not give
    return absl::OkStatus();
  }
  if (node.op_type == "AveragePool") {
    p.mode = Mode::kAvg;
    ANEMONE_ASSIGN_OR_RETURN(int64_t counted, a.Int("count_include_pad", 0));
    p.exclude_padding = counted == 0;
    return absl::OkStatus();
  }
  p.mode = Mode::kL2;
  ANEMONE_ASSIGN_OR_RETURN(int64_t power, a.Int("p", 2));
  if (power != 2) return c.NotLowered("LpPool whose p is not 2");
  return absl::OkStatus();
}

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (IsRead(c.view(), node, 1)) return c.NotLowered("the indices of a maximum");
  Form form;
  Attributes a(node);
  ANEMONE_RETURN_IF_ERROR(ReadMode(node, c, a, form.params));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, a.Ints("kernel_shape", {}));
  size_t spatial = kernel.size();
  std::vector<int64_t> ones(spatial, 1), no_pads(2 * spatial, 0);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> strides, a.Ints("strides", ones));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> dilations, a.Ints("dilations", ones));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> pads, a.Ints("pads", no_pads));
  ANEMONE_ASSIGN_OR_RETURN(std::string auto_pad, a.String("auto_pad", "NOTSET"));
  a.Ignore("ceil_mode");  // the output's shape says it
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  if (strides.size() != spatial || dilations.size() != spatial || pads.size() != 2 * spatial ||
      from.size() != spatial + 2 || to.size() != spatial + 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("strides, dilations and pads must fit a kernel with ", spatial,
                     " spatial axes; run the ONNX checker on the model"));
  }
  if (spatial < 1 || spatial > 2) return c.NotLowered("3-D pooling");
  Along* places[] = {&form.params.w, &form.params.h};
  int64_t* past[] = {&form.past_w, &form.past_h};
  for (size_t i = 0; i < spatial; ++i) {
    auto [least, most] = std::minmax({kernel[i] - 1, strides[i] - 1, pads[i], pads[spatial + i]});
    if (least < 0 || most > kMostWindow) {
      return absl::InvalidArgumentError(
          absl::StrCat("kernel and strides: want 1 to ", kMostWindow,
                       ", and pads of at least 0; run the ONNX checker on the model"));
    }
    if (dilations[i] != 1 && kernel[i] > 1) return c.Refuse(rule::kPoolDilated);
    Along& along = *places[spatial - 1 - i];
    along = {kernel[i], strides[i], pads[i], pads[spatial + i]};
    *past[spatial - 1 - i] = SettlePads(auto_pad, along, from[i + 2], to[i + 2]);
  }
  return form;
}

// Makes what ceil_mode reaches past ordinary padding. For an average it must not count, so no
// other padding may count either.
void TakePast(Form& form) {
  PoolingParams& p = form.params;
  if (form.past_h + form.past_w == 0) return;
  p.exclude_padding = true;
  p.h.pad_after += std::exchange(form.past_h, 0);
  p.w.pad_after += std::exchange(form.past_w, 0);
}

bool CountsPads(const PoolingParams& p) {
  return p.mode == Mode::kAvg && !p.exclude_padding && p.h.pads() + p.w.pads() > 0;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  if (CountsPads(form.params) && form.past_h + form.past_w > 0) {
    return c.NotLowered("ceil_mode with padding that counts, as one unit");
  }
  TakePast(form);
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(Kind(), form.params, {x}));
  return c.Out(node.outputs[0], y);
}

// The one window holds the whole axis.
bool Covers(const Along& a, int64_t extent) {
  return OutExtent(a, extent) == 1 && a.kernel - a.pad_before >= extent;
}

// Pads become a frame of their own: zeros that count, or what never wins a maximum (but against a
// window of nothing but -infinity).
absl::StatusOr<Operand> TakeFrame(LowerContext& c, const Operand& x, PoolingParams& p) {
  constexpr float kLowest = -65504;
  const Dims& dims = c.DimsOf(x);
  auto too_wide = [](const Along& a, int64_t extent) {
    return !WindowFits(a, extent) && !Covers(a, extent);
  };
  bool max_needs = p.mode == Mode::kMax && (too_wide(p.h, dims.h()) || too_wide(p.w, dims.w()));
  if (!CountsPads(p) && !max_needs) return x;
  SpatialPads frame{p.h.pad_before, p.h.pad_after, p.w.pad_before, p.w.pad_after};
  for (Along* a : {&p.h, &p.w}) a->pad_before = a->pad_after = 0;
  return Framed(c, x, frame, p.mode == Mode::kMax ? kLowest : 0);
}

// What the validator does not take as one unit, in parts: a frame for padding, a Reduction where a
// window holds a whole axis, a pool for the other axis, and a view for a maximum's stride of 3.
absl::Status LowerInParts(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  PoolingParams& p = form.params;
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  if (CountsPads(p)) {
    ANEMONE_ASSIGN_OR_RETURN(x, TakeFrame(c, x, p));
  }
  TakePast(form);
  ANEMONE_ASSIGN_OR_RETURN(x, TakeFrame(c, x, p));

  std::vector<Axis> whole, thinned;
  for (auto [axis, along] : {std::pair(Axis::kH, &p.h), std::pair(Axis::kW, &p.w)}) {
    if (Covers(*along, c.DimsOf(x)[axis])) {
      whole.push_back(axis);
      *along = Along{};
    } else if (p.mode == Mode::kMax && along->stride == 3) {
      thinned.push_back(axis);
      along->stride = 1;
    }
  }
  ReduceType type = p.mode == Mode::kMax ? ReduceType::kMax : ReduceType::kAvg;
  ANEMONE_ASSIGN_OR_RETURN(x, Reduced(c, x, type, whole));
  if (whole.size() < 2) {
    ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), p, {x}));
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  for (Axis axis : thinned) {
    ANEMONE_ASSIGN_OR_RETURN(x, Sliced(c, x, axis, 0, PlaceShape(to)[axis], 3));
  }
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "MaxPool", .lower = Lower},
    {.op = "MaxPool", .rewritten = true, .lower = LowerInParts},
    {.op = "AveragePool", .lower = Lower},
    {.op = "AveragePool", .rewritten = true, .lower = LowerInParts},
    {.op = "LpPool", .lower = Lower},
};

}  // namespace

KernelRows PoolingRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
