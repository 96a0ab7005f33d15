// Operators of quantized models. The integers of fewer than 32 bits are int32 in the program, and
// their arithmetic is in fp32, which is exact up to 2^24.
#include <optional>

#include "importer/operators/intervals.h"
#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

// A scale or zero point of input `i` against a value of shape `to`: one number, one for each
// element of `axis`, or one for each block of elements of `axis`.
MilVar Along(NodeWriter& w, size_t i, const MilShape& to, int64_t axis) {
  MilVar x = w.In(i, "fp32");
  if (!w.ok() || w.RankOf(i) == 0 || (x.shape.size() == 1 && x.shape[0] == 1)) return x;
  if (const int64_t block = w.Int("block_size", 0); block != 0) {
    if (to[axis] == kFree) w.Fail("blocks of an axis whose size is only known at run time");
    std::vector<int64_t> blocks(w.ok() ? to[axis] : 0);
    for (size_t at = 0; at < blocks.size(); ++at) blocks[at] = static_cast<int64_t>(at) / block;
    return w.Picked(x, blocks, axis);
  }
  MilShape shape(to.size(), 1);
  shape[axis] = x.shape[0];
  return w.Reshape(x, shape);
}

MilVar Centered(NodeWriter& w, size_t i, size_t zero, int64_t axis) {
  const MilVar x = w.In(i, "fp32");
  return w.Has(zero) && w.ok() ? w.Binary("sub", x, Along(w, zero, x.shape, axis)) : x;
}

// round(x) + zero point, in the range of the result.
MilVar Saturated(NodeWriter& w, const MilVar& x, size_t zero, int64_t axis) {
  MilVar rounded = w.Unary("round", x);
  if (w.Has(zero) && w.ok()) {
    rounded = w.Binary("add", rounded, Along(w, zero, x.shape, axis));
  }
  const DataType type = w.ResultType();
  const std::optional<Interval> limits = LimitsOf(type);
  if (!limits || (BitsOf(type) != 8 && BitsOf(type) != 16)) {
    w.Fail("integers of this type");
    return x;
  }
  rounded = w.Binary("minimum", w.Binary("maximum", rounded, static_cast<double>(limits->low)),
                     static_cast<double>(limits->high));
  return w.ok() ? w.to().Cast(rounded, "int32") : rounded;
}

void WriteQuantize(NodeWriter& w) {
  const MilVar x = w.In(0, "fp32");
  const int64_t axis = w.Axis("axis", 1);
  const MilVar scaled = w.Binary("real_div", x, Along(w, 1, x.shape, axis));
  w.Out(Saturated(w, scaled, 2, axis));
}

void WriteDequantize(NodeWriter& w) {
  const int64_t axis = w.Axis("axis", 1);
  const MilVar x = Centered(w, 0, 2, axis);
  w.Out(w.Binary("mul", x, Along(w, 1, x.shape, axis)));
}

// Of matrices; a zero point of the left one is for rows, one of the right one for columns.
MilVar Product(NodeWriter& w, const MilVar& x, const MilVar& y) {
  if (x.shape.size() < 2 || y.shape.size() < 2) w.Fail("a product of vectors");
  return w.MatMul(x, y);
}

void WriteMatMulInteger(NodeWriter& w) {
  const MilVar product =
      Product(w, Centered(w, 0, 2, w.RankOf(0) - 2), Centered(w, 1, 3, w.RankOf(1) - 1));
  if (w.ok()) w.Out(w.to().Cast(product, "int32"));
}

void WriteQLinearMatMul(NodeWriter& w) {
  const int rows = w.RankOf(0) - 2, columns = w.RankOf(3) - 1;
  MilVar x = Centered(w, 0, 2, rows), y = Centered(w, 3, 5, columns);
  x = w.Binary("mul", x, Along(w, 1, x.shape, rows));
  y = w.Binary("mul", y, Along(w, 4, y.shape, columns));
  const MilVar product = Product(w, x, y);
  const MilVar scaled = w.Binary("real_div", product, Along(w, 6, product.shape, rows));
  w.Out(Saturated(w, scaled, 7, rows));
}

void WriteConvInteger(NodeWriter& w) {
  const MilVar product = Convolved(w, Centered(w, 0, 2, 1), Centered(w, 1, 3, 0));
  if (w.ok()) w.Out(w.to().Cast(product, "int32"));
}

void WriteQLinearConv(NodeWriter& w) {
  MilVar y = Convolved(w, Centered(w, 0, 2, 1), Centered(w, 3, 5, 0));
  if (w.Has(8) && w.ok()) y = w.Binary("add", y, Along(w, 8, y.shape, 1));
  y = w.Binary("mul", w.Binary("mul", y, Along(w, 1, y.shape, 1)), Along(w, 4, y.shape, 1));
  w.Out(Saturated(w, w.Binary("real_div", y, Along(w, 6, y.shape, 1)), 7, 1));
}

constexpr MilNode kQuantizedNodes[] = {
    {"ConvInteger", WriteConvInteger},     {"DequantizeLinear", WriteDequantize},
    {"MatMulInteger", WriteMatMulInteger}, {"QLinearConv", WriteQLinearConv},
    {"QLinearMatMul", WriteQLinearMatMul}, {"QuantizeLinear", WriteQuantize},
};

}  // namespace

absl::Span<const MilNode> QuantizedMilNodes() { return kQuantizedNodes; }

}  // namespace anemone
