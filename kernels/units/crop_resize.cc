// CropResize: crops boxes from an image and scales them to one size on the texture engine (A14).
// Facts: validators.json CropResize; compiler_texts.json for keys and texts; numerics.json
// ew-texture.
//
// How a box is given is not published (the key CoordinateMode), nor are the positions that are
// sampled in it, so a verdict on a unit with sampling modes has the status `unknown`. The software
// engine runs boxes of two corners (left, top, right, bottom) in element numbers, on the grid
// UnalignedCorners: sample i of n is at start + (i + 0.5) * (end - start) / n - 0.5, as in ONNX's
// RoiAlign.
#include "kernels/units/crop_resize.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_sampling.h"
#include "kernels/resize/resize.h"
#include "kernels/units/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct CropResizeParams {
  AxisValues<Coordinates> coordinates;
  AxisValues<SamplingMethod> methods;
  AxisValues<SamplePadding> padding;
  AxisValues<SamplingGridMode> grid;
  float background = 0;
  std::string mode;  // how a box is given; its names are not published
  int64_t crop_width = 1, crop_height = 1;
  int64_t width = 1, height = 1;  // of the output
};

// There is one image or one box per image: output i is box i of image i, or of the only image.
absl::StatusOr<Dims> Shape(const CropResizeParams& p, Bottoms in) {
  if (p.width < 1 || p.height < 1) {
    return absl::InvalidArgumentError("OutputWidth, OutputHeight: want 1 or more");
  }
  return MakeDims(in[1].dims.n(), in[0].dims.c(), p.height, p.width);
}

Verdict Validate(const CropResizeParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (in[1].format != Format::kFloat16) return judge.Reject(rule::kCropResizeIndex);
  if (!SamplingForm{p.coordinates, p.methods, p.padding}.SameOnAllAxes()) {
    return judge.Reject(rule::kCropResizeModes);
  }
  // The range's upper end is not published.
  if (p.crop_width < 1 || p.crop_height < 1) return judge.Reject(rule::kCropResizeSize);
  if (!p.coordinates.empty()) judge.Doubt(rule::kCropResizeBoxes);
  return judge.Accept();
}

Verdict Codegen(const CropResizeParams&, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  return judge.Has(Cap::kTextureEngine) ? judge.Accept() : judge.Reject(rule::kCropResizeTexture);
}

using P = CropResizeParams;
bool HasMode(const P& p) { return !p.mode.empty(); }
constexpr Field<P> kFields[] = {
    Key<&P::coordinates, AsCoordinates>("CoordinateInfo"),
    Key<&P::methods, PerAxis<kSamplingMethodKey>>("SamplingMethodInfo"),
    Key<&P::padding, PerAxis<kSamplePaddingKey>>("PaddingInfo"),
    Key<&P::background, AsHalfBits>("BackgroundValue"),
    Key<&P::grid, PerAxis<kSamplingGridModeKey>>("SamplingGridInfo"),
    Key<&P::mode, Plain, HasMode>("CoordinateMode"),
    Key<&P::crop_width>("CropWidth"),
    Key<&P::crop_height>("CropHeight"),
    Required<&P::width>("OutputWidth"),
    Required<&P::height>("OutputHeight"),
};

constexpr Axis kCropped[] = {Axis::kW, Axis::kH};
constexpr int64_t kCorners = 4;  // numbers of a box

bool IsRun(const P& p, Axis axis) {
  return Says(p.coordinates, axis, {CoordinateMode::kNonNormalized, {}}) &&
         Says(p.methods, axis, SamplingMethod::kLinear) &&
         Says(p.padding, axis, SamplePadding::kReplication) &&
         Says(p.grid, axis, SamplingGridMode::kUnalignedCorners);
}

absl::StatusOr<Prepared> Prepare(const P& p, Bottoms in, absl::Span<const Tensor>) {
  const Dims &image = in[0].dims, &boxes = in[1].dims;
  const bool known = std::all_of(std::begin(kCropped), std::end(kCropped),
                                 [&](Axis axis) { return IsRun(p, axis); });
  if (!known || !p.mode.empty() || image.d() != 1 || (image.n() != 1 && image.n() != boxes.n()) ||
      boxes != MakeDims(boxes.n(), kCorners, 1, 1)) {
    return absl::UnimplementedError(
        "CropResize can be run only with boxes of two corners that are not normalized, linear "
        "sampling on the grid UnalignedCorners, and padding Replication; it can be checked");
  }
  return Prepared();
}

// The elements around each of `count` samples from `start` to `end`. Samples outside are moved to
// the border; one that is not a number, to the first element.
math::AxisTaps TapsIn(float start, float end, int64_t count, int64_t extent) {
  Positions at(count);
  for (int64_t i = 0; i < count; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    const double place = start + share * (static_cast<double>(end) - start) - 0.5;
    at[i] = place > 0 ? std::min(place, static_cast<double>(extent - 1)) : 0;
  }
  return TapsOf(at, extent);
}

// Calls crop(shape, taps of the rows, taps of the columns, image, result) for each box.
template <class Crop>
void ForBoxes(const P& p, absl::Span<const ConstView> in, View out, const Crop& crop) {
  const Dims& image = in[0].dims;
  const math::ResizeShape shape{.planes = image.c(), .in_h = image.h(), .in_w = image.w()};
  const int64_t size = image.c() * image.h() * image.w(), cropped = image.c() * p.height * p.width;
  for (int64_t box = 0; box < out.dims.n(); ++box) {
    const math::Half* corners = in[1].data + box * kCorners;
    const auto taps = [&](int first, int64_t count, int64_t extent) {
      return TapsIn(math::ToFloat(corners[first]), math::ToFloat(corners[first + 2]), count,
                    extent);
    };
    crop(shape, taps(1, p.height, image.h()), taps(0, p.width, image.w()),
         in[0].span().subspan(image.n() == 1 ? 0 : box * size, size),
         out.span().subspan(box * cropped, cropped));
  }
}

void Compute(const P& p, const void*, absl::Span<const ConstView> in, View out) {
  ForBoxes(p, in, out, math::ResizeLinear);
}

void Exact(const P& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  ForBoxes(
      p, in, out,
      [&](const math::ResizeShape& shape, const math::AxisTaps& rows, const math::AxisTaps& columns,
          absl::Span<const math::Half> x, absl::Span<math::Half> y) {
        InterpolateExactly(unit.numerics, shape, rows, columns, x, y);
      });
}

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P> kind({
      .type = "CropResize",
      .family = &rule::kUnitFamily,
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

absl::StatusOr<SamplingGridMode> ReadGrid(MilContext& c) {
  static constexpr std::pair<const char*, SamplingGridMode> kModes[] = {
      {"DEFAULT", SamplingGridMode::kDefault},
      {"STRICT_ALIGN_CORNERS", SamplingGridMode::kStrictAlignedCorners},
      {"ALIGN_CORNERS", SamplingGridMode::kAlignedCorners},
      {"UNALIGN_CORNERS", SamplingGridMode::kUnalignedCorners},
      {"OFFSET_CORNERS", SamplingGridMode::kOffsetCorners}};
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, c.Text("sampling_mode", "DEFAULT"));
  return WordOf(c, "sampling_mode", mode, kModes);
}

// The boxes are K x 4 or K x 4 x 1 x 1; each may have the index of its image before the four
// numbers. They are placed on the batch axis.
absl::Status Build(MilContext& c) {
  CropResizeParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.height, c.Int("target_height", 1));
  ANEMONE_ASSIGN_OR_RETURN(p.width, c.Int("target_width", 1));
  ANEMONE_ASSIGN_OR_RETURN(SamplingGridMode grid, ReadGrid(c));
  ANEMONE_ASSIGN_OR_RETURN(float background, c.Number("pad_value", 0));
  p.background = background;
  p.grid = {{Axis::kW, grid}, {Axis::kH, grid}};
  c.Ignore("normalized_coordinates");
  c.Ignore("spatial_scale");
  c.Ignore("box_coordinate_mode");
  Operand x = c.In(0);
  Operand boxes = c.In(1);
  const std::vector<int64_t>& shape = c.ShapeOf(1);
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(shape));
  if (shape.empty() || shape[0] < 1)
    return absl::InvalidArgumentError("crop_resize: want at least one box");
  boxes = ReshapeToDims(c, boxes, MakeDims(shape[0], count / shape[0], 1, 1));
  Operand y = c.Add(Kind(), p, {x, boxes});
  c.AddOutput("y", y);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"crop_resize", Build}};

}  // namespace

Operand Cropped(NetworkBuilder& c, const Operand& x, const Operand& boxes, int64_t height,
                int64_t width) {
  P p{.width = width, .height = height};
  for (Axis axis : kCropped) {
    p.coordinates.push_back({axis, {CoordinateMode::kNonNormalized, {}}});
    p.methods.push_back({axis, SamplingMethod::kLinear});
    p.padding.push_back({axis, SamplePadding::kReplication});
    p.grid.push_back({axis, SamplingGridMode::kUnalignedCorners});
  }
  return c.Add(Kind(), std::move(p), {x, boxes});
}

KernelRows CropResizeRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
