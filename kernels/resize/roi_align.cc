// RoiAlign of one image, in mode avg, with a fixed number of samples in each bin
// (`sampling_ratio`): a CropResize unit and an average where there is a texture engine, otherwise
// two matrix products with the weights of each row and column in each bin. Boxes are computed at
// run time and are fp16, as are the positions of the samples, so each is off by up to extent / 4096
// pixels.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/pooling/pooling.h"
#include "kernels/resize/hat_weights.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/concat.h"
#include "kernels/units/crop_resize.h"
#include "kernels/units/goc.h"
#include "kernels/units/input_view.h"
#include "kernels/units/matrix_multiplication.h"
#include "kernels/units/reduction.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct Form {
  int64_t out_h = 1, out_w = 1, samples = 1;
  float scale = 1;
  bool half_pixel = true;
};

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  Form form;
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, a.String("mode", "avg"));
  ANEMONE_ASSIGN_OR_RETURN(form.out_h, a.Int("output_height", 1));
  ANEMONE_ASSIGN_OR_RETURN(form.out_w, a.Int("output_width", 1));
  ANEMONE_ASSIGN_OR_RETURN(form.samples, a.Int("sampling_ratio", 0));
  ANEMONE_ASSIGN_OR_RETURN(form.scale, a.Float("spatial_scale", 1.0f));
  ANEMONE_ASSIGN_OR_RETURN(std::string coordinates,
                           a.String("coordinate_transformation_mode", "half_pixel"));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  form.half_pixel = coordinates == "half_pixel";
  if (mode != "avg") return c.NotLowered("RoiAlign in mode max");
  if (form.samples < 1) return c.NotLowered("RoiAlign with sampling_ratio 0");
  constexpr int64_t kMost = 1024;
  if (form.samples > kMost || std::min(form.out_h, form.out_w) < 1 ||
      std::max(form.out_h, form.out_w) > kMost) {
    return c.NotLowered("RoiAlign with a sampling_ratio or an output extent outside of 1..1024");
  }
  return form;
}

// The weight of each of `extent` rows (or columns) in each of `bins`, boxes x bins x 1 x extent.
// `first` is the index of the start coordinate in a box; the end is two elements after it.
Operand BinWeights(LowerContext& c, const Operand& boxes, int64_t first, int64_t bins,
                   int64_t extent, const Form& form) {
  const double offset = form.half_pixel ? 0.5 : 0;
  const int64_t count = c.DimsOf(boxes).n(), points = bins * form.samples;
  Operand start = Sliced(c, boxes, Axis::kW, first, 1);
  start = ScaleAndShift(c, start, form.scale, -offset);
  Operand end = Sliced(c, boxes, Axis::kW, first + 2, 1);
  end = ScaleAndShift(c, end, form.scale, -offset);
  Operand size = Combined(c, ElementWiseType::kSub, end, start);
  if (!form.half_pixel) {  // then ONNX makes each box at least 1 pixel large
    size = Combined(c, ElementWiseType::kMax, size, ScalarConstant(c, 1));
  }
  std::vector<float> parts(points);
  for (int64_t i = 0; i < points; ++i) {
    parts[i] = (static_cast<float>(i) + 0.5f) / static_cast<float>(points);
  }
  const Operand shares = c.AddConstant(Tensor::Floats({points}, parts), MakeDims(1, points, 1, 1));
  Operand places = Combined(c, ElementWiseType::kMult, size, shares);
  places = Combined(c, ElementWiseType::kAdd, places, start);
  // A sample up to one pixel outside counts as the border; a sample further outside counts as 0.
  const auto past = static_cast<float>(extent), last = static_cast<float>(extent - 1);
  Operand above = Combined(c, ElementWiseType::kGreaterThanEqual, places, ScalarConstant(c, -1));
  Operand below = Combined(c, ElementWiseType::kLessThanEqual, places, ScalarConstant(c, past));
  Operand counts = Combined(c, ElementWiseType::kMult, above, below);
  places = Activated(c, NeuronType::kClampedReLU, places, 0, last);
  Operand weights = HatWeights(c, places, extent);
  weights = Combined(c, ElementWiseType::kMult, weights, counts);
  weights = ReshapeToDims(c, weights, MakeDims(count * bins, form.samples, 1, extent));
  weights = Reduced(c, weights, ReduceType::kAvg, Axis::kC);
  return ReshapeToDims(c, weights, MakeDims(count, bins, 1, extent));
}

// What both lowerings read.
struct Request {
  Form form;
  int64_t channels = 1, h = 1, w = 1, count = 1;  // count: of boxes
};

absl::StatusOr<Request> ReadRequest(const Node& node, LowerContext& c) {
  Request r;
  ANEMONE_ASSIGN_OR_RETURN(r.form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> image, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> boxes, c.ShapeOf(node.inputs[1]));
  if (image.size() != 4 || boxes.size() != 2 || boxes[1] != 4) {
    return absl::InvalidArgumentError(
        "RoiAlign: want an input of rank 4 and boxes of four numbers");
  }
  if (image[0] != 1) return c.NotLowered("RoiAlign of more than one image");
  r.channels = image[1], r.h = image[2], r.w = image[3], r.count = boxes[0];
  if (r.count < 1 || r.channels * r.h * r.w < 1) return c.Refuse(rule::kEmptyTensor);
  return r;
}

// The boxes in elements, count x 4 x 1 x 1, as CropResize takes them.
Operand Corners(LowerContext& c, const Operand& boxes, int64_t count, const Form& form) {
  const double shift = form.half_pixel ? 0 : 0.5;  // else ONNX counts from the center of an element
  Operand corners = ReshapeToDims(c, boxes, MakeDims(count, 4, 1, 1));
  corners = ScaleAndShift(c, corners, form.scale, shift);
  if (form.half_pixel) return corners;
  // Each box is at least one pixel large.
  Operand starts = Sliced(c, corners, Axis::kC, 0, 2);
  Operand ends = Sliced(c, corners, Axis::kC, 2, 2);
  ends = Combined(c, ElementWiseType::kMax, ends, ScaleAndShift(c, starts, 1, 1));
  return Concatenated(c, {starts, ends}, Axis::kC);
}

// 1 for each sample along `axis` that is at most one pixel outside of the image, else 0. A sample
// further outside counts as 0. `first`: the start's index in a box.
Operand IsNear(LowerContext& c, const Operand& corners, int64_t first, Axis axis, int64_t samples,
               int64_t extent) {
  std::vector<float> parts(samples);
  for (int64_t i = 0; i < samples; ++i) {
    parts[i] = (static_cast<float>(i) + 0.5f) / static_cast<float>(samples);
  }
  Dims along = MakeDims(1, 1, 1, 1);
  along[axis] = samples;
  const Operand shares = c.AddConstant(Tensor::Floats({samples}, parts), along);
  Operand start = Sliced(c, corners, Axis::kC, first, 1);
  Operand size = Sliced(c, corners, Axis::kC, first + 2, 1);
  size = Combined(c, ElementWiseType::kSub, size, start);
  Operand places = Combined(c, ElementWiseType::kMult, size, shares);
  places = Combined(c, ElementWiseType::kAdd, places, start);
  Operand above = Combined(c, ElementWiseType::kGreaterThanEqual, places, ScalarConstant(c, -0.5f));
  Operand below = Combined(c, ElementWiseType::kLessThanEqual, places,
                           ScalarConstant(c, static_cast<float>(extent) + 0.5f));
  return Combined(c, ElementWiseType::kMult, above, below);
}

// The averages of the samples in each bin.
Operand BinAverages(LowerContext& c, Operand x, const Form& form) {
  PoolingParams p{.mode = PoolingMode::kAvg};
  if (form.out_h > 1) p.h.kernel = p.h.stride = form.samples;
  if (form.out_w > 1) p.w.kernel = p.w.stride = form.samples;
  if (p.h.kernel > 1 || p.w.kernel > 1) x = c.Add(PoolingUnit(), p, {x});
  if (form.out_h == 1) x = Reduced(c, x, ReduceType::kAvg, Axis::kH);
  return form.out_w == 1 ? Reduced(c, x, ReduceType::kAvg, Axis::kW) : x;
}

absl::Status LowerAsCrop(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request r, ReadRequest(node, c));
  if (c.route() == Route::kMil) return c.NotLowered("RoiAlign as a crop on route mil");
  constexpr int64_t kMostExtent = 128;
  if (std::max(r.h, r.w) > kMostExtent) {
    return c.NotLowered(
        "RoiAlign of more than 128 rows or columns as one crop, where a corner in fp16 is off by "
        "more than a sixteenth of an element");
  }
  const Form& form = r.form;
  const int64_t rows = form.out_h * form.samples, columns = form.out_w * form.samples;
  Operand x = c.In(node.inputs[0]);
  Operand corners = Corners(c, c.In(node.inputs[1]), r.count, form);
  x = Cropped(c, x, corners, rows, columns);
  const Bounds known = c.view().Floats().bounds[node.inputs[1]];
  const bool inside = form.half_pixel && known.low >= 0 &&
                      known.high * form.scale <= static_cast<double>(std::min(r.h, r.w));
  if (!inside) {
    x = Combined(c, ElementWiseType::kMult, x, IsNear(c, corners, 1, Axis::kH, rows, r.h));
    x = Combined(c, ElementWiseType::kMult, x, IsNear(c, corners, 0, Axis::kW, columns, r.w));
  }
  x = BinAverages(c, x, form);
  return c.Out(node.outputs[0], x);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request r, ReadRequest(node, c));
  const Form& form = r.form;
  const auto [channels, h, w, count] = std::tuple(r.channels, r.h, r.w, r.count);
  if (channels * h > MostMatrixElements() / (count * form.out_w) ||
      std::max(h, w) >
          MostMatrixElements() / (count * std::max(form.out_h, form.out_w) * form.samples)) {
    return RefuseOverLimit(c, ModelLimit::kMatrixElements,
                           "RoiAlign whose weights or products would have");
  }
  Operand x = c.In(node.inputs[0]);
  Operand edges = c.In(node.inputs[1]);
  edges = ReshapeToDims(c, edges, MakeDims(count, 1, 1, 4));
  Operand columns = BinWeights(c, edges, 0, form.out_w, w, form);
  Operand rows = BinWeights(c, edges, 1, form.out_h, h, form);
  x = ReshapeToDims(c, x, MakeDims(1, channels * h, 1, w));
  columns = SwapAxes(c, columns, Axis::kC, Axis::kW);
  x = MatrixProduct(c, x, columns);
  x = ReshapeToDims(c, x, MakeDims(count, channels, h, form.out_w));
  x = SwapAxes(c, x, Axis::kC, Axis::kH);
  x = ReshapeToDims(c, x, MakeDims(count, h, 1, channels * form.out_w));
  x = MatrixProduct(c, rows, x);
  x = ReshapeToDims(c, x, MakeDims(count, form.out_h, channels, form.out_w));
  x = SwapAxes(c, x, Axis::kC, Axis::kH);
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "RoiAlign", .lower = LowerAsCrop},
    {.op = "RoiAlign", .rewritten = true, .lower = Lower},
};

}  // namespace

KernelRows RoiAlignRows() { return {{}, kLowerings}; }

}  // namespace anemone
