// Convolution and deconvolution. Every target has it. Kernel and bias are weights of the unit, or
// the kernel is its second bottom. Facts: validators.json Conv; targets.json max_kernel_*;
// netplist.md Conv; compiler_texts.json netplist_keys Conv.
#include "kernels/conv/conv.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/target_questions.h"
#include "engine/warning.h"
#include "kernels/conv/conv_compute.h"
#include "kernels/conv/conv_forms.h"
#include "kernels/lowering.h"
#include "kernels/shared/bounds.h"
#include "rule_table.h"     // generated
#include "warning_table.h"  // generated

namespace anemone {

absl::Span<const char* const> NamesOf(ConvType) {
  static constexpr const char* kNames[] = {"Conv",        "ChannelWiseConv",
                                           "DeConv",      "ChannelWiseDeConv",
                                           "DilatedConv", "ChannelWiseDilatedConv"};
  return kNames;
}

absl::Span<const char* const> NamesOf(KernelMode) {
  static constexpr const char* kNames[] = {"Dense", "Unity"};
  return kNames;
}

absl::Span<const char* const> NamesOf(KernelFormat) {
  static constexpr const char* kNames[] = {"Float16", "Float32", "Int8", "UInt8", "E4M3"};
  return kNames;
}

namespace {

int64_t OutExtent(const Along& a, int64_t in, bool transposed) {
  if (!transposed) return a.WindowsIn(in);
  return (in - 1) * a.stride + a.extent() + a.output_padding - a.pads();
}

absl::StatusOr<Dims> Shape(const ConvParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[Axis::kC] = p.out_channels;
  out[Axis::kD] = OutExtent(p.d, out.d(), p.transposed());
  out[Axis::kH] = OutExtent(p.h, out.h(), p.transposed());
  out[Axis::kW] = OutExtent(p.w, out.w(), p.transposed());
  return out;
}

struct SpatialAxis {
  const char* name;  // as in the compiler's texts
  const Along& along;
  Axis axis;
  Limit limit, limit_of_strided_deconv;
};

Verdict ValidateExtents(const ConvParams& p, const Dims& in, Judge& judge) {
  const bool half = p.format == KernelFormat::kFloat16;
  const SpatialAxis axes[] = {
      {"width", p.w, Axis::kW, half ? Limit::kMaxKernelWFp16Large : Limit::kMaxKernelWDefaultLarge,
       half ? Limit::kMaxKernelWFp16Small : Limit::kMaxKernelWDefaultSmall},
      {"height", p.h, Axis::kH, Limit::kMaxKernelHLarge, Limit::kMaxKernelHSmall},
      {"depth", p.d, Axis::kD, Limit::kMaxKernelDLarge, Limit::kMaxKernelDSmall}};
  for (const SpatialAxis& a : axes) {
    // "strided axes use the small-kernel caps" (op_matrix.json conv_transpose).
    const bool strided = p.transposed() && a.along.stride > 1;
    const Limit limit = strided ? a.limit_of_strided_deconv : a.limit;
    if (!judge.Within(a.along.kernel, limit)) {
      return judge.Reject(rule::kConvKernel, a.name, a.along.kernel, 1, judge.Value(limit, 0));
    }
    const int64_t padded = in[a.axis] + a.along.pads();
    if (p.transposed() || padded >= a.along.extent()) continue;
    if (a.axis == Axis::kW && a.along.kernel > padded) {
      return judge.Reject(rule::kConvPaddedWidth, a.along.kernel, padded);
    }
    return judge.Reject(rule::kConvPaddedExtent);
  }
  // Above the small caps the kernel has the large form (conflicts.md C-large-kernel-mult8).
  const int64_t multiple = rule::kConvLargeKernel.limit;
  const bool fits = p.w.kernel % multiple == 0 && p.h.kernel % multiple == 0;
  const bool is_large = std::any_of(std::begin(axes), std::end(axes), [&](const SpatialAxis& a) {
    const auto is_small =
        IsWithin(a.along.kernel, a.limit_of_strided_deconv, judge.target(), Status::kUnknown);
    return is_small && !is_small->value;
  });
  if (is_large && !fits) judge.Doubt(rule::kConvLargeKernel);
  return judge.Accept();
}

Verdict ValidateGroups(const ConvParams& p, const Dims& in, Judge& judge) {
  const bool divides = in.c() % p.groups == 0;
  const bool fits = p.kernel_channels == 0 || (divides && in.c() / p.groups == p.kernel_channels);
  if (judge.route() == Route::kMil && !fits) {
    return judge.Reject(rule::kConvMilGroups, p.kernel_channels, in.c(), p.groups);
  }
  if (!divides || p.out_channels % p.groups != 0) return judge.Reject(rule::kConvGroups);
  if (!fits) return judge.Reject(rule::kConvFilterChannels);
  // One group for each channel is not encoded as groups (guide ch17, depthwise convolution).
  const bool is_depthwise = p.groups == in.c() && p.groups == p.out_channels;
  if (p.groups > rule::kConvGroupField.limit && !is_depthwise &&
      !judge.Reaches(rule::kConvGroupField)) {
    return judge.Reject(rule::kConvGroupField);
  }
  if (p.groups > (is_depthwise ? rule::kConvGroupField : rule::kConvGroupRange).limit) {
    judge.Doubt(rule::kConvGroupRange);
  }
  if (!p.channel_wise()) return judge.Accept();
  if (p.groups != p.out_channels) return judge.Reject(rule::kConvChannelWiseGroups);
  if (in.c() != p.out_channels) return judge.Reject(rule::kConvChannelWiseChannels);
  return judge.Accept();
}

Verdict ValidateDeconv(const ConvParams& p, Judge& judge) {
  if (p.d.stride > 1) return judge.Reject(rule::kDeconvDepthStride);
  for (const Along* a : {&p.h, &p.w, &p.d}) {
    if (a->stride > rule::kDeconvStride.limit) return judge.Reject(rule::kDeconvStride);
    if (a->dilation > 1) return judge.Reject(rule::kDeconvDilation);
  }
  return judge.Accept();
}

Verdict Validate(const ConvParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!p.has_kernel) return judge.Reject(rule::kConvNoKernel);
  if (route == Route::kMil && in.size() > 1 && p.d.kernel > 1) {
    return judge.Reject(rule::kConv3dDynamic);
  }
  if (route == Route::kMil && p.w.kernel > rule::kConvMilWidth.limit) {
    return judge.Reject(rule::kConvMilWidth);
  }
  Verdict verdict = ValidateExtents(p, in[0].dims, judge);
  if (verdict.accepted) verdict = ValidateGroups(p, in[0].dims, judge);
  if (!verdict.accepted) return verdict;
  if (p.padding_mode != PaddingMode::kZero) {
    if (p.padding_mode != PaddingMode::kReplication) return judge.Reject(rule::kConvPaddingMode);
    // It is not published which targets support replicated borders.
    verdict = judge.Accept();
    verdict.status = Status::kUnknown;
    return p.transposed() ? Both(std::move(verdict), ValidateDeconv(p, judge)) : verdict;
  }
  return p.transposed() ? ValidateDeconv(p, judge) : judge.Accept();
}

// A kernel depth above 1 passes the validator, but the code generator of every target refuses it.
Verdict Codegen(const ConvParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.d.kernel > 1) return judge.Reject(rule::kConv3d);
  if (p.format == KernelFormat::kE4M3 && !judge.Has(Cap::kFp8E4m3)) {
    return judge.Reject(rule::kConvE4m3);
  }
  if (in.size() < 2 || in[0].dims.n() < rule::kConvDynamicBatch.limit) return judge.Accept();
  // This is published only for the M1, which is family A13.
  Verdict verdict = judge.Requires(rule::kConvDynamicBatch);
  if (verdict.accepted) verdict.status = Status::kUnknown;
  return verdict;
}

bool IsDilated(const ConvParams& p) {
  return p.type == ConvType::kDilatedConv || p.type == ConvType::kChannelWiseDilatedConv;
}

// In a netplist, the pads of a deconvolution apply to the input after zeros are inserted between
// its elements, as in the recipe of nearest upsampling. There are in * stride + pads - extent + 1
// outputs.
int64_t DeconvPadBefore(const Along& a) { return a.extent() - 1 - a.pad_before; }
int64_t DeconvPadAfter(const Along& a) {
  return a.extent() - a.stride - a.pad_after + a.output_padding;
}

template <Along ConvParams::*kAxis, bool kAfter>
constexpr Field<ConvParams> PadKey(const char* key) {
  return {key,
          [](const ConvParams& p) -> Json {
            const Along& a = p.*kAxis;
            if (p.transposed()) return kAfter ? DeconvPadAfter(a) : DeconvPadBefore(a);
            return kAfter ? a.pad_after : a.pad_before;
          },
          [](ConvParams& p, const Json& from) {
            Along& a = p.*kAxis;
            return Plain::Read(from, kAfter ? a.pad_after : a.pad_before);
          }};
}

template <Along ConvParams::*kAxis>
constexpr Field<ConvParams> DilationKey(const char* key) {
  return {
      key,
      [](const ConvParams& p) -> Json { return IsDilated(p) ? Json((p.*kAxis).dilation) : Json(); },
      [](ConvParams& p, const Json& from) { return Plain::Read(from, (p.*kAxis).dilation); }};
}

// A key for the position of the kernel in a file. It is read elsewhere.
constexpr Field<ConvParams> ElsewhereKey(const char* key) {
  return {key, [](const ConvParams&) -> Json { return nullptr; }, nullptr};
}

constexpr Field<ConvParams> kFields[] = {
    Required<&ConvParams::type>("Type"),
    AlongKey<ConvParams, &ConvParams::w, &Along::kernel>("KernelWidth", true),
    AlongKey<ConvParams, &ConvParams::h, &Along::kernel>("KernelHeight", true),
    AlongKey<ConvParams, &ConvParams::d, &Along::kernel>("KernelDepth"),
    DilationKey<&ConvParams::w>("KernelDilationX"),
    DilationKey<&ConvParams::h>("KernelDilationY"),
    // True only in the recipe that has a kernel of ones.
    {"KernelGroupReuse", [](const ConvParams& p) -> Json { return p.mode == KernelMode::kUnity; },
     nullptr},
    Key<&ConvParams::mode>("KernelMode"),
    Key<&ConvParams::format>("KernelType"),
    {"KernelMutable", [](const ConvParams&) -> Json { return false; }, nullptr},
    ElsewhereKey("KernelIndex"),
    ElsewhereKey("KernelOffset"),
    StepKey<ConvParams>(),
    PadKey<&ConvParams::h, false>("PadTop"),
    PadKey<&ConvParams::h, true>("PadBot"),
    PadKey<&ConvParams::w, false>("PadLeft"),
    PadKey<&ConvParams::w, true>("PadRight"),
    PadKey<&ConvParams::d, false>("PadFront"),
    PadKey<&ConvParams::d, true>("PadBack"),
    Key<&ConvParams::padding_mode>("PaddingMode"),
    Key<&ConvParams::groups>("NumGroups"),
    Alias<&ConvParams::groups>("groups"),
    Alias<&ConvParams::out_channels>("OutputChannels"),
    Alias<&ConvParams::pad_type>("pad_type"),
    ByAxisAlias<ConvParams, &Along::stride>("strides"),
    ByAxisAlias<ConvParams, &Along::dilation>("dilations"),
};

// Converts the pads of the netplist keys to those of ConvParams.
absl::Status SettleDeconvPads(PadType type, int64_t in, Along& a) {
  if (type != PadType::kCustom) {
    SettlePads(type, in, /*transposed=*/true, a);
    return absl::OkStatus();
  }
  if (a.pad_before < 0 || a.pad_before > kAttributeBound || a.pad_after < -kAttributeBound ||
      a.pad_after > kAttributeBound) {
    return absl::InvalidArgumentError(
        "pads of a deconvolution: want 0 to the extent of the kernel");
  }
  a.pad_before = DeconvPadBefore(a);
  const int64_t cut = a.extent() - a.stride - a.pad_after;
  a.pad_after = std::max<int64_t>(cut, 0);
  a.output_padding = std::max<int64_t>(-cut, 0);
  return CheckAlong(a);
}

bool IsInMajor(Bottoms in, absl::Span<const Tensor> weights) {
  return in.size() == 1 && !weights.empty() && weights[0].dims().size() == 2;
}

// The dims of the kernel: (first, second, [d,] h, w).
std::optional<Dims> KernelDims(Bottoms in, absl::Span<const Tensor> weights) {
  if (in.size() > 1) return in[1].dims;
  if (weights.empty()) return std::nullopt;
  const std::vector<int64_t>& sizes = weights[0].dims();
  if (IsInMajor(in, weights)) return MakeDims(sizes[1], sizes[0], 1, 1);
  if (sizes.size() < 3 || sizes.size() > kMaxRank) return std::nullopt;
  return PlaceShape(sizes);
}

absl::Status Complete(ConvParams& p, Bottoms in, absl::Span<const Tensor> weights) {
  const Dims& x = in[0].dims;
  if (p.groups < 1 || p.groups > kAttributeBound) {
    return absl::InvalidArgumentError("NumGroups: want at least 1");
  }
  for (auto [along, axis] :
       {std::pair(&p.w, Axis::kW), std::pair(&p.h, Axis::kH), std::pair(&p.d, Axis::kD)}) {
    Along window = *along;
    window.pad_before = window.pad_after = 0;
    ANEMONE_RETURN_IF_ERROR(CheckAlong(window));
    if (p.transposed()) {
      ANEMONE_RETURN_IF_ERROR(SettleDeconvPads(p.pad_type, x[axis], *along));
    } else {
      ANEMONE_RETURN_IF_ERROR(CheckAlong(*along));
      SettlePads(p.pad_type, x[axis], /*transposed=*/false, *along);
    }
  }
  p.pad_type = PadType::kCustom;
  if (p.h.dilation > 1 || p.w.dilation > 1) {  // a dilation is written only with these types
    if (p.type == ConvType::kConv) p.type = ConvType::kDilatedConv;
    if (p.type == ConvType::kChannelWiseConv) p.type = ConvType::kChannelWiseDilatedConv;
  }
  const bool unity = p.mode == KernelMode::kUnity;
  if (unity) p.out_channels = x.c();
  const std::optional<Dims> kernel = KernelDims(in, weights);
  if (!kernel) {
    p.has_kernel = unity;
    return absl::OkStatus();
  }
  if (kernel->h() != p.h.kernel || kernel->w() != p.w.kernel || kernel->d() != p.d.kernel ||
      (p.transposed() && kernel->n() != x.c())) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", DimsToString(*kernel),
                     ": want the extents of KernelWidth, "
                     "KernelHeight and KernelDepth, and the channels of the input"));
  }
  p.in_major = IsInMajor(in, weights);
  if (p.in_major && (p.transposed() || p.groups != 1)) {
    return absl::InvalidArgumentError(
        "kernel stored as (in, out): want a 1x1 convolution of one group");
  }
  if (p.transposed()) {
    if (kernel->c() > (int64_t{1} << 32)) return absl::InvalidArgumentError("kernel: too large");
    p.out_channels = kernel->c() * p.groups;
  } else {
    p.out_channels = kernel->n();
    p.kernel_channels = kernel->c();
  }
  if (weights.size() > 2 || (weights.size() == 2 && weights[1].elements() != p.out_channels)) {
    return absl::InvalidArgumentError(
        "weights: want a kernel and optionally one bias for each output channel");
  }
  return absl::OkStatus();
}

void Warn(const ConvParams& p, const Unit& unit, Bottoms in, const Target& target, Route route,
          WarningList& list) {
  const int64_t channels = in[0].dims.c();
  if (p.groups > 1 && p.groups != channels) {
    const auto cores = target.limit(Limit::kNumNes);
    if (cores && cores->value % p.groups != 0) {
      list.Add(warning::kGroupsCores, p.groups, cores->value);
    }
  }
  if (in.size() > 1 && in[0].dims.n() >= warning::kDynamicConvolutionBatch.limit) {
    list.Add(warning::kDynamicConvolutionBatch, in[0].dims.n());
  }
  const int64_t most = std::max(channels, p.out_channels);
  if (route != Route::kMil) return;
  if (most >= warning::kOrion32kChannels.limit) list.Add(warning::kOrion32kChannels, most);
  if (unit.weights.size() > 1) list.Add(warning::kOrionConvBias);
}

// A convolution with a single product per output, 1x1 over one channel, is not clipped at the
// ceiling (numerics.json mac-ceiling).
std::optional<Arithmetic> ArithmeticOf(const ConvParams& p, Bottoms in,
                                       absl::Span<const Tensor> weights) {
  const bool is_one_tap =
      in[0].dims.c() == 1 && !weights.empty() && weights[0].elements() == p.out_channels;
  return Arithmetic{.kind = Arithmetic::Kind::kContraction, .has_ceiling = !is_one_tap};
}

// Each place of the output, or of a deconvolution's input, meets each tap of its group once.
int64_t UnitMacs(const ConvParams& p, Bottoms in, absl::Span<const Tensor>, const Dims& out) {
  const int64_t taps = p.h.kernel * p.w.kernel * p.d.kernel;
  return p.transposed() ? in[0].dims.elements() * taps * (p.out_channels / p.groups)
                        : out.elements() * taps * (in[0].dims.c() / p.groups);
}

const UnitKindOf<ConvParams>& Kind() {
  static const UnitKindOf<ConvParams> kind({
      .type = "Conv",
      .bottoms = {1, 2},
      .arithmetic = ArithmeticOf,
      .macs = UnitMacs,
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen, .warn = Warn},
      .spell = {.fields = kFields,
                .complete = Complete,
                .kernel_dims = ConvKernelDims,
                .stored_kernel = StoredConvKernel,
                .mil = WriteConvMil,
                .compose = ComposeConv},
      .run = {.prepare = PrepareConv, .compute_then = ComputeConv},
      .exact = {.compute = ExactConv},
      .fuse = {.takes_bias = true, .takes_epilogue = ConvTakesEpilogue},
  });
  return kind;
}

}  // namespace

const UnitKindOf<ConvParams>& ConvUnit() { return Kind(); }

Operand PointwiseConv(NetworkBuilder& c, const Operand& x, int64_t out_channels,
                      const Tensor& kernel, bool in_major, const Tensor* bias) {
  const int64_t in = c.DimsOf(x).c();
  std::vector<Tensor> weights = {
      kernel.Reshaped(in_major ? std::vector{in, out_channels}
                               : std::vector{out_channels, in, int64_t{1}, int64_t{1}})};
  if (bias != nullptr) weights.push_back(*bias);
  return c.Add(Kind(), ConvParams{.out_channels = out_channels, .in_major = in_major}, {x},
               std::move(weights));
}

PointwiseKernel PointwiseKernelOf(const Unit& unit) {
  if (unit.kind != &Kind() || unit.weights.empty() || unit.bottoms.size() != 1) return {};
  const auto& p = *static_cast<const ConvParams*>(unit.params.get());
  const auto is_point = [](const Along& a) {
    return a.kernel == 1 && a.stride == 1 && a.pads() == 0;
  };
  const bool is_plain = p.type == ConvType::kConv && p.mode == KernelMode::kDense &&
                        p.format == KernelFormat::kFloat16 && p.groups == 1;
  if (!is_plain || !is_point(p.d) || !is_point(p.h) || !is_point(p.w)) return {};
  const Tensor& matrix = unit.weights[0];
  return {&matrix, matrix.elements() / p.out_channels, p.out_channels, p.in_major};
}

Operand Doubled(NetworkBuilder& c, const Operand& x, bool height, bool width) {
  const int64_t channels = c.DimsOf(x).c();
  constexpr Along kTwice{.kernel = 2, .stride = 2};
  ConvParams p{.type = ConvType::kChannelWiseDeConv,
               .mode = KernelMode::kUnity,
               .out_channels = channels,
               .groups = channels};
  if (height) p.h = kTwice;
  if (width) p.w = kTwice;
  return c.Add(Kind(), p, {x});
}

}  // namespace anemone
