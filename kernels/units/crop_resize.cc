// CropResize: crops boxes from an image and scales them to one size on the texture engine (A14).
// Facts: validators.json CropResize; compiler_texts.json for keys and texts.
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_sampling.h"
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
  if (!Sampling{p.coordinates, p.methods, p.padding}.SameOnAllAxes()) {
    return judge.Reject(rule::kCropResizeModes);
  }
  // The range's upper end is not published.
  if (p.crop_width < 1 || p.crop_height < 1) return judge.Reject(rule::kCropResizeSize);
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

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P> kind({
      .type = "CropResize",
      .family = &rule::kUnitFamily,
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields},
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

KernelRows CropResizeRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
