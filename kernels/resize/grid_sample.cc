// GridSample of images at positions computed at run time, and AffineGrid, which computes such
// positions. The texture engine samples in one Resample unit; other targets multiply by matrices of
// weights.
//
// The grid and the positions in pixels are fp16, so a position is off by up to extent / 2048 pixels
// at the border of the image. A bilinear result is off by that fraction of the difference between
// neighboring pixels.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/resize/hat_weights.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/affine_transform.h"
#include "kernels/units/goc.h"
#include "kernels/units/input_view.h"
#include "kernels/units/matrix_multiplication.h"
#include "kernels/units/reduction.h"
#include "kernels/units/resample.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct Form {
  std::string padding;
  bool aligned = false;
};

// Positions mirrored at `low` and `high` until they are between them.
Operand Reflected(LowerContext& c, Operand x, double low, double high) {
  const double span = high - low;
  if (span <= 0) return ScaleAndShift(c, x, 0, low);
  x = ScaleAndShift(c, x, 1, -low);
  x = Absolute(c, x);
  Operand rounds = ScaleAndShift(c, x, 0.5 / span, 0);
  rounds = Activated(c, NeuronType::kFloor, rounds);
  rounds = ScaleAndShift(c, rounds, 2 * span, 0);
  x = Combined(c, ElementWiseType::kSub, x, rounds);
  x = ScaleAndShift(c, x, 1, -span);
  x = Absolute(c, x);
  return ScaleAndShift(c, x, -1, low + span);
}

// The position of an element of an axis is coordinate * scale + offset.
struct Denormalized {
  double scale, offset;
};

// If aligned, element 0 is at -1 and the last element at 1; else the outer edges of these elements
// are at -1 and 1.
Denormalized PixelsOf(int64_t extent, bool aligned) {
  const double last = static_cast<double>(extent - 1);
  return {(aligned ? last : static_cast<double>(extent)) / 2, last / 2};
}

// The weights of each element of an axis.
Operand Weights(LowerContext& c, Operand places, int64_t extent, const Form& form) {
  const double last = static_cast<double>(extent - 1);
  const Denormalized pixels = PixelsOf(extent, form.aligned);
  places = ScaleAndShift(c, places, pixels.scale, pixels.offset);
  if (form.padding == "reflection") {
    const double edge = form.aligned ? 0 : 0.5;
    places = Reflected(c, places, -edge, last + edge);
  }
  if (form.padding != "zeros") {
    places = Activated(c, NeuronType::kClampedReLU, places, 0, static_cast<float>(last));
  }
  return HatWeights(c, places, extent);
}

// What both lowerings read: an image, its grid, and the attributes.
struct Request {
  Form form;
  std::string mode;
  std::vector<int64_t> image, grid;

  int64_t points() const { return grid[1] * grid[2]; }
};

absl::StatusOr<Request> ReadRequest(const Node& node, LowerContext& c) {
  Attributes a(node);
  Request r;
  ANEMONE_ASSIGN_OR_RETURN(r.mode, a.String("mode", "linear"));
  ANEMONE_ASSIGN_OR_RETURN(r.form.padding, a.String("padding_mode", "zeros"));
  ANEMONE_ASSIGN_OR_RETURN(int64_t aligned, a.Int("align_corners", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  r.form.aligned = aligned != 0;
  ANEMONE_ASSIGN_OR_RETURN(r.image, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(r.grid, c.ShapeOf(node.inputs[1]));
  if (r.image.size() != 4) return c.NotLowered("GridSample with other than two spatial axes");
  if (r.grid.size() != 4 || r.grid[3] != 2 || r.grid[0] != r.image[0]) {
    return absl::InvalidArgumentError("grid: want two coordinates for each output pixel");
  }
  if (std::count(r.image.begin(), r.image.end(), 0) > 0 || r.points() < 1)
    return c.Refuse(rule::kEmptyTensor);
  return r;
}

// The padding of the texture engine that has ONNX's results. Positions are mirrored at the centers
// of the border elements if these are aligned with -1 and 1, else at their outer edges.
std::optional<SamplePadding> PaddingOf(const Form& form) {
  if (form.padding == "zeros") return SamplePadding::kZero;
  if (form.padding == "border") return SamplePadding::kReplication;
  if (form.padding != "reflection") return std::nullopt;
  return form.aligned ? SamplePadding::kReflective : SamplePadding::kSymmetric;
}

struct Sampled {
  SamplingMethod method;
  SamplePadding padding;
};

// How the texture engine samples.
absl::StatusOr<Sampled> SampledBy(const Request& r, LowerContext& c) {
  const std::optional<SamplePadding> padding = PaddingOf(r.form);
  if ((r.mode != "linear" && r.mode != "nearest") || !padding) {
    return c.NotLowered(
        absl::StrCat("GridSample in mode ", r.mode, " with padding_mode ", r.form.padding));
  }
  if (c.route() == Route::kMil) return c.NotLowered("GridSample as one unit on route mil");
  // The grid, the positions in pixels and their product with the scale are rounded to fp16.
  constexpr int64_t kMostExtent = 64, kRoundings = 2048;
  const int64_t extent = std::max(r.image[2], r.image[3]);
  if (extent > kMostExtent) {
    return c.NotLowered(
        "GridSample of more than 64 rows or columns as one unit, where a position in fp16 is off "
        "by more than a thirty-second of an element");
  }
  const std::string off =
      absl::StrCat(static_cast<double>(extent) / kRoundings, " elements in the place of a sample");
  if (r.mode == "linear") {
    c.SetBound(off);
    return Sampled{SamplingMethod::kLinear, *padding};
  }
  c.SetBound(absl::StrCat(off, ": near halfway between two elements, the other one"));
  return Sampled{SamplingMethod::kNearestNeighbor, *padding};
}

// One Resample unit at positions in pixels.
absl::Status LowerAsResample(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request r, ReadRequest(node, c));
  ANEMONE_ASSIGN_OR_RETURN(const Sampled sampled, SampledBy(r, c));
  const int64_t h = r.image[2], w = r.image[3];
  Operand x = c.In(node.inputs[0]);
  Operand places = c.In(node.inputs[1]);
  places = Permuted(c, places, {Axis::kN, Axis::kD, Axis::kW, Axis::kC, Axis::kH});
  const Denormalized columns = PixelsOf(w, r.form.aligned), rows = PixelsOf(h, r.form.aligned);
  places = ScaleAndShiftPerChannel(c, places, {columns.scale, rows.scale},
                                   {columns.offset, rows.offset});
  x = Resampled(c, x, places, sampled.method, sampled.padding);
  return c.Out(node.outputs[0], x);
}

// AffineGrid of two spatial axes, and GridSample of its result.
bool FindAffine(const GraphView& view, const Node& anchor, Match& match) {
  if (!HasInput(anchor, 1)) return false;
  const Node* grid = view.OnlyProducer(anchor.inputs[1], "AffineGrid");
  if (grid == nullptr) return false;
  match.nodes.push_back(view.IdOf(*grid));
  return true;
}

absl::Status LowerAsTransform(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const Node& grid = c.graph().nodes[match.nodes[0]];
  ANEMONE_ASSIGN_OR_RETURN(Request r, ReadRequest(node, c));
  ANEMONE_ASSIGN_OR_RETURN(const Sampled sampled, SampledBy(r, c));
  Attributes a(grid);
  ANEMONE_ASSIGN_OR_RETURN(int64_t aligned, a.Int("align_corners", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if ((aligned != 0) != r.form.aligned) {
    return c.NotLowered("AffineGrid and GridSample with different align_corners, as one unit");
  }
  if (r.form.aligned && std::min(r.grid[1], r.grid[2]) == 1) {  // runtimes disagree on its position
    return c.NotLowered("AffineGrid with align_corners and an axis of extent 1");
  }
  Operand x = c.In(node.inputs[0]);
  Operand theta = c.In(grid.inputs[0]);
  theta = ReshapeToDims(c, theta, MakeDims(r.image[0], 6, 1, 1));
  x = AffineTransformed(c, x, theta,
                        {.height = r.grid[1],
                         .width = r.grid[2],
                         .method = sampled.method,
                         .padding = sampled.padding,
                         .aligned = r.form.aligned});
  return c.Out(node.outputs[0], x);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request r, ReadRequest(node, c));
  // Rounding a position to fp16 may change which pixel is nearest.
  if (r.mode != "linear") return c.NotLowered(absl::StrCat("GridSample in mode ", r.mode));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  const int64_t n = r.image[0], channels = r.image[1], h = r.image[2], w = r.image[3];
  const int64_t count = r.points();
  if (n * channels * h > MostMatrixElements() / count ||
      n * std::max(h, w) > MostMatrixElements() / count) {
    return RefuseOverLimit(c, ModelLimit::kMatrixElements,
                           "GridSample whose weights or products would have");
  }
  Operand x = c.In(node.inputs[0]);
  Operand places = c.In(node.inputs[1]);
  places = ReshapeToDims(c, places, MakeDims(n, count, 1, 2));
  Operand columns = Sliced(c, places, Axis::kW, 0, 1);
  Operand rows = Sliced(c, places, Axis::kW, 1, 1);
  columns = Weights(c, columns, w, r.form);
  rows = Weights(c, rows, h, r.form);
  // Samples every row of the image at every position, then takes the weighted sum of the rows.
  columns = SwapAxes(c, columns, Axis::kC, Axis::kW);
  x = ReshapeToDims(c, x, MakeDims(n, channels * h, 1, w));
  x = MatrixProduct(c, x, columns);
  x = ReshapeToDims(c, x, MakeDims(n, channels, h, count));
  rows = SwapAxes(c, rows, Axis::kC, Axis::kW);
  rows = ReshapeToDims(c, rows, MakeDims(n, 1, h, count));
  x = Combined(c, ElementWiseType::kMult, x, rows);
  x = Reduced(c, x, ReduceType::kSum, Axis::kH);
  x = ReshapeToDims(c, x, PlaceShape(to));
  return c.Out(node.outputs[0], x);
}

// theta, (N, 2, 3) or (N, 3, 4), times the coordinates (x, y, 1) or (x, y, z, 1) of each grid
// point.
absl::Status LowerAffineGrid(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t aligned, a.Int("align_corners", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> theta, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  const int64_t axes = static_cast<int64_t>(to.size()) - 2;
  if (theta.size() != 3 || axes < 2 || axes > 3 || theta[1] != axes || theta[2] != axes + 1) {
    return absl::InvalidArgumentError("theta: want a 2x3 or 3x4 matrix for each image");
  }
  ANEMONE_ASSIGN_OR_RETURN(int64_t all, ElementCount(to));
  if (all < 1) return c.Refuse(rule::kEmptyTensor);
  const int64_t count = all / (to[0] * axes);
  if (count > MostMatrixElements())
    return RefuseOverLimit(c, ModelLimit::kMatrixElements, "AffineGrid whose axes would have");
  const auto taken = TakeMemory((axes + 1) * count * int64_t{sizeof(float)});
  std::vector<float> base((axes + 1) * count, 1);  // the last row stays 1
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (int64_t k = 0; k < axes; ++k) {  // x, the last spatial axis of the output, comes first
      const int64_t extent = to[axes - k], at = rest % extent;
      rest /= extent;
      // Runtimes disagree on the position of a single aligned point.
      if (aligned != 0 && extent == 1) {
        return c.NotLowered("AffineGrid with align_corners and an axis of extent 1");
      }
      const auto number = static_cast<float>(extent);
      const float step = aligned != 0 ? 2 / (number - 1) : 2 / number;
      const float start = aligned != 0 ? -1 : 1 / number - 1;
      base[k * count + i] = start + static_cast<float>(at) * step;
    }
  }
  Operand x = c.In(node.inputs[0]);
  x = ReshapeToDims(c, x, MakeDims(to[0], axes, 1, axes + 1));
  x = MatrixProduct(c, x,
                    {.values = Tensor::Floats({axes + 1, count}, base), .k = axes + 1, .n = count});
  x = SwapAxes(c, x, Axis::kC, Axis::kW);
  x = FromOnnxOrder(c, x, to);
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "GridSample",
     .pattern = "affine transform",
     .match = FindAffine,
     .lower = LowerAsTransform},
    {.op = "GridSample", .lower = LowerAsResample},
    {.op = "GridSample", .rewritten = true, .lower = Lower},
    {.op = "AffineGrid", .rewritten = true, .lower = LowerAffineGrid},
};

}  // namespace

KernelRows GridSampleRows() { return {{}, kLowerings}; }

}  // namespace anemone
