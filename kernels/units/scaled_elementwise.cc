// ScaledElementWise: an elementwise operation on two tensors, then a gain. Facts:
// validators.json ScaledElementWise; hidden_layers.json ScaledElementWise; enums.json
// ZinIrScaledEWType; conflicts.md C-scaled-ew-sub, C-sew-scale.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "base/status_macros.h"
#include "kernels/lowering.h"
#include "math/elementwise/elementwise.h"
#include "math/elementwise/unary.h"
#include "math/exact/exact_half.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class ScaledType : uint8_t { kAdd, kMult, kSumSquare, kMax, kMin, kSub };

absl::Span<const char* const> NamesOf(ScaledType) {
  static constexpr const char* kNames[] = {"Add", "Mult", "SumSquare", "Max", "Min", "Sub"};
  return kNames;
}

struct ScaledElementWiseParams {
  ScaledType type = ScaledType::kAdd;
  float scale = 1;
  float scale_number = 1;       // as written, for ScaleType Float32
  bool scale_is_float = false;  // whether there is a key ScaleType
  float pre_scale = 1, bias = 0;
  bool negate_first = false, negate_second = false;
};

absl::Status Complete(ScaledElementWiseParams& p, Bottoms, absl::Span<const Tensor>) {
  if (p.scale_is_float) p.scale = p.scale_number;
  return absl::OkStatus();
}

// Sub is in the guide's list of types, but it has no code and the compiler did not accept it.
absl::StatusOr<Dims> Shape(const ScaledElementWiseParams& p, Bottoms in) {
  if (p.type == ScaledType::kSub) {
    return absl::InvalidArgumentError(
        "Type Sub: the compiler refuses it; use ElementWise Sub, or Add with NegateSrc2");
  }
  if (in.size() == 2 && in[0].dims != in[1].dims) {
    return absl::InvalidArgumentError("want two tensors of the same shape");
  }
  return in[0].dims;
}

// The compiler's text also allows one bottom. The guide says two, and it takes precedence.
Verdict Validate(const ScaledElementWiseParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  return in.size() == 2 ? judge.Accept() : judge.Reject(rule::kBottomCount);
}

// The scale is the bits of an fp16 number or, with ScaleType, a float.
struct ScaleField {
  static Json Get(const ScaledElementWiseParams& p) { return AsHalfBits::Write(p.scale); }
  static absl::Status Set(ScaledElementWiseParams& p, const Json& from) {
    ANEMONE_RETURN_IF_ERROR(Plain::Read(from, p.scale_number));
    // Without ScaleType, a float is truncated to an integer (netplist.md).
    return AsHalfBits::Read(
        from.is_number_float() ? Json(static_cast<int64_t>(p.scale_number)) : from, p.scale);
  }
};

// Keys for the type of a number. The only type is Float32.
Json NoKey(const ScaledElementWiseParams&) { return nullptr; }
absl::Status ReadFloat32(const Json& from) {
  return IsText(from, "Float32") ? absl::OkStatus() : absl::InvalidArgumentError("want Float32");
}
absl::Status IgnoreType(ScaledElementWiseParams&, const Json& from) { return ReadFloat32(from); }
absl::Status SetScaleType(ScaledElementWiseParams& p, const Json& from) {
  p.scale_is_float = true;
  return ReadFloat32(from);
}

bool HasPreScale(const ScaledElementWiseParams& p) { return p.pre_scale != 1; }
bool HasBias(const ScaledElementWiseParams& p) { return p.bias != 0; }
template <auto kMember>
bool IsSet(const ScaledElementWiseParams& p) {
  return p.*kMember;
}

using P = ScaledElementWiseParams;
constexpr Field<P> kFields[] = {
    Required<&P::type>("Type"),
    {"Scale", ScaleField::Get, ScaleField::Set, false, ValueType::kInt},
    Alias<&P::scale, AsHalfBits>("Scale_fp16_bits"),
    {"ScaleType", NoKey, SetScaleType, false, ValueType::kName},
    Key<&P::pre_scale, Plain, HasPreScale>("PreScale"),
    {"PreScaleType", [](const P& p) { return HasPreScale(p) ? Json("Float32") : Json(); },
     IgnoreType, false, ValueType::kName},
    Key<&P::bias, Plain, HasBias>("Bias"),
    {"BiasType", [](const P& p) { return HasBias(p) ? Json("Float32") : Json(); }, IgnoreType,
     false, ValueType::kName},
    Key<&P::negate_first, Plain, IsSet<&P::negate_first>>("NegateSrc1"),
    Key<&P::negate_second, Plain, IsSet<&P::negate_second>>("NegateSrc2"),
};

absl::StatusOr<Prepared> Prepare(const P& p, Bottoms, absl::Span<const Tensor>) {
  if (!HasPreScale(p)) return Prepared();
  return absl::UnimplementedError(
      "ScaledElementWise with PreScale can be checked but not run: what it scales is not "
      "published");
}

// The binary operation of a type; nullopt for SumSquare, which is not a single operation.
std::optional<math::BinaryOp> OperationOf(ScaledType type) {
  switch (type) {
    case ScaledType::kAdd:
      return math::BinaryOp::kAdd;
    case ScaledType::kMult:
      return math::BinaryOp::kMul;
    case ScaledType::kMax:
      return math::BinaryOp::kMax;
    case ScaledType::kMin:
      return math::BinaryOp::kMin;
    case ScaledType::kSumSquare:
    case ScaledType::kSub:  // refused by Shape()
      break;
  }
  return std::nullopt;
}

// The two operands, negated if the keys say so.
struct Signed {
  Signed(const P& p, absl::Span<const ConstView> in) : x(in[0].span()), z(in[1].span()) {
    for (auto [negate, source, to] : {std::tuple(p.negate_first, &x, &negated[0]),
                                      std::tuple(p.negate_second, &z, &negated[1])}) {
      if (!negate) continue;
      to->resize(source->size());
      math::Neg(*source, absl::MakeSpan(*to));
      *source = *to;
    }
  }
  absl::Span<const math::Half> x, z;
  std::vector<math::Half> negated[2];
};

// Rounds before and after the gain (numerics.json ew-scaled). On silicon, Mult ignores the gain
// (netplist.md). That was seen with one of the two keys for the gain, the one that Anemone writes,
// and is assumed for both. Where the sources are silent, the simplest interpretation is used:
// SumSquare is x * x + z * z; a source is negated before the operation; the bias is added after the
// gain, with one rounding for both as in GOC.
void Compute(const P& p, const void*, absl::Span<const ConstView> in, View out) {
  const math::Extents& extents = out.dims.extent;
  const Signed operands(p, in);
  const absl::Span<const math::Half> x = operands.x, z = operands.z;
  if (const std::optional<math::BinaryOp> operation = OperationOf(p.type)) {
    math::Binary(*operation, x, extents, z, extents, out.span(), extents);
  } else {
    for (size_t i = 0; i < x.size(); ++i) {  // squares of fp16 values are exact in fp32
      const float a = math::ToFloat(x[i]), b = math::ToFloat(z[i]);
      out.data[i] = math::ToHalf(a * a + b * b);
    }
  }
  const float scale = p.type == ScaledType::kMult ? 1 : math::RoundToHalf(p.scale);
  if (scale != 1 || p.bias != 0) math::Affine(out.span(), scale, p.bias, out.span());
}

double Combined(const P& p, double x, double z) {
  switch (p.type) {
    case ScaledType::kAdd:
      return x + z;
    case ScaledType::kMult:
      return x * z;
    case ScaledType::kMax:
      return std::max(x, z);
    case ScaledType::kMin:
      return std::min(x, z);
    default:
      return x * x + z * z;
  }
}

void Exact(const P& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  const math::Numerics& n = unit.numerics;
  const Signed operands(p, in);
  const double scale = p.type == ScaledType::kMult ? 1 : math::RoundToHalf(p.scale);
  const bool rounds_first = n.ew_scaled == math::EwScaled::kTwoRounding;
  for (size_t i = 0; i < operands.x.size(); ++i) {
    double y = Combined(p, math::ToDouble(operands.x[i]), math::ToDouble(operands.z[i]));
    if (rounds_first) y = math::Rounded(y, n);
    if (scale != 1 || p.bias != 0) y = y * scale + p.bias;
    out.data[i] = math::Stored(y, n);
  }
}

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P> kind({
      .type = "ScaledElementWise",
      .family = &rule::kUnitFamily,
      .bottoms = {1, 2, &rule::kScaledElementwiseInputs},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// (x op z) * number becomes one unit. It rounds at the same points as ElementWise and GOC, so the
// bits are the same. If a device rounds once (numerics.json ew-scaled, one-rounding), the results
// differ by at most half an ulp of x op z times the gain. Mult is not included, because it ignores
// the gain.
constexpr struct {
  const char* op;
  ScaledType type;
} kScaledOperators[] = {
    {"Add", ScaledType::kAdd}, {"Max", ScaledType::kMax}, {"Min", ScaledType::kMin}};

struct ScaledForm {
  const Node* inner = nullptr;
  ScaledElementWiseParams params;
};

std::optional<ScaledForm> FindScaled(const GraphView& view, const Node& anchor) {
  const auto& values = view.graph.values;
  for (int i = 0; i < 2; ++i) {
    const std::optional<double> number = view.Scalar(anchor.inputs[i]);
    if (!number || !std::isfinite(math::ToDouble(math::ToHalf(*number)))) continue;
    for (const auto& row : kScaledOperators) {
      const Node* inner = view.OnlyProducer(anchor.inputs[1 - i], row.op);
      if (inner == nullptr || inner->inputs.size() != 2) continue;
      // The unit does not broadcast. Constants are left to the lowerings that fold them.
      for (ValueId v : {inner->inputs[0], inner->inputs[1], anchor.outputs[0]}) {
        if (values[v].constant || !values[v].is_static()) return std::nullopt;
        if (values[v].dims() != values[inner->inputs[0]].dims()) return std::nullopt;
      }
      const float scale = math::ToFloat(math::ToHalf(*number));
      return ScaledForm{inner, {.type = row.type, .scale = scale}};
    }
  }
  return std::nullopt;
}

bool MatchScaled(const GraphView& view, const Node& anchor, Match& match) {
  std::optional<ScaledForm> form = FindScaled(view, anchor);
  if (form) match.nodes = {view.IdOf(*form->inner)};
  return form.has_value();
}

absl::Status LowerScaled(const Match& match, LowerContext& c) {
  if (c.route() == Route::kMil) return c.NotLowered("ScaledElementWise on route mil");
  const Node& anchor = c.anchor(match);
  const ScaledForm form = *FindScaled(c.view(), anchor);
  Operand x = c.In(form.inner->inputs[0]);
  Operand z = c.In(form.inner->inputs[1]);
  Operand y = c.Add(Kind(), form.params, {x, z});
  return c.Out(anchor.outputs[0], y);
}

constexpr Lowering kLowerings[] = {{.op = "Mul",
                                    .pattern = "scaled-elementwise",
                                    .rewritten = true,
                                    .match = MatchScaled,
                                    .lower = LowerScaled}};

}  // namespace

KernelRows ScaledElementwiseRows() { return {{&Kind()}, kLowerings, {}}; }

}  // namespace anemone
