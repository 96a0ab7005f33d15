// Col2Im with one or two spatial axes: adds the elements of every block at the block's position.
// The axes are independent, so each one is a product with a matrix of ones and zeros, from kernel *
// blocks elements to the extent of the image.
#include <vector>

#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/axis_matrix.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/shared/window.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct ImageAxis {
  Along along;
  int64_t extent = 1;

  int64_t blocks() const { return along.WindowsIn(extent); }
  bool IsSmall() const { return along.kernel <= MostMatrixElements() / extent / blocks(); }
  // (extent, kernel * blocks).
  Tensor Matrix() const {
    const int64_t columns = along.kernel * blocks();
    Tensor matrix = Tensor::Zeros(DataType::kFloat, {extent, columns});
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = i % blocks() * along.stride + i / blocks() * along.dilation;
      const int64_t to = at - along.pad_before;
      if (to >= 0 && to < extent) matrix.mutable_data<float>()[to * columns + i] = 1;
    }
    return matrix;
  }
};

// Height and width. If there is one spatial axis, it is the width.
absl::StatusOr<std::vector<ImageAxis>> ReadAxes(const Node& node, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> image, ConstantIntegers(c, node, 1, {}));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> block, ConstantIntegers(c, node, 2, {}));
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Along> window, ReadNodeWindow(a, block));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  const size_t spatial = image.size();
  if (block.size() != spatial) {
    return absl::InvalidArgumentError(
        "block_shape: want as many numbers as image_shape has; run the ONNX checker on the model");
  }
  if (spatial < 1 || spatial > 2) return c.NotLowered("Col2Im with other than 1 or 2 spatial axes");
  std::vector<ImageAxis> axes(2);
  for (size_t i = 0; i < spatial; ++i) {
    ImageAxis& axis = axes[2 - spatial + i];
    axis = {window[i], image[i]};
    if (axis.extent < 1) return c.Refuse(rule::kEmptyTensor);
    if (axis.blocks() < 1) return c.NotLowered("Col2Im without blocks");
    if (!axis.IsSmall()) {
      return RefuseOverLimit(c, ModelLimit::kMatrixElements, "Col2Im whose matrix would have");
    }
  }
  return axes;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<ImageAxis> axes, ReadAxes(node, c));
  const ImageAxis &h = axes[0], &w = axes[1];
  if (from.size() != 3 || to.size() < 3 || from[2] != h.blocks() * w.blocks() ||
      from[1] != to[1] * h.along.kernel * w.along.kernel) {
    return absl::InvalidArgumentError(
        "input: want a shape that matches image_shape and block_shape");
  }
  const int64_t images = to[0] * to[1];
  Operand x = c.In(node.inputs[0]);
  x = ReshapeToDims(c, x,
                    MakeDims(images * h.along.kernel, w.along.kernel, h.blocks(), w.blocks()));
  x = SwapAxes(c, x, Axis::kC, Axis::kH);
  x = ReshapeToDims(c, x,
                    MakeDims(images, h.along.kernel * h.blocks(), 1, w.along.kernel * w.blocks()));
  x = TimesMatrix(c, x, Axis::kC, h.Matrix());
  x = TimesMatrix(c, x, Axis::kW, w.Matrix());
  x = ReshapeToDims(c, x, PlaceShape(to));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "Col2Im", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows Col2ImRows() { return {{}, kLowerings}; }

}  // namespace anemone
