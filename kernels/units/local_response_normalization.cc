// Local response normalization across channels. Needs A13; on A13 the code generator refuses 16
// channels or more. The unit normalizes only the first KernelChannel channels and copies the others
// (hidden_layers.json LocalResponseNormalization), so ONNX's LRN becomes this unit if the window
// covers all channels, and else squares, a convolution and a power. Facts: validators.json LRN;
// netplist.md LocalResponseNormalization; numerics.json nrm-lrn; conflicts.md C-lrn-window (the
// window of KernelChannel channels is the same as ONNX's: if the number is even, there is one more
// channel after the center than before it) and C-lrn-bound.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/conv/conv.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/goc.h"
#include "math/core/half.h"
#include "math/core/parallel.h"
#include "math/exact/exact_lanes.h"
#include "math/move/convert.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct LrnParams {
  float alpha = 1e-4f, beta = 0.75f, k = 1;
  int64_t kernel_channels = 1;
  int64_t kernel_width = 1, kernel_height = 1;
};

absl::StatusOr<Dims> Shape(const LrnParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const LrnParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kLrn) || !judge.Reaches(rule::kLrnArch)) {
    return judge.Reject(rule::kLrnArch);
  }
  if (p.kernel_height != 1 || p.kernel_width != 1) {
    return judge.Reject(rule::kLrnKernel, p.kernel_height, p.kernel_width);
  }
  if (in[0].dims.d() > 1) return judge.Reject(rule::kLrnDepth, in[0].dims.d());
  if (route == Route::kMil) judge.Doubt(rule::kLrnConversion);
  if (in[0].dims.c() <= p.kernel_channels) judge.Doubt(rule::kLrnBound);
  return judge.Accept();
}

// This is published only for the M1, which is family A13. Later families are assumed to accept it.
Verdict Codegen(const LrnParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (in[0].dims.c() < rule::kLrnChannelsA13.limit) return judge.Accept();
  return judge.Requires(rule::kLrnChannelsA13);
}

bool IsSpatial(const LrnParams& p) { return p.kernel_width != 1 || p.kernel_height != 1; }

constexpr Field<LrnParams> kFields[] = {
    {"Type", [](const LrnParams&) -> Json { return nullptr; },
     [](LrnParams&, const Json& from) {
       return IsText(from, "Channel") ? absl::OkStatus()
                                      : absl::InvalidArgumentError("want Channel");
     },
     false, ValueType::kName},
    Key<&LrnParams::kernel_width, Plain, IsSpatial>("KernelWidth"),
    Key<&LrnParams::kernel_height, Plain, IsSpatial>("KernelHeight"),
    Required<&LrnParams::kernel_channels>("KernelChannel"),
    Key<&LrnParams::alpha, AsHalfBits>("Alpha"),
    Alias<&LrnParams::alpha, AsHalfBits>("Alpha_fp16_bits"),
    Key<&LrnParams::beta>("Beta"),
    Key<&LrnParams::k>("K"),
};

absl::Status Complete(LrnParams& p, Bottoms, absl::Span<const Tensor>) {
  if (p.kernel_channels >= 1 && p.kernel_channels <= kAttributeBound) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("KernelChannel: want at least 1");
}

int64_t FirstOfWindow(const LrnParams& p, int64_t channel) {
  return channel - (p.kernel_channels - 1) / 2;
}

// Normalizes one image: y = x * (k + alpha / n * sum of squares over the window)^-beta in the first
// n channels. For each channel the sums are computed for all positions at once.
void Normalize(const LrnParams& p, int64_t channels, absl::Span<const math::Half> x,
               absl::Span<math::Half> y) {
  int64_t plane = static_cast<int64_t>(x.size()) / channels;
  std::vector<float> values(x.size());
  math::HalfToFloat(x, absl::MakeSpan(values));
  std::vector<float> out(plane);
  const int64_t normalized = std::min(channels, p.kernel_channels);
  for (int64_t c = 0; c < normalized; ++c) {
    std::fill(out.begin(), out.end(), 0.0f);
    const int64_t first = FirstOfWindow(p, c);
    const int64_t end = std::min(channels, first + p.kernel_channels);
    for (int64_t j = std::max<int64_t>(0, first); j < end; ++j) {
      const float* row = values.data() + j * plane;
      for (int64_t i = 0; i < plane; ++i) out[i] += row[i] * row[i];
    }
    const float* row = values.data() + c * plane;
    float scale = p.alpha / static_cast<float>(p.kernel_channels);
    for (int64_t i = 0; i < plane; ++i) out[i] = row[i] * std::pow(p.k + scale * out[i], -p.beta);
    math::FloatToHalf(out, y.subspan(c * plane, plane));
  }
  std::copy(x.begin() + normalized * plane, x.end(), y.begin() + normalized * plane);
}

void Compute(const LrnParams& p, const void*, absl::Span<const ConstView> in, View out) {
  const Dims& dims = in[0].dims;
  int64_t image = dims.c() * dims.h() * dims.w();
  math::ParallelForItems(dims.n() * dims.d(), image, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Normalize(p, dims.c(), in[0].span().subspan(i * image, image),
                out.span().subspan(i * image, image));
    }
  });
}

// x / (k + alpha / n * sum)^beta in the first n channels. The sum of squares follows the rules of a
// reduction (red-sum). Either there is one rounding at the end, or the power is computed by a
// logarithm that is rounded (numerics.json nrm-lrn).
void Exact(const LrnParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  const math::Numerics& n = unit.numerics;
  const Dims& dims = in[0].dims;
  const int64_t plane = dims.h() * dims.w(), channels = dims.c();
  const double scale = static_cast<double>(p.alpha) / static_cast<double>(p.kernel_channels);
  const auto power = [&](double base) {
    if (n.nrm_lrn == math::NrmLrn::kExactPow) return std::pow(base, -static_cast<double>(p.beta));
    return std::exp2(math::Rounded(-p.beta * math::Rounded(std::log2(base), n), n));
  };
  math::ForBlocks(dims.elements(), p.kernel_channels * 8, [&](int64_t first, int64_t count) {
    math::LaneSums lanes(n);
    const auto channel = [&](int64_t j) { return (first + j) / plane % channels; };
    // Of element k of the window of element j.
    const auto square = [&](int64_t j, int64_t k) -> float {
      const int64_t at = first + j, c = channel(j);
      const int64_t from = FirstOfWindow(p, c) + k;
      if (j >= count || from < 0 || from >= channels) return 0;
      const float value = math::ToFloat(in[0].data[at + (from - c) * plane]);
      return value * value;
    };
    const absl::Span<const float> sums =
        lanes.Of(p.kernel_channels, [&](int64_t from, int64_t rows, float* to) {
          for (int64_t i = 0; i < rows * math::kMacColumns; ++i) {
            to[i] = square(i % math::kMacColumns, from + i / math::kMacColumns);
          }
        });
    for (int64_t j = 0; j < count; ++j) {
      if (channel(j) >= p.kernel_channels) {
        out.data[first + j] = in[0].data[first + j];
        continue;
      }
      const double x = math::ToDouble(in[0].data[first + j]);
      out.data[first + j] = math::Stored(x * power(p.k + scale * sums[j]), n);
    }
  });
}

absl::Status WriteMil(const LrnParams& p, const Unit& unit, MilEmitter& e) {
  if (IsSpatial(p))
    return absl::UnimplementedError("MIL's local_response_norm normalizes over channels only");
  if (p.kernel_channels < unit.dims.c()) {
    return absl::UnimplementedError(
        "MIL's local_response_norm normalizes all channels, this unit only the first "
        "KernelChannel");
  }
  e.Result(e.Emit("local_response_norm",
                  {{"x", {e.In(0)}},
                   {"size", {e.Int(p.kernel_channels)}},
                   {"alpha", {e.Half(p.alpha)}},
                   {"beta", {e.Half(p.beta)}},
                   {"k", {e.Half(p.k)}}},
                  unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<LrnParams>& Kind() {
  static const UnitKindOf<LrnParams> kind({
      .type = "LocalResponseNormalization",
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// x^-power. The powers of the published networks need no general power, which a netplist cannot
// hold with certainty.
Operand NegativePower(NetworkBuilder& c, const Operand& x, float power) {
  if (power == 1.0f) return Activated(c, NeuronType::kInv, x);
  if (power != 0.5f && power != 0.75f) {
    return Combined(c, ElementWiseType::kPower, x, ScalarConstant(c, -power));
  }
  Operand root = Activated(c, NeuronType::kRsqrt, x);
  if (power == 0.5f) return root;
  return Combined(c, ElementWiseType::kMult, root, Activated(c, NeuronType::kSqrt, root));
}

// The same formula for all channels, in units of other kinds: the input scaled, squared, summed
// over the windows by a 1x1 convolution whose matrix is a band, and the power of the sum.
//
// Squares of values above 256 exceed fp16, and those below 2^-7 are subnormal, so x is scaled first
// and the matrix has the rest of the factor alpha / n. With a scale of 2^-8 no square overflows.
// Where small squares must count more, the scale is larger, and what would overflow is clamped. The
// sum of a clamped square then exceeds the ceiling of a convolution, which `run --hazards` reports.
Operand Composed(NetworkBuilder& c, const LrnParams& p, const Operand& x) {
  constexpr double kLeastScale = 1.0 / 256, kMostRest = 4, kMostRoot = 255;
  constexpr double kCeiling = 32768 * 1.01;  // numerics.json mac-ceiling; 1 % for rounding
  const int64_t channels = c.DimsOf(x).c();
  if (channels > MostMatrixElements() / channels) {
    return RefuseOverLimit(c, ModelLimit::kMatrixElements,
                           "local response normalization whose matrix would have");
  }
  if (p.k != 0 && std::abs(p.k) < fp16::kSmallestNormal) {
    return c.NotLowered("local response normalization whose bias fp16 cannot hold");
  }
  const double factor = static_cast<double>(p.alpha) / static_cast<double>(p.kernel_channels);
  const double magnitude = std::abs(factor) / (p.k > 0 ? p.k : 1);  // relative to the bias
  const bool clamps = magnitude > kMostRest * kLeastScale * kLeastScale;
  const double least_rest = kCeiling / (kMostRoot * kMostRoot);  // of the matrix, if it clamps
  const double rest = std::max<double>(p.k > 0 ? p.k : 1, least_rest);
  const double scale =
      clamps ? math::RoundToHalf(static_cast<float>(std::sqrt(std::abs(factor) / rest)))
             : kLeastScale;
  Operand roots = ScaleAndShift(c, x, scale, 0);
  if (clamps) roots = Activated(c, NeuronType::kClampedReLU, roots, -kMostRoot, kMostRoot);
  Operand squares = Combined(c, ElementWiseType::kMult, roots, roots);

  Tensor band = Tensor::Zeros(DataType::kFloat, {channels, channels});
  const auto weight = static_cast<float>(factor / (scale * scale));
  for (int64_t o = 0; o < channels; ++o) {
    const int64_t first = FirstOfWindow(p, o);
    const int64_t end = std::min(channels, first + p.kernel_channels);
    float* row = band.mutable_data<float>() + o * channels;
    std::fill(row + std::max<int64_t>(0, first), row + end, weight);
  }
  const Tensor bias =
      Tensor::Of<float>(DataType::kFloat, {channels}, std::vector<float>(channels, p.k));
  Operand base = PointwiseConv(c, squares, channels, band, /*in_major=*/false, &bias);
  return Combined(c, ElementWiseType::kMult, x, NegativePower(c, base, p.beta));
}

absl::StatusOr<LrnParams> ReadParams(const Node& node, LowerContext& c) {
  LrnParams p;
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(p.alpha, a.Float("alpha", 1e-4f));
  ANEMONE_ASSIGN_OR_RETURN(p.beta, a.Float("beta", 0.75f));
  ANEMONE_ASSIGN_OR_RETURN(p.k, a.Float("bias", 1));
  ANEMONE_ASSIGN_OR_RETURN(p.kernel_channels, a.Int("size", 1));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_RETURN_IF_ERROR(Complete(p, {}, {}));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  if (shape.size() < 3) return c.NotLowered("LRN of a tensor without a channel axis");
  return p;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(LrnParams p, ReadParams(node, c));
  Operand x = c.In(node.inputs[0]);
  if (c.DimsOf(x).c() > p.kernel_channels) {
    return c.NotLowered("LRN of more channels than its window has, as one unit");
  }
  const double alpha = std::abs(p.alpha);
  if (alpha != 0 && (alpha < fp16::kSmallestNormal || alpha > fp16::kLargest)) {
    return c.NotLowered("LRN whose alpha fp16 cannot hold, as one unit");
  }
  p.alpha = math::RoundToHalf(p.alpha);  // the unit's key holds an fp16 value
  Operand y = c.Add(Kind(), p, {x});
  return c.Out(node.outputs[0], y);
}

absl::Status LowerComposed(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(LrnParams p, ReadParams(node, c));
  Operand x = c.In(node.inputs[0]);
  Operand y = Composed(c, p, x);
  return c.Out(node.outputs[0], y);
}

absl::Status Build(MilContext& c) {
  LrnParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.alpha, c.Number("alpha", 1e-4f));
  ANEMONE_ASSIGN_OR_RETURN(p.beta, c.Number("beta", 0.75f));
  ANEMONE_ASSIGN_OR_RETURN(p.k, c.Number("k", 1));
  ANEMONE_ASSIGN_OR_RETURN(p.kernel_channels, c.Int("size", 1));
  ANEMONE_RETURN_IF_ERROR(Complete(p, {}, {}));
  Operand x = c.In(0);
  if (c.rank(0) < 3) return absl::InvalidArgumentError("local_response_norm: want rank 3 or more");
  // Core ML normalizes all channels. What its conversion makes of that is not published.
  const bool is_partial = c.DimsOf(x).c() > p.kernel_channels;
  if (is_partial && c.rewrites()) {
    c.SetRewritten();
    x = Composed(c, p, x);
  } else if (is_partial && c.route() == Route::kNetplist) {
    return c.NotLowered("local_response_norm of more channels than its size, as one unit");
  } else {
    x = c.Add(Kind(), p, {x});
  }
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"local_response_norm", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "LRN", .lower = Lower},
    {.op = "LRN", .rewritten = true, .lower = LowerComposed},
};

}  // namespace

KernelRows LocalResponseNormalizationRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
