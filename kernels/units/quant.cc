// Quant and DeQuant: convert fp16 to a narrow format, q = x / scale + zero point, and back. Facts:
// validators.json Quant, DeQuant; compiler_texts.json for keys and texts.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/activation/neuron.h"
#include "kernels/mil.h"
#include "kernels/shared/element_format.h"
#include "math/core/parallel.h"
#include "math/exact/exact_half.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// More than one scale or zero point is stored in a weights file, at an index and an offset.
struct Stored {
  int64_t count = 0, index = 0, offset = 0;
  bool given = false;  // whether there is a key for the count
};

struct QuantParams {
  float scale = 1;
  int64_t zero_point = 0;
  Stored scales, zero_points;
  // The narrow format: output of Quant, input of DeQuant. If not given, it is the format of the
  // bottom.
  ElementFormat narrow = ElementFormat::kInt8;
  bool narrow_given = false;
  ElementFormat wide = ElementFormat::kFloat16;  // output of DeQuant

  bool has_zero_point() const { return zero_point != 0 || zero_points.count > 0; }
};

absl::StatusOr<Dims> Shape(const QuantParams&, Bottoms in) { return in[0].dims; }

bool IsOneOf(ElementFormat format, std::initializer_list<ElementFormat> formats) {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

// E4M3 needs the capability and is symmetric.
Verdict CheckE4M3(Judge& judge, const QuantParams& p) {
  if (p.narrow != ElementFormat::kE4M3) return judge.Accept();
  if (!judge.Has(Cap::kFp8E4m3)) return judge.Reject(rule::kQuantE4m3);
  return p.has_zero_point() ? judge.Reject(rule::kQuantE4m3ZeroPoint) : judge.Accept();
}

Verdict ValidateQuant(const QuantParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (in[0].format != Format::kFloat16) return judge.Reject(rule::kQuantInput);
  if (!IsOneOf(p.narrow, {ElementFormat::kInt8, ElementFormat::kUInt8, ElementFormat::kE4M3,
                          ElementFormat::kE5M2})) {
    return judge.Reject(rule::kQuantOutput);
  }
  return CheckE4M3(judge, p);
}

// The task descriptor of the M1 supports symmetric quantization only. A DMA format needs a
// capability.
Verdict CodegenQuant(const QuantParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.has_zero_point() && !judge.Reaches(rule::kQuantAsymmetric)) {
    return judge.Reject(rule::kQuantAsymmetric);
  }
  if (p.narrow == ElementFormat::kE5M2 && !judge.Has(Cap::kDmaE5m2Format)) {
    return judge.Reject(rule::kQuantDmaFormat);
  }
  return judge.Accept();
}

// The format that DeQuant reads: InputType, or the format of the bottom.
ElementFormat NarrowOf(const QuantParams& p, const Bottom& bottom) {
  if (p.narrow_given) return p.narrow;
  switch (bottom.format) {
    case Format::kUInt8:
      return ElementFormat::kUInt8;
    case Format::kInt8:
      return ElementFormat::kInt8;
    case Format::kUInt16:
      return ElementFormat::kUInt16;
    case Format::kFloat16:
      break;
  }
  return ElementFormat::kFloat16;
}

Verdict ValidateDeQuant(const QuantParams& given, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  QuantParams p = given;
  p.narrow = NarrowOf(p, in[0]);
  if (!IsOneOf(p.narrow, {ElementFormat::kInt8, ElementFormat::kUInt8, ElementFormat::kInt4,
                          ElementFormat::kE4M3})) {
    return judge.Reject(rule::kDequantInput);
  }
  if (p.wide != ElementFormat::kFloat16) return judge.Reject(rule::kDequantOutput);
  if (p.narrow == ElementFormat::kInt4 && p.scales.count > 1) {
    return judge.Reject(rule::kDequantInt4PerChannel);
  }
  const int64_t scales = p.scales.given ? p.scales.count : 1;
  if (scales != 1 && scales != in[0].dims.c()) {
    return judge.Reject(rule::kDequantScaleCount);
  }
  return CheckE4M3(judge, p);
}

// A key that exists in only one of the two forms: one number, or several numbers in a file.
template <Stored QuantParams::*kStored, int64_t Stored::*kMember>
constexpr Field<QuantParams> StoredKey(const char* key) {
  return {key,
          [](const QuantParams& p) -> Json {
            return (p.*kStored).count > 0 ? Json(p.*kStored.*kMember) : Json();
          },
          [](QuantParams& p, const Json& from) {
            if (kMember == &Stored::count) (p.*kStored).given = true;
            return Plain::Read(from, p.*kStored.*kMember);
          }};
}

bool OneScale(const QuantParams& p) { return p.scales.count == 0; }
bool OneZeroPoint(const QuantParams& p) { return p.zero_points.count == 0 && p.zero_point != 0; }

// The type of a scale or zero point. Its possible names are not published, so it is ignored.
constexpr Field<QuantParams> TypeKey(const char* key) {
  return {key, [](const QuantParams&) -> Json { return nullptr; },
          [](QuantParams&, const Json& from) {
            std::string name;
            return Plain::Read(from, name);
          }};
}

// InputType is one name, or one for each bottom (conflicts.md C-input-type).
absl::Status SetInputType(QuantParams& p, const Json& from) {
  p.narrow_given = true;
  return AnyCase::Read(from.is_array() && from.size() == 1 ? from[0] : from, p.narrow);
}
Json GetInputType(const QuantParams& p) {
  return p.narrow_given ? Json::array({AnyCase::Write(p.narrow)}) : Json();
}

using P = QuantParams;
constexpr Field<P> kQuantFields[] = {
    Key<&P::scale, Plain, OneScale>("QuantScale"),
    Alias<&P::scale>("scale"),
    StoredKey<&P::scales, &Stored::count>("ScaleCount"),
    StoredKey<&P::scales, &Stored::index>("ScaleIndex"),
    StoredKey<&P::scales, &Stored::offset>("ScaleOffset"),
    TypeKey("QuantScaleType"),
    Key<&P::zero_point, Plain, OneZeroPoint>("QuantZeroPoint"),
    Alias<&P::zero_point>("zero_point"),
    StoredKey<&P::zero_points, &Stored::count>("ZeroPointCount"),
    StoredKey<&P::zero_points, &Stored::index>("ZeroPointIndex"),
    StoredKey<&P::zero_points, &Stored::offset>("ZeroPointOffset"),
    Key<&P::narrow, AnyCase>("OutputType"),
    Alias<&P::narrow, AnyCase>("output"),
};

constexpr Field<P> kDeQuantFields[] = {
    Key<&P::scale, Plain, OneScale>("DeQuantScale"),
    Alias<&P::scale>("scale"),
    StoredKey<&P::scales, &Stored::count>("DeQuantScaleCount"),
    StoredKey<&P::scales, &Stored::index>("DeQuantScaleIndex"),
    StoredKey<&P::scales, &Stored::offset>("DeQuantScaleOffset"),
    TypeKey("DeQuantScaleType"),
    Key<&P::zero_point, Plain, OneZeroPoint>("DeQuantZeroPoint"),
    Alias<&P::zero_point>("zero_point"),
    StoredKey<&P::zero_points, &Stored::count>("DeQuantZeroPointCount"),
    StoredKey<&P::zero_points, &Stored::index>("DeQuantZeroPointIndex"),
    StoredKey<&P::zero_points, &Stored::offset>("DeQuantZeroPointOffset"),
    TypeKey("DeQuantZeroPointType"),
    {"InputType", GetInputType, SetInputType},
    Key<&P::wide, AnyCase>("OutputType"),
    Alias<&P::wide, AnyCase>("output"),
};

using Scales = std::vector<float>;  // one, or one for each channel

// Scales in a file are a weight of the unit. The type of zero points in a file is not published.
absl::StatusOr<Prepared> Prepare(const P& p, Bottoms in, absl::Span<const Tensor> weights) {
  if (p.scales.count == 0 && p.zero_points.count == 0) {
    return std::make_shared<Scales>(Scales{p.scale});
  }
  if (p.zero_points.count > 0 || weights.empty() || !IsEngineConstant(weights[0].type())) {
    return absl::UnimplementedError(
        "quantization whose zero points are in a weights file, or whose scales are missing, can be "
        "checked but not run");
  }
  const int64_t count = weights[0].elements();
  if (count != p.scales.count || (count != 1 && count != in[0].dims.c())) {
    return absl::InvalidArgumentError("scales: want one, or one for each channel");
  }
  return std::make_shared<Scales>(RoundedFloats(weights[0]));
}

// The nearest number with `bits` bits of fraction, ties to even. Below the least exponent the
// numbers are subnormal: the last bit has the same value as at the least exponent.
double WithFraction(double x, int bits, int least_exponent) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double last = std::ldexp(1.0, std::max(std::ilogb(x), least_exponent) - bits);
  return std::nearbyint(x / last) * last;
}

// A quotient rounded to the narrow format. Ties go to the even number, as in encoders on the host,
// and the zero point is added after rounding (numerics.json cmp-encode). int8 saturates
// symmetrically (sat-int). E4M3 saturates, which is one of its two modes and the same as for
// integers. E5M2 is the high byte of fp16 and overflows to infinity (st-fp8-e4m3, st-fp8-e5m2).
double Narrowed(const P& p, const math::Numerics& n, double x) {
  const double zero_point = static_cast<double>(p.zero_point);
  const double nearest =
      n.cmp_encode == math::CmpEncode::kHalfEven ? std::nearbyint(x) : std::round(x);
  const double least = n.sat_int == math::SatInt::kSym ? -127.0 : -128.0;
  switch (p.narrow) {
    case ElementFormat::kUInt8:
      return std::clamp(nearest + zero_point, 0.0, 255.0);
    case ElementFormat::kE4M3:  // which does not have a zero point
      return std::clamp(WithFraction(x, 3, -6), -448.0, 448.0);
    case ElementFormat::kE5M2:
      return WithFraction(math::ToDouble(math::ToHalf(x + zero_point)), 2, -14);
    default:
      return std::clamp(nearest + zero_point, least, 127.0);
  }
}

double OrZero(double x) { return std::isnan(x) ? 0 : x; }  // numerics_notes.md section 1

// Applies function(x, scale) to every element. In the software engine every tensor is fp16, which
// represents all numbers of the narrow formats, so a quantized tensor holds these numbers.
template <class F>
void ForEach(const void* prepared, const math::Numerics& n, const ConstView& in, View out,
             const F& function) {
  const Scales& scales = *static_cast<const Scales*>(prepared);
  const int64_t plane = in.dims.h() * in.dims.w();
  math::ParallelForItems(in.dims.elements() / plane, 4 * plane, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double scale = scales[scales.size() == 1 ? 0 : i % in.dims.c()];
      for (int64_t k = i * plane; k < (i + 1) * plane; ++k) {
        out.data[k] = math::Stored(function(math::ToDouble(in.data[k]), scale), n);
      }
    }
  });
}

void QuantBy(const P& p, const math::Numerics& n, const void* prepared,
             absl::Span<const ConstView> in, View out) {
  ForEach(prepared, n, in[0], out,
          [&](double x, double scale) { return Narrowed(p, n, OrZero(x / scale)); });
}

// Rounds once (numerics.json cmp-int8).
void DeQuantBy(const P& p, const math::Numerics& n, const void* prepared,
               absl::Span<const ConstView> in, View out) {
  const double zero_point = static_cast<double>(p.zero_point);
  ForEach(prepared, n, in[0], out,
          [&](double q, double scale) { return scale * (q - zero_point); });
}

using By = void (*)(const P&, const math::Numerics&, const void*, absl::Span<const ConstView>,
                    View);

template <By kBy>
void Compute(const P& p, const void* prepared, absl::Span<const ConstView> in, View out) {
  kBy(p, math::NumericsOf("A13"), prepared, in, out);
}

template <By kBy>
void Exact(const P& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  kBy(p, unit.numerics, unit.prepared, in, out);
}

// Supported only for a port. In MIL, only this operation can read the output type of Quant.
absl::Status WriteMil(const P& p, const Unit& unit, MilEmitter& e) {
  if (p.scales.count > 0 || p.zero_points.count > 0) {
    return absl::UnimplementedError(
        "dequantization with several scales is not supported in MIL files");
  }
  if (NarrowOf(p, e.BottomOf(0)) != ElementFormat::kUInt8 ||
      e.BottomOf(0).format != Format::kUInt8) {
    return absl::UnimplementedError("MIL dequantizes only a port of uint8");
  }
  std::vector<MilArgument> arguments = {{"input", {e.Stored(0)}}, {"scale", {e.Float(p.scale)}}};
  if (p.zero_point != 0) arguments.push_back({"zero_point", {e.Int(p.zero_point, "uint8")}});
  e.Result(e.Emit("dequantize", std::move(arguments), unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<P>& Quant() {
  static const UnitKindOf<P> kind({
      .type = "Quant",
      .judge = {.shape = Shape, .validate = ValidateQuant, .codegen = CodegenQuant},
      .spell = {.fields = kQuantFields},
      .run = {.prepare = Prepare, .compute = Compute<QuantBy>},
      .exact = {.compute = Exact<QuantBy>},
  });
  return kind;
}

const UnitKindOf<P>& DeQuant() {
  static const UnitKindOf<P> kind({
      .type = "DeQuant",
      .judge = {.shape = Shape, .validate = ValidateDeQuant, .codegen = CodegenQuant},
      .spell = {.fields = kDeQuantFields, .mil = WriteMil},
      .run = {.prepare = Prepare, .compute = Compute<DeQuantBy>},
      .exact = {.compute = Exact<DeQuantBy>},
  });
  return kind;
}

// The number of elements of the constant `name`; nullopt if it is a number or missing. A constant
// of rank 2 or more has a scale for each block, which is not lowered.
absl::StatusOr<std::optional<int64_t>> CountOf(MilContext& c, const char* name) {
  auto given = c.call().attributes.find(name);
  if (given != c.call().attributes.end() && !given->is_object()) return std::nullopt;
  ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> tensor, c.Constant(name));
  if (!tensor) return std::nullopt;
  if (tensor->shape.size() > 1) {
    if (c.route() == Route::kMil) return c.Refuse(rule::kQuantBlockwise);
    return c.NotLowered("quantization with a scale for each block");
  }
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(tensor->shape));
  if (count < 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "': want at least one element"));
  }
  return count;
}

// Reads scale and zero point. A zero point that is a tensor is assumed not to be 0.
absl::StatusOr<QuantParams> ReadScale(MilContext& c) {
  QuantParams p;
  ANEMONE_ASSIGN_OR_RETURN(std::optional<int64_t> scales, CountOf(c, "scale"));
  ANEMONE_ASSIGN_OR_RETURN(std::optional<int64_t> zero_points, CountOf(c, "zero_point"));
  if (scales) {
    p.scales = {.count = *scales, .given = true};
  } else {
    ANEMONE_ASSIGN_OR_RETURN(p.scale, c.Number("scale", 1));
  }
  if (zero_points) {
    p.zero_points = {.count = *zero_points, .given = true};
  } else {
    ANEMONE_ASSIGN_OR_RETURN(p.zero_point, c.Int("zero_point", 0));
  }
  if (!c.Has("axis")) return p;
  ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", 0));
  const bool several = p.scales.count > 1 || p.zero_points.count > 1;
  if (several && ToEngineAxis(c.rank(0), axis) != Axis::kC) {
    return c.NotLowered(
        "quantization with a scale for each element of an axis other than the channels");
  }
  return p;
}

absl::Status BuildQuantize(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(QuantParams p, ReadScale(c));
  ANEMONE_ASSIGN_OR_RETURN(std::string dtype, c.Text("output_dtype", "int8"));
  ANEMONE_RETURN_IF_ERROR(AnyCase::Read(dtype, p.narrow));
  Operand x = c.In(0);
  x = c.Add(Quant(), p, {x});
  return c.Out(x, c.ShapeOf(0));
}

// `then`: the activation after it, as in the compile probe of a port of the narrow format.
absl::Status BuildDequantize(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(QuantParams p, ReadScale(c));
  ANEMONE_ASSIGN_OR_RETURN(std::string then, c.Text("then", ""));
  Operand x = c.In(0);
  x = c.Add(DeQuant(), p, {x});
  if (then == "relu") {
    x = Activated(c, NeuronType::kReLU, x);
  } else if (!then.empty()) {
    return absl::InvalidArgumentError("dequantize, attribute 'then': want relu");
  }
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"quantize", BuildQuantize},
                                        {"dequantize", BuildDequantize}};

}  // namespace

KernelRows QuantRows() { return {{&Quant(), &DeQuant()}, {}, kOperations}; }

}  // namespace anemone
