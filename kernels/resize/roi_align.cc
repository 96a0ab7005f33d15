// RoiAlign of one image, in mode avg, with a fixed number of samples in each bin
// (`sampling_ratio`): two matrix products with the weights of each row and column in each bin.
// Boxes are computed at run time and are fp16, as are the positions of the samples, so each is off
// by up to extent / 4096 pixels.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/resize/hat_weights.h"
#include "kernels/shared/bounds.h"
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

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> image, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> boxes, c.ShapeOf(node.inputs[1]));
  if (image.size() != 4 || boxes.size() != 2 || boxes[1] != 4) {
    return absl::InvalidArgumentError(
        "RoiAlign: want an input of rank 4 and boxes of four numbers");
  }
  if (image[0] != 1) return c.NotLowered("RoiAlign of more than one image");
  const int64_t channels = image[1], h = image[2], w = image[3], count = boxes[0];
  if (count < 1 || channels * h * w < 1) return c.Refuse(rule::kEmptyTensor);
  if (channels * h > kMostMatrixElements / (count * form.out_w) ||
      std::max(h, w) >
          kMostMatrixElements / (count * std::max(form.out_h, form.out_w) * form.samples)) {
    return c.NotLowered(absl::StrCat("RoiAlign that needs more than ", kMostMatrixElements,
                                     " weights or products"));
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

constexpr Lowering kLowerings[] = {{.op = "RoiAlign", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows RoiAlignRows() { return {{}, kLowerings}; }

}  // namespace anemone
