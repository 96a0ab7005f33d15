// Pooling: maximum, average or root of the sum of squares over a sliding window. Facts:
// validators.json Pool; netplist.md Pooling; op_matrix.json l2_pool.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/exact_pool.h"
#include "engine/math/pool.h"
#include "engine/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/borders.h"
#include "kernels/input_view.h"
#include "kernels/node_inputs.h"
#include "kernels/padding.h"
#include "kernels/reduction.h"
#include "kernels/window.h"
#include "rule_table.h"  // generated
#include "tbb/parallel_for.h"

namespace anemone {
namespace {

// enums.json ZinIrPoolingType, its order. The first three are run, the rest is judged.
enum class Mode : uint8_t {
  kAvg,
  kMax,
  kL2,
  kChannelMax,
  kMin,
  kChannelMin,
  kL1,
  kSpatialAndChannelAvg,
  kSpatialAndChannelMax,
  kSpatialAndChannelMin,
  kSpatialArgMax,
  kChannelArgMax,
  kSpatialArgMin,
  kChannelArgMin,
};
absl::Span<const char* const> NamesOf(Mode) {
  static constexpr const char* kNames[] = {"Avg",
                                           "Max",
                                           "L2",
                                           "ChannelMax",
                                           "Min",
                                           "ChannelMin",
                                           "L1",
                                           "SpatialAndChannelAvg",
                                           "SpatialAndChannelMax",
                                           "SpatialAndChannelMin",
                                           "SpatialArgMax",
                                           "ChannelArgMax",
                                           "SpatialArgMin",
                                           "ChannelArgMin"};
  return kNames;
}

struct PoolingParams {
  Mode mode = Mode::kMax;
  bool exclude_padding = true;  // from the count of an average
  Along h, w, d;
  std::optional<PaddingMode> padding_mode;  // else the mode's own
};

PaddingMode PaddingModeOf(const PoolingParams& p) {
  if (p.padding_mode) return *p.padding_mode;
  if (p.mode == Mode::kMax) return PaddingMode::kNegative;
  return p.mode == Mode::kMin ? PaddingMode::kPositive : PaddingMode::kZero;
}

absl::StatusOr<Dims> Shape(const PoolingParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[Axis::kD] = p.d.WindowsIn(out.d());
  out[Axis::kH] = p.h.WindowsIn(out.h());
  out[Axis::kW] = p.w.WindowsIn(out.w());
  return out;
}

// A kernel of 1 is no window, so an axis of extent 1 may be left alone.
bool WindowFits(const Along& a, int64_t extent) { return a.kernel == 1 || a.kernel < extent; }

Verdict ValidatePaddingMode(const PoolingParams& p, Judge& judge) {
  const PaddingMode mode = PaddingModeOf(p);
  if (p.mode == Mode::kMax && mode != PaddingMode::kNegative) {
    return judge.Reject(rule::kPoolMaxPadding);
  }
  if (p.mode == Mode::kMin && mode != PaddingMode::kPositive) {
    return judge.Reject(rule::kPoolMinPadding);
  }
  if (p.mode == Mode::kL2 && mode != PaddingMode::kReplication && mode != PaddingMode::kZero) {
    return judge.Reject(rule::kPoolL2Padding);
  }
  return judge.Accept();
}

Verdict Validate(const PoolingParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  const Dims& dims = in[0].dims;
  if (!WindowFits(p.h, dims.h()) || !WindowFits(p.w, dims.w()) || !WindowFits(p.d, dims.d())) {
    return judge.Reject(rule::kPoolWindow);
  }
  for (const Along* a : {&p.h, &p.w, &p.d}) {
    if (std::max(a->pad_before, a->pad_after) >= a->kernel && a->pads() > 0) {
      bool has_text = route == Route::kMil && p.mode == Mode::kAvg && p.exclude_padding;
      return judge.Reject(has_text ? rule::kPoolExcludedPad : rule::kPoolPad);
    }
    if (a->stride == 3 && p.mode != Mode::kAvg) return judge.Reject(rule::kPoolStride3);
  }
  Verdict verdict = ValidatePaddingMode(p, judge);
  // Which target has which mode is not published.
  if (p.mode > Mode::kL2) verdict.status = Status::kUnknown;
  return verdict;
}

// One number for all sides, as MIL's pads of 0 are written.
constexpr Field<PoolingParams> kEverySide = {"Pad",
                                             [](const PoolingParams&) -> Json { return nullptr; },
                                             [](PoolingParams& p, const Json& from) {
                                               int64_t pad = 0;
                                               absl::Status status = Plain::Read(from, pad);
                                               for (Along* a : {&p.h, &p.w})
                                                 a->pad_before = a->pad_after = pad;
                                               return status;
                                             }};

bool IsAverage(const PoolingParams& p) { return p.mode == Mode::kAvg; }

constexpr Field<PoolingParams> kFields[] = {
    Required<&PoolingParams::mode>("Type"),
    AlongKey<PoolingParams, &PoolingParams::w, &Along::kernel>("KernelWidth", true),
    AlongKey<PoolingParams, &PoolingParams::h, &Along::kernel>("KernelHeight", true),
    AlongKey<PoolingParams, &PoolingParams::d, &Along::kernel>("KernelDepth"),
    StepKey<PoolingParams>(),
    kEverySide,
    AlongKey<PoolingParams, &PoolingParams::w, &Along::pad_before>("PadLeft"),
    AlongKey<PoolingParams, &PoolingParams::w, &Along::pad_after>("PadRight"),
    AlongKey<PoolingParams, &PoolingParams::h, &Along::pad_before>("PadTop"),
    AlongKey<PoolingParams, &PoolingParams::h, &Along::pad_after>("PadBot"),
    AlongKey<PoolingParams, &PoolingParams::d, &Along::pad_before>("PadFront"),
    AlongKey<PoolingParams, &PoolingParams::d, &Along::pad_after>("PadBack"),
    {"PaddingMode", [](const PoolingParams& p) -> Json { return Plain::Write(PaddingModeOf(p)); },
     [](PoolingParams& p, const Json& from) {
       return Plain::Read(from, p.padding_mode.emplace());
     }},
    Key<&PoolingParams::exclude_padding, Plain, IsAverage>("AverageCountExcludePadding"),
};

// Past every tensor, so that it stands for any longer window; CheckAlong takes it.
constexpr int64_t kLongestWindow = 1 << 28;

absl::Status Complete(PoolingParams& p, Bottoms, absl::Span<const Tensor>) {
  for (Along* a : {&p.h, &p.w, &p.d}) {
    a->kernel = std::min(a->kernel, kLongestWindow);
    ANEMONE_RETURN_IF_ERROR(CheckAlong(*a));
  }
  return absl::OkStatus();
}

absl::StatusOr<Prepared> Prepare(const PoolingParams& p, Bottoms, absl::Span<const Tensor>) {
  const bool pads_zero = PaddingModeOf(p) == PaddingMode::kZero || p.mode == Mode::kMax;
  if (p.mode > Mode::kL2 || p.d.kernel > 1 || p.d.stride > 1 || p.d.pads() > 0 || !pads_zero) {
    return absl::UnimplementedError(absl::StrCat("Pooling of type ", Plain::Write(p.mode).dump(),
                                                 ", along depth or with such padding, is judged "
                                                 "but not run"));
  }
  return Prepared();
}

math::PoolShape PoolShapeOf(const PoolingParams& p, const Dims& in, const Dims& out) {
  return {.planes = in.n() * in.d() * in.c(),
          .in_h = in.h(),
          .in_w = in.w(),
          .out_h = out.h(),
          .out_w = out.w(),
          .window = WindowOf(p.h, p.w)};
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

void Exact(const PoolingParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  const math::PoolShape shape = PoolShapeOf(p, in[0].dims, out.dims);
  if (p.mode == Mode::kMax) return math::MaxPool(shape, in[0].span(), out.span());  // pool-max
  if (p.mode == Mode::kL2) return math::ExactL2Pool(unit.numerics, shape, in[0].span(), out.span());
  math::ExactAveragePool(
      unit.numerics, shape,
      p.exclude_padding ? math::AverageDivisor::kInside : math::AverageDivisor::kInsideAndPads,
      in[0].span(), out.span());
}

absl::Status WriteMil(MilEmitter& e, const PoolingParams& p, const Unit& unit) {
  static constexpr const char* kOps[] = {"avg_pool", "max_pool", "l2_pool"};
  if (p.mode > Mode::kL2) return absl::UnimplementedError("no MIL operation pools in this mode");
  if (PaddingModeOf(p) != PaddingModeOf({.mode = p.mode})) {
    return absl::UnimplementedError("MIL's pools have one mode of padding each");
  }
  std::vector<const Along*> window = {&p.h, &p.w};
  if (e.rank() == kMaxRank) {
    window.insert(window.begin(), &p.d);
  } else if (p.d.kernel > 1 || p.d.pads() > 0) {
    return absl::UnimplementedError("a pool along a depth of 1");
  }
  std::vector<int64_t> kernel, strides, pad;
  for (const Along* a : window) {
    kernel.push_back(a->kernel);
    strides.push_back(a->stride);
    pad.insert(pad.end(), {a->pad_before, a->pad_after});
  }
  std::vector<MilArgument> arguments = {{"x", {e.In(0)}},
                                        {"kernel_sizes", {e.Ints(kernel)}},
                                        {"strides", {e.Ints(strides)}},
                                        {"pad_type", {e.Text("custom")}},
                                        {"pad", {e.Ints(pad)}},
                                        {"ceil_mode", {e.Bool(false)}}};
  if (p.mode == Mode::kAvg) {
    arguments.push_back({"exclude_padding_from_average", {e.Bool(p.exclude_padding)}});
  }
  e.Result(e.Emit(kOps[static_cast<int>(p.mode)], std::move(arguments), unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<PoolingParams>& Kind() {
  static const UnitKindOf<PoolingParams>& kind =
      *new UnitKindOf<PoolingParams>({.type = "Pooling",
                                      .bottoms = {1, 1, &rule::kPoolInputs},
                                      .complete = Complete,
                                      .shape = Shape,
                                      .validate = Validate,
                                      .fields = kFields,
                                      .mil = WriteMil,
                                      .prepare = Prepare,
                                      .compute = Compute,
                                      .exact = Exact});
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

// The unit has no key for it; the rule is the converter's.
absl::Status RefuseDilated(NetworkBuilder& c) {
  if (c.route() == Route::kMil) return c.Refuse(rule::kPoolDilated);
  return c.NotLowered("pooling with a dilation");
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
    if (dilations[i] != 1 && kernel[i] > 1) return RefuseDilated(c);
    Along& along = *places[spatial - 1 - i];
    along = {.kernel = kernel[i],
             .stride = strides[i],
             .pad_before = pads[i],
             .pad_after = pads[spatial + i]};
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
  return a.WindowsIn(extent) == 1 && a.kernel - a.pad_before >= extent;
}

// Pads become a frame of their own: zeros that count, or what never wins a maximum (but against a
// window of nothing but -infinity).
absl::StatusOr<Operand> TakeFrame(NetworkBuilder& c, const Operand& x, PoolingParams& p) {
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
// `to`: the output's dims.
absl::StatusOr<Operand> InParts(NetworkBuilder& c, Operand x, Form form, const Dims& to) {
  PoolingParams& p = form.params;
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
  for (Axis axis : thinned) {
    ANEMONE_ASSIGN_OR_RETURN(x, Sliced(c, x, axis, 0, to[axis], 3));
  }
  return x;
}

absl::Status LowerInParts(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(x, InParts(c, x, form, PlaceShape(to)));
  return c.Out(node.outputs[0], x);
}

absl::StatusOr<Mode> ReadMilMode(MilContext& c) {
  const std::string& op = c.call().op;
  ANEMONE_ASSIGN_OR_RETURN(std::string name, c.Text("mode", op.substr(0, op.find('_'))));
  // ne_pool and pe_pool name the unit that pools, not how.
  if (name == "max" || name == "ne" || name == "pe") return Mode::kMax;
  if (name == "avg") return Mode::kAvg;
  if (name == "l2") return Mode::kL2;
  return absl::InvalidArgumentError(absl::StrCat(op, ": want mode max, avg or l2, got ", name));
}

// What rounding the number of windows up adds behind.
void RoundUp(Along& a, int64_t in) {
  const int64_t left = (in + a.pads() - a.extent()) % a.stride;
  if (left > 0) a.pad_after += a.stride - left;
}

absl::StatusOr<PoolingParams> ReadCall(MilContext& c) {
  PoolingParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.mode, ReadMilMode(c));
  ANEMONE_ASSIGN_OR_RETURN(bool excluded, c.Bool("exclude_padding_from_average", false));
  p.exclude_padding = excluded || p.mode != Mode::kAvg;
  ANEMONE_ASSIGN_OR_RETURN(bool ceil, c.Bool("ceil_mode", false));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, c.Ints("kernel", {}));
  ANEMONE_ASSIGN_OR_RETURN(kernel, c.Ints("kernel_sizes", kernel));
  for (int64_t& extent : kernel) extent = std::min(extent, kLongestWindow);
  const size_t spatial = kernel.size();
  ANEMONE_RETURN_IF_ERROR(c.In(0).status());
  if (spatial < 1 || spatial > 3 || c.rank(0) != spatial + 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(c.call().op, ": want kernel_sizes for all axes but the first two"));
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Along> window, ReadWindow(c, kernel));
  Along* places[] = {&p.w, &p.h, &p.d};
  for (size_t i = 0; i < spatial; ++i) {
    if (window[i].dilation > 1 && window[i].kernel > 1) return RefuseDilated(c);
    window[i].dilation = 1;
    if (ceil) RoundUp(window[i], c.ShapeOf(0)[i + 2]);
    *places[spatial - 1 - i] = window[i];
  }
  return p;
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(PoolingParams p, ReadCall(c));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  const Bottom in = c.network().BottomOf(x);
  ANEMONE_ASSIGN_OR_RETURN(Dims to, Shape(p, {&in, 1}));
  // Asked here, for a window that does not fit leaves an empty output, which has words of its own.
  Verdict verdict = Validate(p, {&in, 1}, c.target(), c.route());
  const bool flat = p.mode == Mode::kAvg || p.mode == Mode::kMax;
  const bool empty = to.d() < 1 || to.h() < 1 || to.w() < 1;
  if (!verdict.accepted && (empty || !c.rewrites())) return c.Refuse(std::move(verdict));
  if (!verdict.accepted && flat && p.d.kernel == 1) {
    c.SetRewritten();
    ANEMONE_ASSIGN_OR_RETURN(x, InParts(c, x, Form{.params = p}, to));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), p, {x}));
  }
  std::vector<int64_t> shape = c.ShapeOf(0);
  const int64_t extents[] = {to.w(), to.h(), to.d()};
  for (size_t i = 2; i < shape.size(); ++i) shape[i] = extents[shape.size() - 1 - i];
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {{"max_pool", Build},
                                        {"avg_pool", Build},
                                        {"l2_pool", Build},
                                        {"ne_pool", Build},
                                        {"pe_pool", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "MaxPool", .lower = Lower},
    {.op = "MaxPool", .rewritten = true, .lower = LowerInParts},
    {.op = "AveragePool", .lower = Lower},
    {.op = "AveragePool", .rewritten = true, .lower = LowerInParts},
    {.op = "LpPool", .lower = Lower},
};

}  // namespace

KernelRows PoolingRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
