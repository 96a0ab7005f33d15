// Resample: samples an image at computed positions on the texture engine. Needs A14. Facts:
// validators.json Resample; compiler_texts.json for keys and texts; numerics.json ew-texture.
//
// What the unit computes is not published beyond the names of its keys, so a verdict on a unit with
// such keys has the status `unknown`. The software engine runs absolute coordinates that are
// element numbers: channel 0 holds the columns if the order is XY, and a tap outside of the image
// is read by the padding mode. Nearest rounds half to even, as ONNX's GridSample does.
#include "kernels/units/resample.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_sampling.h"
#include "kernels/resize/sampler.h"
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
  if (!p.coordinates.empty() && !p.padding.empty()) judge.Doubt(rule::kResampleModes);
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

// The value that is listed for the axis; null if there is none.
template <class T>
const T* ValueOf(const AxisValues<T>& values, Axis axis) {
  for (const AxisValue<T>& entry : values) {
    if (entry.axis == axis) return &entry.value;
  }
  return nullptr;
}

// The meaning of a key that is absent is not published, so all of them must be there.
absl::StatusOr<Prepared> Prepare(const P& p, Bottoms in, absl::Span<const Tensor>) {
  for (Axis axis : kSampled) {
    const SamplePadding* padding = ValueOf(p.padding, axis);
    if (in[0].dims.d() != 1 || in[1].dims.c() != std::ssize(kSampled) || IsNormalized(p, axis) ||
        ValueOf(p.coordinates, axis) == nullptr || ValueOf(p.methods, axis) == nullptr ||
        padding == nullptr || !CanSample(*padding) ||
        !Says(p.types, axis, CoordinateType::kAbsolute)) {
      return absl::UnimplementedError(
          "Resample can be run only with two absolute coordinates that are not normalized, with a "
          "known padding mode and sampling method for both axes, and with images of depth 1; it "
          "can be checked");
    }
  }
  return Prepared();
}

Sampler SamplerOf(const P& p) {
  Sampler s{.background = math::ToHalf(p.background)};
  for (size_t i = 0; i < std::size(kSampled); ++i) {
    s.methods[i] = *ValueOf(p.methods, kSampled[i]);
    s.padding[i] = *ValueOf(p.padding, kSampled[i]);
  }
  return s;
}

// Calls sample(place) with the function that gives the position of a point.
template <class Sample>
void WithPlaces(const P& p, const ConstView& places, const Sample& sample) {
  const int64_t points = places.dims.h() * places.dims.w();
  const int64_t x = p.order == CoordinateOrder::kYX ? points : 0, y = points - x;
  sample([&](int64_t image, int64_t point) -> SamplePoint {
    const math::Half* set = places.data + (places.dims.n() == 1 ? 0 : image) * 2 * points + point;
    return {math::ToFloat(set[x]), math::ToFloat(set[y])};
  });
}

void Compute(const P& p, const void*, absl::Span<const ConstView> in, View out) {
  WithPlaces(p, in[1], [&](SamplePointOf place) { Sample(SamplerOf(p), in[0], place, out); });
}

void Exact(const P& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  WithPlaces(p, in[1], [&](SamplePointOf place) {
    SampleExactly(SamplerOf(p), unit.numerics, in[0], place, out);
  });
}

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P> kind({
      .type = "Resample",
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
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
  ANEMONE_ASSIGN_OR_RETURN(SamplingForm sampling, ReadSampling(c));
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

Operand Resampled(NetworkBuilder& c, const Operand& x, const Operand& places, SamplingMethod method,
                  SamplePadding padding) {
  P p;
  for (Axis axis : kSampled) {
    p.coordinates.push_back({axis, {.mode = CoordinateMode::kNonNormalized, .range = {}}});
    p.methods.push_back({axis, method});
    p.padding.push_back({axis, padding});
    p.types.push_back({axis, CoordinateType::kAbsolute});
  }
  return c.Add(Kind(), std::move(p), {x, places});
}

KernelRows ResampleRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
