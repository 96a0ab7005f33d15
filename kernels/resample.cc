// Resample: an image read at computed places, by the texture engine, from A14. Facts:
// validators.json Resample; compiler_texts.json for keys and texts.
#include <string>

#include "anemone/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil_sampling.h"
#include "kernels/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class CoordinateOrder : uint8_t { kXY, kYX };

absl::Span<const char* const> NamesOf(CoordinateOrder) {
  static constexpr const char* kNames[] = {"XY", "YX"};
  return kNames;
}

struct ResampleParams {
  AxisValues<Coordinates> coordinates;
  AxisValues<SamplingMethod> methods;
  AxisValues<SamplePadding> padding;
  AxisValues<CoordinateType> types;
  float background = 0;
  CoordinateOrder order = CoordinateOrder::kXY;
};

absl::StatusOr<Dims> Shape(const ResampleParams&, Bottoms in) {
  const Dims &image = in[0].dims, &places = in[1].dims;
  if (image.n() != places.n() && places.n() != 1) {
    return absl::InvalidArgumentError("want one set of coordinates, or one for every image");
  }
  return MakeDims(image.n(), image.c(), places.h(), places.w());
}

bool MixesRelative(const ResampleParams& p) {
  return Any(p.types, CoordinateType::kRelative) && Sampling{p.coordinates, {}, {}}.Normalized();
}

bool NearestOnBackground(const ResampleParams& p) {
  return Any(p.methods, SamplingMethod::kNearestNeighbor) &&
         Any(p.padding, SamplePadding::kBackground);
}

Verdict Validate(const ResampleParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kTextureEngine)) return judge.Reject(rule::kResampleTexture);
  const Dims& places = in[1].dims;
  if (places.d() != 1) return judge.Reject(rule::kResampleDepth);
  if (places.c() > 2) return judge.Reject(rule::kResampleChannels);
  if (MixesRelative(p)) return judge.Reject(rule::kResampleRelative);
  if (NearestOnBackground(p)) return judge.Reject(rule::kResampleNearestBackground);
  return judge.Accept();
}

using P = ResampleParams;
constexpr Field<P> kFields[] = {
    Key<&P::coordinates, AsCoordinates>("CoordinateInfo"),
    Key<&P::methods, PerAxis<kSamplingMethodKey>>("SamplingMethodInfo"),
    Key<&P::padding, PerAxis<kSamplePaddingKey>>("PaddingInfo"),
    Key<&P::background, AsHalfBits>("BackgroundValue"),
    Key<&P::types, PerAxis<kCoordinateTypeKey>>("CoordinateTypeInfo"),
    Key<&P::order>("CoordinateMode"),
};

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P>& kind = *new UnitKindOf<P>({.type = "Resample",
                                                         .bottoms = {2, 2},
                                                         .shape = Shape,
                                                         .validate = Validate,
                                                         .fields = kFields});
  return kind;
}

// MIL has the two coordinates in the last axis; the unit has them in the channels.
absl::StatusOr<Operand> ChannelFirst(MilContext& c, const Operand& places) {
  const Dims& dims = c.DimsOf(places);
  if (dims.c() <= 2 || dims.w() > 2) return places;
  return Permuted(c, places, {Axis::kN, Axis::kD, Axis::kW, Axis::kC, Axis::kH});
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(Sampling sampling, ReadSampling(c));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  ANEMONE_ASSIGN_OR_RETURN(Operand places, c.In(1));
  ANEMONE_ASSIGN_OR_RETURN(places, ChannelFirst(c, places));
  ResampleParams p{.methods = sampling.methods, .padding = sampling.padding};
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(Kind(), p, {x, places}));
  c.AddOutput("y", y);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"resample", Build}};

}  // namespace

KernelRows ResampleRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
