// Pooling: maximum, average or root of the sum of squares over a sliding window. Facts:
// validators.json Pool; netplist.md Pooling; op_matrix.json l2_pool.
#include "kernels/pooling/pooling.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/shared/bounds.h"
#include "math/conv/pool.h"
#include "math/core/parallel.h"
#include "math/exact/exact_pool.h"
#include "rule_table.h"  // generated

namespace anemone {

absl::Span<const char* const> NamesOf(PoolingMode) {
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

namespace {

PaddingMode PaddingModeOf(const PoolingParams& p) {
  if (p.padding_mode) return *p.padding_mode;
  if (p.mode == PoolingMode::kMax) return PaddingMode::kNegative;
  return p.mode == PoolingMode::kMin ? PaddingMode::kPositive : PaddingMode::kZero;
}

absl::StatusOr<Dims> Shape(const PoolingParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[Axis::kD] = p.d.WindowsIn(out.d());
  out[Axis::kH] = p.h.WindowsIn(out.h());
  out[Axis::kW] = p.w.WindowsIn(out.w());
  return out;
}

Verdict ValidatePaddingMode(const PoolingParams& p, Judge& judge) {
  const PaddingMode mode = PaddingModeOf(p);
  if (p.mode == PoolingMode::kMax && mode != PaddingMode::kNegative) {
    return judge.Reject(rule::kPoolMaxPadding);
  }
  if (p.mode == PoolingMode::kMin && mode != PaddingMode::kPositive) {
    return judge.Reject(rule::kPoolMinPadding);
  }
  if (p.mode == PoolingMode::kL2 && mode != PaddingMode::kReplication &&
      mode != PaddingMode::kZero) {
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
      bool has_text = route == Route::kMil && p.mode == PoolingMode::kAvg && p.exclude_padding;
      return judge.Reject(has_text ? rule::kPoolExcludedPad : rule::kPoolPad);
    }
    if (a->stride == rule::kPoolStride3.limit && p.mode != PoolingMode::kAvg) {
      return judge.Reject(rule::kPoolStride3);
    }
  }
  Verdict verdict = ValidatePaddingMode(p, judge);
  // It is not published which targets have the other modes.
  if (p.mode > PoolingMode::kL2) verdict.status = Status::kUnknown;
  return verdict;
}

// One number for the pads of all sides; MIL's pads of 0 are written like this.
constexpr Field<PoolingParams> kEverySide = {"Pad",
                                             [](const PoolingParams&) -> Json { return nullptr; },
                                             [](PoolingParams& p, const Json& from) {
                                               int64_t pad = 0;
                                               absl::Status status = Plain::Read(from, pad);
                                               for (Along* a : {&p.h, &p.w})
                                                 a->pad_before = a->pad_after = pad;
                                               return status;
                                             }};

bool IsAverage(const PoolingParams& p) { return p.mode == PoolingMode::kAvg; }

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

absl::Status Complete(PoolingParams& p, Bottoms, absl::Span<const Tensor>) {
  for (Along* a : {&p.h, &p.w, &p.d}) {
    a->kernel = std::min(a->kernel, kAttributeBound);
    ANEMONE_RETURN_IF_ERROR(CheckAlong(*a));
  }
  return absl::OkStatus();
}

absl::StatusOr<Prepared> Prepare(const PoolingParams& p, Bottoms, absl::Span<const Tensor>) {
  const bool pads_zero = PaddingModeOf(p) == PaddingMode::kZero || p.mode == PoolingMode::kMax;
  if (p.mode > PoolingMode::kL2 || p.d.kernel > 1 || p.d.stride > 1 || p.d.pads() > 0 ||
      !pads_zero) {
    return absl::UnimplementedError(
        absl::StrCat("Pooling of type ", Plain::Write(p.mode).dump(),
                     ", along depth or with this padding mode, can be checked but not run"));
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

// Whether each result is the maximum of elements: by Validate() every window has one.
bool Selects(const PoolingParams& p) { return p.mode == PoolingMode::kMax; }

math::AverageDivisor DivisorOf(const PoolingParams& p) {
  return p.exclude_padding ? math::AverageDivisor::kInside : math::AverageDivisor::kInsideAndPads;
}

// Computed row by row in fp32. It is too rare to be optimized.
void L2Pool(const math::PoolShape& s, const math::Half* x, math::Half* y,
            const math::Epilogue& epilogue) {
  auto inside = [](int64_t at, int64_t stride, int64_t pad, int64_t kernel, int64_t extent) {
    int64_t first = at * stride - pad;
    return std::pair(std::max<int64_t>(first, 0), std::min(first + kernel, extent));
  };
  const auto compute_row = [&](int64_t row) {
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
  };
  const int64_t row_cost = s.out_w * s.window.kernel_h * s.window.kernel_w;
  math::ParallelForItems(s.planes * s.out_h, row_cost, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) compute_row(row);
    epilogue.FinishRuns(y + begin * s.out_w, 1, (end - begin) * s.out_w, 0);
  });
}

void Compute(const PoolingParams& p, const void*, absl::Span<const ConstView> in, View out,
             const math::Epilogue& epilogue) {
  math::PoolShape shape = PoolShapeOf(p, in[0].dims, out.dims);
  if (p.mode == PoolingMode::kMax) {
    math::MaxPool(shape, in[0].span(), out.span(), epilogue);
  } else if (p.mode == PoolingMode::kAvg) {
    math::AveragePool(shape, DivisorOf(p), in[0].span(), out.span(), epilogue);
  } else {
    L2Pool(shape, in[0].data, out.data, epilogue);
  }
}

void Exact(const PoolingParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  const math::PoolShape shape = PoolShapeOf(p, in[0].dims, out.dims);
  if (p.mode == PoolingMode::kMax)
    return math::MaxPool(shape, in[0].span(), out.span());  // pool-max
  if (p.mode == PoolingMode::kL2)
    return math::ExactL2Pool(unit.numerics, shape, in[0].span(), out.span());
  math::ExactAveragePool(unit.numerics, shape, DivisorOf(p), in[0].span(), out.span());
}

absl::Status WriteMil(const PoolingParams& p, const Unit& unit, MilEmitter& e) {
  static constexpr const char* kOps[] = {"avg_pool", "max_pool", "l2_pool"};
  if (p.mode > PoolingMode::kL2)
    return absl::UnimplementedError("MIL has no pooling operation of this mode");
  if (PaddingModeOf(p) != PaddingModeOf({.mode = p.mode})) {
    return absl::UnimplementedError("MIL's pooling operations have a fixed padding mode");
  }
  std::vector<const Along*> window = {&p.h, &p.w};
  if (e.rank() == kMaxRank) {
    window.insert(window.begin(), &p.d);
  } else if (p.d.kernel > 1 || p.d.pads() > 0) {
    return absl::UnimplementedError("pooling along a depth of 1");
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
  if (p.mode == PoolingMode::kAvg) {
    arguments.push_back({"exclude_padding_from_average", {e.Bool(p.exclude_padding)}});
  }
  e.Result(e.Emit(kOps[static_cast<int>(p.mode)], std::move(arguments), unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<PoolingParams>& Kind() {
  static const UnitKindOf<PoolingParams> kind({
      .type = "Pooling",
      .bottoms = {1, 1, &rule::kPoolInputs},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil},
      .run = {.prepare = Prepare, .compute_then = Compute, .selects = Selects},
      .exact = {.compute = Exact},
  });
  return kind;
}

}  // namespace

const UnitKindOf<PoolingParams>& PoolingUnit() { return Kind(); }

}  // namespace anemone
