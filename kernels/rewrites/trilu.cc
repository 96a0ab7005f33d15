// Trilu: keeps a triangle of each matrix and sets the rest to 0. Every element is clamped between
// two limits, which are -infinity and infinity in the triangle, and 0 outside. This is exact also
// for infinite elements, for which a product with 0 would give NaN.
#include <algorithm>
#include <limits>
#include <vector>

#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t upper, a.Int("upper", 1));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> given, ConstantIntegers(c, node, 1, {0}));
  if (shape.size() < 2 || given.size() != 1) {
    return absl::InvalidArgumentError("Trilu: want matrices and one k; run the ONNX checker");
  }
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows < 1 || columns < 1) return c.Refuse(rule::kEmptyTensor);
  if (rows > MostMatrixElements() / columns) {
    return RefuseOverLimit(c, ModelLimit::kMatrixElements, "Trilu of matrices of");
  }
  // For k outside of -rows..columns, the triangle is the whole matrix or empty.
  const int64_t k = std::clamp(given[0], -rows, columns);
  const auto taken = TakeMemory(rows * columns * int64_t{sizeof(float)});
  std::vector<float> limits(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const bool kept = upper != 0 ? j - i >= k : j - i <= k;
      limits[i * columns + j] = kept ? std::numeric_limits<float>::infinity() : 0;
    }
  }
  Operand y = c.In(node.inputs[0]);
  for (ElementWiseType type : {ElementWiseType::kMin, ElementWiseType::kMax}) {
    Operand limit = AlignedConstant(c, Tensor::Floats({rows, columns}, limits), shape);
    y = Combined(c, type, y, limit);
    for (float& l : limits) l = -l;
  }
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {{.op = "Trilu", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows TriluRows() { return {{}, kLowerings}; }

}  // namespace anemone
