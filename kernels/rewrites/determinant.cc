// Det of matrices up to 3 x 3, by the explicit formula. There is one rounding for each product and
// sum; the terms may be as large as the largest product of three elements.
#include <vector>

#include "base/status_macros.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

class Matrices {
 public:
  // `x` holds n x n elements in the channel of each image.
  Matrices(LowerContext& c, Operand x, int64_t n) : c_(c), x_(x), n_(n) {}

  Operand At(int64_t row, int64_t column) { return Sliced(c_, x_, Axis::kC, row * n_ + column, 1); }

  // The 2 x 2 minor of rows `top` and `bottom` and columns `left` and `right`.
  Operand Minor(int64_t top, int64_t bottom, int64_t left, int64_t right) {
    Operand a = Product(top, left, bottom, right);
    Operand b = Product(top, right, bottom, left);
    return Combined(c_, ElementWiseType::kSub, a, b);
  }

  Operand Determinant() {
    if (n_ == 1) return At(0, 0);
    if (n_ == 2) return Minor(0, 1, 0, 1);
    Operand sum;
    for (int64_t column = 0; column < 3; ++column) {
      // The minor takes the other two columns in cyclic order, so that every sign is +.
      const int64_t left = (column + 1) % 3, right = (column + 2) % 3;
      Operand term = Minor(1, 2, left, right);
      Operand factor = At(0, column);
      term = Combined(c_, ElementWiseType::kMult, term, factor);
      if (column == 0) {
        sum = term;
      } else {
        sum = Combined(c_, ElementWiseType::kAdd, sum, term);
      }
    }
    return sum;
  }

 private:
  Operand Product(int64_t row, int64_t column, int64_t row2, int64_t column2) {
    Operand a = At(row, column);
    Operand b = At(row2, column2);
    return Combined(c_, ElementWiseType::kMult, a, b);
  }

  LowerContext& c_;
  const Operand x_;
  const int64_t n_;
};

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (from.size() < 2 || from.back() != from[from.size() - 2]) {
    return absl::InvalidArgumentError("Det: want square matrices; run the ONNX checker");
  }
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(to));
  const int64_t n = from.back();
  if (n < 1 || count < 1) return c.Refuse(rule::kEmptyTensor);
  if (n > 3) return c.NotLowered("Det of matrices larger than 3 x 3");
  Operand x = c.In(node.inputs[0]);
  x = ToOnnxOrder(c, x, static_cast<int>(from.size()));
  x = ReshapeToDims(c, x, MakeDims(count, n * n, 1, 1));
  x = Matrices(c, x, n).Determinant();
  x = FromOnnxOrder(c, x, to);
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "Det", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows DeterminantRows() { return {{}, kLowerings}; }

}  // namespace anemone
