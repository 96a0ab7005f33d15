// ScaledElementWise: one operation on the elements of two tensors, times a gain. Facts:
// validators.json ScaledElementWise; hidden_layers.json ScaledElementWise; enums.json
// ZinIrScaledEWType; conflicts.md C-scaled-ew-sub, C-sew-scale.
#include <cstdint>

#include "anemone/status_macros.h"
#include "kernels/lowering.h"
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
  bool scale_is_float = false;  // ScaleType is there
  float pre_scale = 1, bias = 0;
  bool negate_first = false, negate_second = false;
};

absl::Status Complete(ScaledElementWiseParams& p, Bottoms, absl::Span<const Tensor>) {
  if (p.scale_is_float) p.scale = p.scale_number;
  return absl::OkStatus();
}

// Sub stands in the guide's list of types, has no code, and no compiler took it.
absl::StatusOr<Dims> Shape(const ScaledElementWiseParams& p, Bottoms in) {
  if (p.type == ScaledType::kSub) {
    return absl::InvalidArgumentError(
        "Type Sub: the compiler refuses it; use ElementWise Sub, or Add with NegateSrc2");
  }
  if (in.size() == 2 && in[0].dims != in[1].dims) {
    return absl::InvalidArgumentError("want two tensors of one shape");
  }
  return in[0].dims;
}

// The text speaks of one bottom too; the guide, which goes before it, of two.
Verdict Validate(const ScaledElementWiseParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  return in.size() == 2 ? judge.Accept() : judge.Reject(rule::kBottomCount);
}

// The bits of an fp16 number, or, with ScaleType, a float.
struct ScaleField {
  static Json Get(const ScaledElementWiseParams& p) { return AsHalfBits::Write(p.scale); }
  static absl::Status Set(ScaledElementWiseParams& p, const Json& from) {
    ANEMONE_RETURN_IF_ERROR(Plain::Read(from, p.scale_number));
    // A float here without ScaleType is truncated to an integer (netplist.md).
    return AsHalfBits::Read(
        from.is_number_float() ? Json(static_cast<int64_t>(p.scale_number)) : from, p.scale);
  }
};

// The type of a number; there is one.
Json NoKey(const ScaledElementWiseParams&) { return nullptr; }
absl::Status ReadFloat32(const Json& from) {
  return from == "Float32" ? absl::OkStatus() : absl::InvalidArgumentError("want Float32");
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
    {"Scale", ScaleField::Get, ScaleField::Set},
    Alias<&P::scale, AsHalfBits>("Scale_fp16_bits"),
    {"ScaleType", NoKey, SetScaleType},
    Key<&P::pre_scale, Plain, HasPreScale>("PreScale"),
    {"PreScaleType", [](const P& p) { return HasPreScale(p) ? Json("Float32") : Json(); },
     IgnoreType},
    Key<&P::bias, Plain, HasBias>("Bias"),
    {"BiasType", [](const P& p) { return HasBias(p) ? Json("Float32") : Json(); }, IgnoreType},
    Key<&P::negate_first, Plain, IsSet<&P::negate_first>>("NegateSrc1"),
    Key<&P::negate_second, Plain, IsSet<&P::negate_second>>("NegateSrc2"),
};

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P>& kind =
      *new UnitKindOf<P>({.type = "ScaledElementWise",
                          .min_family = kFamilyA13,
                          .bottoms = {1, 2, &rule::kScaledElementwiseInputs},
                          .complete = Complete,
                          .shape = Shape,
                          .validate = Validate,
                          .fields = kFields});
  return kind;
}

}  // namespace

KernelRows ScaledElementwiseRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
