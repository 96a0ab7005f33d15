// CostVolume: |aux[x] - ref[x + d]| for every disparity d up to a range, a channel each. Direct
// authoring only. Facts: validators.json CostVolume; hidden_layers.json CostVolume.
#include "anemone/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil_gates.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct CostVolumeParams {
  int64_t direction = 0;
  int64_t range = 0;
  float scale_x = 1, scale_y = 1;
};

absl::StatusOr<Dims> Shape(const CostVolumeParams& p, Bottoms in) {
  Dims like = in[1].dims;
  like[Axis::kW] = in[0].dims.w();
  if (like != in[0].dims || like.c() != 1) {
    return absl::InvalidArgumentError("want two planes that differ in width only");
  }
  if (p.range < 0) return absl::InvalidArgumentError("DisparityRange: want 0 or more");
  if (p.range > in[1].dims.w())
    return absl::InvalidArgumentError("DisparityRange: beyond the width");
  like[Axis::kC] = p.range + 1;
  return like;
}

Verdict Validate(const CostVolumeParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (in[1].dims.w() - in[0].dims.w() < p.range) return judge.Reject(rule::kCostVolumeWidth);
  return judge.Accept();
}

template <auto kMember>
bool IsScaled(const CostVolumeParams& p) {
  return p.*kMember != 1;
}

using P = CostVolumeParams;
constexpr Field<P> kFields[] = {
    Required<&P::direction>("DisparityDirection"),
    Required<&P::range>("DisparityRange"),
    Key<&P::scale_x, Plain, IsScaled<&P::scale_x>>("ScaleFactorX"),
    Key<&P::scale_y, Plain, IsScaled<&P::scale_y>>("ScaleFactorY"),
};

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P>& kind = *new UnitKindOf<P>({.type = "CostVolume",
                                                         .min_family = kFamilyA13,
                                                         .bottoms = {2, 2},
                                                         .shape = Shape,
                                                         .validate = Validate,
                                                         .fields = kFields});
  return kind;
}

// The attributes are the unit's keys: the operation's own are not published.
absl::Status Build(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kNotConverted));
  CostVolumeParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.direction, c.Int("DisparityDirection", 0));
  ANEMONE_ASSIGN_OR_RETURN(p.range, c.Int("DisparityRange", 0));
  ANEMONE_ASSIGN_OR_RETURN(Operand aux, c.In(0));
  ANEMONE_ASSIGN_OR_RETURN(Operand ref, c.In(1));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(Kind(), p, {aux, ref}));
  c.AddOutput("y", y);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"cost_volume", Build}};

}  // namespace

KernelRows CostVolumeRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
