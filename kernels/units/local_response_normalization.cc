// Local response normalization across channels. Needs A13; on A13 the code generator refuses 16
// channels or more. Facts: validators.json LRN; netplist.md LocalResponseNormalization;
// conflicts.md C-lrn-window (the window of KernelChannel channels is the same as ONNX's: if the
// number is even, there is one more channel after the center than before it).
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/shared/bounds.h"
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
       return from == "Channel" ? absl::OkStatus() : absl::InvalidArgumentError("want Channel");
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

// Normalizes one image: y = x * (k + alpha / n * sum of squares over the window)^-beta. For each
// channel the sums are computed for all positions at once.
void Normalize(const LrnParams& p, int64_t channels, absl::Span<const math::Half> x,
               absl::Span<math::Half> y) {
  int64_t plane = static_cast<int64_t>(x.size()) / channels;
  std::vector<float> values(x.size());
  math::HalfToFloat(x, absl::MakeSpan(values));
  std::vector<float> out(plane);
  int64_t before = (p.kernel_channels - 1) / 2;
  int64_t after = p.kernel_channels / 2;
  for (int64_t c = 0; c < channels; ++c) {
    std::fill(out.begin(), out.end(), 0.0f);
    for (int64_t j = std::max<int64_t>(0, c - before); j <= std::min(channels - 1, c + after);
         ++j) {
      const float* row = values.data() + j * plane;
      for (int64_t i = 0; i < plane; ++i) out[i] += row[i] * row[i];
    }
    const float* row = values.data() + c * plane;
    float scale = p.alpha / static_cast<float>(p.kernel_channels);
    for (int64_t i = 0; i < plane; ++i) out[i] = row[i] * std::pow(p.k + scale * out[i], -p.beta);
    math::FloatToHalf(out, y.subspan(c * plane, plane));
  }
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

// x / (k + alpha / n * sum)^beta. The sum of squares follows the rules of a reduction (red-sum).
// Either there is one rounding at the end, or the power is computed by a logarithm that is rounded
// (numerics.json nrm-lrn).
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
    // Of element k of the window of element j.
    const auto square = [&](int64_t j, int64_t k) -> float {
      const int64_t at = first + j, c = at / plane % channels;
      const int64_t from = c - (p.kernel_channels - 1) / 2 + k;
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
      const double x = math::ToDouble(in[0].data[first + j]);
      out.data[first + j] = math::Stored(x * power(p.k + scale * sums[j]), n);
    }
  });
}

absl::Status WriteMil(const LrnParams& p, const Unit& unit, MilEmitter& e) {
  if (IsSpatial(p))
    return absl::UnimplementedError("MIL's local_response_norm normalizes over channels only");
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

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  LrnParams p;
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(p.alpha, a.Float("alpha", 1e-4f));
  p.alpha = math::RoundToHalf(p.alpha);  // the unit's key holds an fp16 value
  ANEMONE_ASSIGN_OR_RETURN(p.beta, a.Float("beta", 0.75f));
  ANEMONE_ASSIGN_OR_RETURN(p.k, a.Float("bias", 1));
  ANEMONE_ASSIGN_OR_RETURN(p.kernel_channels, a.Int("size", 1));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_RETURN_IF_ERROR(Complete(p, {}, {}));
  if (shape.size() < 3) return c.NotLowered("LRN of a tensor without a channel axis");
  Operand x = c.In(node.inputs[0]);
  Operand y = c.Add(Kind(), p, {x});
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
  x = c.Add(Kind(), p, {x});
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"local_response_norm", Build}};

constexpr Lowering kLowerings[] = {{.op = "LRN", .lower = Lower}};

}  // namespace

KernelRows LocalResponseNormalizationRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
