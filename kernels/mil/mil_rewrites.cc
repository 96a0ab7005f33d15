// MIL operations that no target supports, but that other units can compute if rewrites are allowed.
// Recipes: op_matrix.json rewrite.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/mil/mil_operands.h"
#include "kernels/units/goc.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// Logical operations on bools, which are 0 and 1.
absl::Status BuildLogical(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotOnAnyBackend));
  ANEMONE_ASSIGN_OR_RETURN(BroadcastOperands in, OperandsOf(c, {"x", "y"}));
  const std::string& op = c.call().op;
  const ElementWiseType type = op == "logical_and"  ? ElementWiseType::kMin
                               : op == "logical_or" ? ElementWiseType::kMax
                                                    : ElementWiseType::kNotEqual;
  Operand y = Combined(c, type, in.operands[0], in.operands[1]);
  return c.Out(y, in.shape);
}

// x - floor(x / y) * y. Where the rounded quotient reaches the next integer, or the product passes
// 2048, the result may be off by |y|.
absl::Status BuildMod(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotOnAnyBackend));
  ANEMONE_ASSIGN_OR_RETURN(BroadcastOperands in, OperandsOf(c, {"x", "y"}));
  const Operand &x = in.operands[0], &y = in.operands[1];
  Operand whole = Combined(c, ElementWiseType::kDiv, x, y);
  whole = Activated(c, NeuronType::kFloor, whole);
  whole = Combined(c, ElementWiseType::kMult, whole, y);
  Operand rest = Combined(c, ElementWiseType::kSub, x, whole);
  return c.Out(rest, in.shape);
}

// Multiplies one half of the elements by the other half until one is left; an odd element is kept
// aside. This gives log2(n) roundings instead of n.
Operand ProductAlong(MilContext& c, Operand x, Axis axis) {
  std::optional<Operand> aside;
  for (int64_t n = c.DimsOf(x)[axis]; n > 1; n /= 2) {
    if (n % 2 == 1) {
      Operand last = Sliced(c, x, axis, n - 1, 1);
      if (aside) {
        last = Combined(c, ElementWiseType::kMult, *aside, last);
      }
      aside = last;
    }
    Operand low = Sliced(c, x, axis, 0, n / 2);
    Operand high = Sliced(c, x, axis, n / 2, n / 2);
    x = Combined(c, ElementWiseType::kMult, low, high);
  }
  if (!aside) return x;
  return Combined(c, ElementWiseType::kMult, x, *aside);
}

absl::Status BuildProduct(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotOnAnyBackend));
  Operand x = c.In(0);
  std::vector<int64_t> axes(c.rank(0));
  std::iota(axes.begin(), axes.end(), 0);
  ANEMONE_ASSIGN_OR_RETURN(axes, c.Ints("axes", axes));
  ANEMONE_ASSIGN_OR_RETURN(bool keep_dims, c.Bool("keep_dims", false));
  std::vector<bool> reduced(c.rank(0));
  for (int64_t axis : axes) {
    if (axis < -c.rank(0) || axis >= c.rank(0)) {
      return absl::InvalidArgumentError("reduce_prod, attribute 'axes': want axes of the input");
    }
    const int at = static_cast<int>(axis < 0 ? axis + c.rank(0) : axis);
    reduced[at] = true;
    x = ProductAlong(c, x, ToEngineAxis(c.rank(0), at));
  }
  std::vector<int64_t> shape;
  for (int i = 0; i < c.rank(0); ++i) {
    if (!reduced[i]) shape.push_back(c.ShapeOf(0)[i]);
    if (reduced[i] && keep_dims) shape.push_back(1);
  }
  if (!keep_dims) {
    x = ToOnnxOrder(c, x, c.rank(0));
    x = FromOnnxOrder(c, x, shape);
  }
  return c.Out(x, shape);
}

// The largest number of elements of a constant that a rewrite creates.
constexpr int64_t kLargestTable = 65536;

// Compares x with 0, 1, ... along a new last axis, and scales the result to the two values.
absl::Status BuildOneHot(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotOnAnyBackend));
  ANEMONE_ASSIGN_OR_RETURN(int64_t depth, c.Int("depth", 1));
  ANEMONE_ASSIGN_OR_RETURN(depth, c.Int("one_hot_vector_size", depth));
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, c.Int("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(float on, c.Number("on_value", 1));
  ANEMONE_ASSIGN_OR_RETURN(float off, c.Number("off_value", 0));
  Operand x = c.In(0);
  if (c.rank(0) == kMaxRank) return c.Refuse(rule::kReshapeRank);
  if (axis != -1 && axis != c.rank(0)) {
    return c.NotLowered("one_hot along an axis other than the last");
  }
  if (depth < 1 || depth > kLargestTable) {
    return absl::InvalidArgumentError("one_hot: want a one_hot_vector_size in 1..65536");
  }
  std::vector<int64_t> shape = c.ShapeOf(0);
  shape.push_back(1);
  x = ToOnnxOrder(c, x, c.rank(0));
  x = FromOnnxOrder(c, x, shape);
  std::vector<float> numbers(depth);
  for (int64_t i = 0; i < depth; ++i) numbers[i] = static_cast<float>(i);
  Tensor table = Tensor::Floats({depth}, numbers);
  Operand places = AlignedConstant(c, table, shape);
  Operand y = Combined(c, ElementWiseType::kEqual, x, places);
  y = ScaleAndShift(c, y, static_cast<double>(on) - off, off);
  shape.back() = depth;
  return c.Out(y, shape);
}

// Multiplies by 1 inside the band and by 0 outside.
absl::Status BuildBandPart(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotOnAnyBackend));
  ANEMONE_ASSIGN_OR_RETURN(int64_t lower, c.Int("lower", -1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t upper, c.Int("upper", -1));
  Operand x = c.In(0);
  if (c.rank(0) < 2) return absl::InvalidArgumentError("band_part: want rank 2 or more");
  const std::vector<int64_t>& shape = c.ShapeOf(0);
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows > kLargestTable || columns > kLargestTable || rows * columns > 64 * kLargestTable) {
    return c.NotLowered("band_part of a matrix of more than 4194304 elements");
  }
  std::vector<float> mask(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const bool inside = (lower < 0 || i - j <= lower) && (upper < 0 || j - i <= upper);
      mask[i * columns + j] = inside ? 1.0f : 0.0f;
    }
  }
  Tensor table = Tensor::Floats({rows, columns}, mask);
  Operand band = AlignedConstant(c, table, shape);
  Operand y = Combined(c, ElementWiseType::kMult, x, band);
  return c.Out(y, shape);
}

absl::Status OutNumbers(MilContext& c, const std::vector<float>& numbers) {
  const int64_t count = static_cast<int64_t>(numbers.size());
  const Operand y = c.AddConstant(Tensor::Floats({count}, numbers), PlaceShape({count}));
  return c.Out(y, {count});
}

absl::Status BuildShape(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotOnAnyBackend));
  c.Ignore("output_dtype");
  c.In(0);
  if (c.rank(0) == 0) return absl::InvalidArgumentError("shape: want rank 1 or more");
  return OutNumbers(c, {c.ShapeOf(0).begin(), c.ShapeOf(0).end()});
}

absl::Status BuildRange(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotConverted));
  ANEMONE_ASSIGN_OR_RETURN(float start, c.Number("start", 0));
  ANEMONE_ASSIGN_OR_RETURN(float end, c.Number("end", 0));
  ANEMONE_ASSIGN_OR_RETURN(float step, c.Number("step", 1));
  const double count = std::ceil((static_cast<double>(end) - start) / step);
  if (!(count >= 1 && count <= static_cast<double>(kLargestTable))) {
    return absl::InvalidArgumentError("range_1d: want 1 to 65536 numbers");
  }
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = start + static_cast<float>(i) * step;
  return OutNumbers(c, numbers);
}

// The argument of an elementwise function that is only available as a rewrite.
Operand OnlyArgument(MilContext& c) {
  ANEMONE_FAIL_IF_ERROR(c, OnlyRewritten(c, rule::kNotOnAnyBackend));
  return c.In(0);
}

// sin x / cos x: three roundings.
absl::Status BuildTan(MilContext& c) {
  Operand x = OnlyArgument(c);
  Operand sin = Activated(c, NeuronType::kSin, x);
  Operand cos = Activated(c, NeuronType::kCos, x);
  Operand y = Combined(c, ElementWiseType::kDiv, sin, cos);
  return c.Out(y, c.ShapeOf(0));
}

// asin x = atan(x / sqrt((1 - x)(1 + x))), in which no difference cancels: absolute error about
// 2e-3. acos x = pi / 2 - asin x.
absl::Status BuildArcus(MilContext& c) {
  Operand x = OnlyArgument(c);
  Operand below = ScaleAndShift(c, x, -1, 1);
  Operand above = ScaleAndShift(c, x, 1, 1);
  Operand y = Combined(c, ElementWiseType::kMult, below, above);
  y = Activated(c, NeuronType::kRsqrt, y);
  y = Combined(c, ElementWiseType::kMult, x, y);
  y = Activated(c, NeuronType::kAtan, y);
  if (c.call().op == "acos") {
    y = ScaleAndShift(c, y, -1, std::numbers::pi / 2);
  }
  return c.Out(y, c.ShapeOf(0));
}

// (exp x + exp -x) / 2: relative error about 2e-3; for |x| of 11.1 and more the result is 65504.
absl::Status BuildCosh(MilContext& c) {
  Operand x = OnlyArgument(c);
  Operand up = Activated(c, NeuronType::kExp, x);
  Operand down = ScaleAndShift(c, x, -1, 0);
  down = Activated(c, NeuronType::kExp, down);
  Operand y = Combined(c, ElementWiseType::kAdd, up, down);
  y = ScaleAndShift(c, y, 0.5, 0);
  return c.Out(y, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {
    {"logical_and", BuildLogical}, {"logical_or", BuildLogical},
    {"logical_xor", BuildLogical}, {"mod", BuildMod},
    {"reduce_prod", BuildProduct}, {"one_hot", BuildOneHot},
    {"band_part", BuildBandPart},  {"shape", BuildShape},
    {"range_1d", BuildRange},      {"tan", BuildTan},
    {"asin", BuildArcus},          {"acos", BuildArcus},
    {"cosh", BuildCosh},
};

}  // namespace

KernelRows MilRewritesRows() { return {{}, {}, kOperations}; }

}  // namespace anemone
