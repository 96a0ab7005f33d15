// AffineTransform: transforms an image by a 2 x 3 matrix on the texture engine. Needs A14. Facts:
// validators.json AffineTransform. The netplist keys are not published; MIL's names are used here.
//
// The compiler makes a Resample with a computed grid of it (validators.json). Coordinates from -1
// to 1 along each axis are multiplied by the matrix, as by ONNX's AffineGrid and GridSample, and
// the positions in pixels are rounded to fp16. MIL's other coordinates can be checked but not run.
#include "kernels/units/affine_transform.h"

#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_sampling.h"
#include "kernels/resize/sampler.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class CoordinatesMode : uint8_t { kNotGiven, kNormalized };

absl::Span<const char* const> NamesOf(CoordinatesMode) {
  static constexpr const char* kNames[] = {"", "normalized_minus_one_to_one"};
  return kNames;
}

struct AffineTransformParams {
  int64_t height = 0, width = 0;  // of the output; 0: that of the input
  CoordinatesMode coordinates = CoordinatesMode::kNotGiven;
  SamplingMethod method = SamplingMethod::kLinear;
  SamplePadding padding = SamplePadding::kBackground;
  bool aligned = false;  // -1 and 1 are the centers of the border elements, else their outer edges
};

absl::Status Complete(AffineTransformParams& p, Bottoms in, absl::Span<const Tensor>) {
  if (p.height == 0) p.height = in[0].dims.h();
  if (p.width == 0) p.width = in[0].dims.w();
  return absl::OkStatus();
}

absl::StatusOr<Dims> Shape(const AffineTransformParams& p, Bottoms in) {
  if (p.height < 1 || p.width < 1) {
    return absl::InvalidArgumentError("output_height, output_width: want 1 or more");
  }
  return MakeDims(in[0].dims.n(), in[0].dims.c(), p.height, p.width);
}

bool HasSampling(const AffineTransformParams& p) {
  return p.coordinates != CoordinatesMode::kNotGiven;
}

// There is one matrix for all images or one for each.
Verdict Validate(const AffineTransformParams& p, Bottoms in, const Target& target, Route route) {
  constexpr int64_t kCoefficients = 6;
  Judge judge(target, route);
  if (!judge.Has(Cap::kTextureEngine)) return judge.Reject(rule::kAffineTransformArch);
  const int64_t count = ElementCount(in[1].dims.extent).value_or(0);
  const bool fits = count == kCoefficients ||
                    (count % kCoefficients == 0 && count / kCoefficients == in[0].dims.n());
  if (!fits || in[1].format != Format::kFloat16) return judge.Reject(rule::kAffineTransformMatrix);
  if (HasSampling(p)) judge.Doubt(rule::kResampleModes);
  return judge.Accept();
}

constexpr Field<AffineTransformParams> kFields[] = {
    Key<&AffineTransformParams::height>("output_height"),
    Key<&AffineTransformParams::width>("output_width"),
    Key<&AffineTransformParams::coordinates, Plain, HasSampling>("coordinates_mode"),
    Key<&AffineTransformParams::method, Plain, HasSampling>("sampling_mode"),
    Key<&AffineTransformParams::padding, Plain, HasSampling>("padding_mode"),
    Key<&AffineTransformParams::aligned, Plain, HasSampling>("align_corners"),
};

absl::StatusOr<Prepared> Prepare(const AffineTransformParams& p, Bottoms in,
                                 absl::Span<const Tensor>) {
  if (p.coordinates == CoordinatesMode::kNormalized && CanSample(p.padding) &&
      in[0].dims.d() == 1) {
    return Prepared();
  }
  return absl::UnimplementedError(
      "AffineTransform can be run only with coordinates_mode normalized_minus_one_to_one and a "
      "known padding mode, and with images of depth 1; it can be checked");
}

// The coordinate of element `at`. The only element of an aligned axis is at -1, as in ONNX Runtime.
double Coordinate(int64_t at, int64_t extent, bool aligned) {
  const auto x = static_cast<double>(at), n = static_cast<double>(extent);
  if (!aligned) return (2 * x + 1) / n - 1;
  return extent == 1 ? -1 : 2 * x / (n - 1) - 1;
}

// The position, in elements, of a coordinate.
float Position(double coordinate, int64_t extent, bool aligned) {
  const auto n = static_cast<double>(extent);
  const double place = aligned ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
  return math::ToFloat(math::ToHalf(place));
}

// Calls sample(sampler, place).
template <class Call>
void WithPlaces(const AffineTransformParams& p, absl::Span<const ConstView> in,
                const Call& sample) {
  constexpr int64_t kCoefficients = 6;
  const Dims& image = in[0].dims;
  const bool shared = in[1].dims.elements() == kCoefficients;
  const auto place = [&](int64_t n, int64_t point) -> SamplePoint {
    const math::Half* m = in[1].data + (shared ? 0 : n * kCoefficients);
    const double x = Coordinate(point % p.width, p.width, p.aligned);
    const double y = Coordinate(point / p.width, p.height, p.aligned);
    const auto row = [&](int i) {
      return math::ToDouble(m[i]) * x + math::ToDouble(m[i + 1]) * y + math::ToDouble(m[i + 2]);
    };
    return {Position(row(0), image.w(), p.aligned), Position(row(3), image.h(), p.aligned)};
  };
  sample(Sampler{.methods = {p.method, p.method},
                 .padding = {p.padding, p.padding},
                 .background = math::kHalfZero},
         place);
}

void Compute(const AffineTransformParams& p, const void*, absl::Span<const ConstView> in,
             View out) {
  WithPlaces(p, in, [&](const Sampler& s, SamplePointOf place) { Sample(s, in[0], place, out); });
}

void Exact(const AffineTransformParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  WithPlaces(p, in, [&](const Sampler& s, SamplePointOf place) {
    SampleExactly(s, unit.numerics, in[0], place, out);
  });
}

const UnitKindOf<AffineTransformParams>& Kind() {
  static const UnitKindOf<AffineTransformParams> kind({
      .type = "AffineTransform",
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

absl::Status Build(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(ReadSampling(c).status());
  Operand x = c.In(0);
  Operand matrix = c.In(1);
  AffineTransformParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.height, c.Int("output_height", c.DimsOf(x).h()));
  ANEMONE_ASSIGN_OR_RETURN(p.width, c.Int("output_width", c.DimsOf(x).w()));
  Operand y = c.Add(Kind(), p, {x, matrix});
  c.AddOutput("y", y);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"affine", Build}};

}  // namespace

Operand AffineTransformed(NetworkBuilder& c, const Operand& x, const Operand& matrices,
                          const AffineSampling& sampling) {
  return c.Add(Kind(),
               AffineTransformParams{.height = sampling.height,
                                     .width = sampling.width,
                                     .coordinates = CoordinatesMode::kNormalized,
                                     .method = sampling.method,
                                     .padding = sampling.padding,
                                     .aligned = sampling.aligned},
               {x, matrices});
}

KernelRows AffineTransformRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
