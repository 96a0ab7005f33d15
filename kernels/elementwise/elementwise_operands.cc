// Operands of elementwise operations: constants of one value, and values with fewer axes than the
// result.
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// `own` with ones prepended up to the rank of `shape`.
absl::StatusOr<std::vector<int64_t>> AlignedShape(absl::Span<const int64_t> own,
                                                  absl::Span<const int64_t> shape) {
  if (own.size() > shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat("an operand of rank ", own.size(),
                                                   " for a result of rank ", shape.size(),
                                                   "; run the ONNX checker on the model"));
  }
  std::vector<int64_t> aligned(shape.size() - own.size(), 1);
  aligned.insert(aligned.end(), own.begin(), own.end());
  return aligned;
}

}  // namespace

Operand ScalarConstant(NetworkBuilder& c, float value) {
  return c.AddConstant(Tensor::Floats({1}, {value}), Dims{});
}

Operand Filled(NetworkBuilder& c, float value, const Dims& dims) {
  return c.AddConstant(Tensor::Fill(DataType::kFloat, {dims.elements()},
                                    {reinterpret_cast<const std::byte*>(&value), sizeof(value)}),
                       dims);
}

Operand AlignedOperand(LowerContext& c, ValueId value, absl::Span<const int64_t> shape) {
  if (const Tensor* constant = c.view().Constant(value)) {
    return AlignedConstant(c, c.Held(*constant), shape);
  }
  ANEMONE_ASSIGN_OR_FAIL(c, std::vector<int64_t> own, c.ShapeOf(value));
  ANEMONE_ASSIGN_OR_FAIL(c, std::vector<int64_t> aligned, AlignedShape(own, shape));
  Operand x = c.In(value);
  return own.size() == shape.size() ? x : FromOnnxOrder(c, x, aligned);
}

Operand AlignedConstant(NetworkBuilder& c, const Tensor& tensor, absl::Span<const int64_t> shape) {
  if (!IsEngineConstant(tensor.type())) return c.Refuse(rule::kPortFormat);
  ANEMONE_ASSIGN_OR_FAIL(c, std::vector<int64_t> own, AlignedShape(tensor.dims(), shape));
  if (own.size() < kMaxRank) return c.AddConstant(tensor, PlaceShape(own));
  // The constant is stored in ONNX's order, N, C, D, H, W.
  Dims stored{{own[0], own[1], own[2], own[3], own[4]}};
  return SwapAxes(c, c.AddConstant(tensor, stored), Axis::kD, Axis::kC);
}

}  // namespace anemone
