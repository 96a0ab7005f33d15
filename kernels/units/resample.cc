// Resample: samples an image at computed positions on the texture engine. Needs A14. Facts:
// validators.json Resample; compiler_texts.json for keys and texts.
#include <algorithm>
#include <iterator>
#include <string>

#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_sampling.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class CoordinateOrder : uint8_t { kXY, kYX };

absl::Span<const char* const> NamesOf(CoordinateOrder) {
  static constexpr const char* kNames[] = {"XY", "YX"};
  return kNames;
}

constexpr Axis kSampled[] = {Axis::kW, Axis::kH};

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

bool IsNormalized(const ResampleParams& p, Axis axis) {
  return std::any_of(p.coordinates.begin(), p.coordinates.end(), [&](const auto& entry) {
    return entry.axis == axis && entry.value.mode != CoordinateMode::kNonNormalized;
  });
}

bool MixesRelative(const ResampleParams& p, Axis axis) {
  return Says(p.types, axis, CoordinateType::kRelative) &&
         (IsNormalized(p, axis) || Says(p.padding, axis, SamplePadding::kReflective));
}

bool NearestOnBackground(const ResampleParams& p, Axis axis) {
  return Says(p.methods, axis, SamplingMethod::kNearestNeighbor) &&
         Says(p.padding, axis, SamplePadding::kBackground);
}

Verdict Validate(const ResampleParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kTextureEngine)) return judge.Reject(rule::kResampleTexture);
  const Dims& places = in[1].dims;
  if (places.d() != 1) return judge.Reject(rule::kResampleDepth);
  if (places.c() > rule::kResampleChannels.limit) return judge.Reject(rule::kResampleChannels);
  for (Axis axis : kSampled) {
    if (MixesRelative(p, axis)) return judge.Reject(rule::kResampleRelative);
    if (NearestOnBackground(p, axis)) return judge.Reject(rule::kResampleNearestBackground);
  }
  return judge.Accept();
}

template <class T>
bool IsOfSampled(const AxisValues<T>& values) {
  return std::all_of(values.begin(), values.end(), [](const AxisValue<T>& entry) {
    return std::find(std::begin(kSampled), std::end(kSampled), entry.axis) != std::end(kSampled);
  });
}

absl::Status Complete(ResampleParams& p, Bottoms, absl::Span<const Tensor>) {
  if (IsOfSampled(p.coordinates) && IsOfSampled(p.methods) && IsOfSampled(p.padding) &&
      IsOfSampled(p.types)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("Coordinate: want Width or Height");
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
  static const UnitKindOf<P> kind({
      .type = "Resample",
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete},
  });
  return kind;
}

// In MIL the last axis holds the two coordinates; in the unit the channels do.
Operand ChannelFirst(MilContext& c, const Operand& places) {
  const Dims& dims = c.DimsOf(places);
  if (dims.c() <= 2 || dims.w() > 2) return places;
  return Permuted(c, places, {Axis::kN, Axis::kD, Axis::kW, Axis::kC, Axis::kH});
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(Sampling sampling, ReadSampling(c));
  Operand x = c.In(0);
  Operand places = c.In(1);
  places = ChannelFirst(c, places);
  ResampleParams p{.methods = sampling.methods, .padding = sampling.padding};
  Operand y = c.Add(Kind(), p, {x, places});
  c.AddOutput("y", y);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"resample", Build}};

}  // namespace

KernelRows ResampleRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
