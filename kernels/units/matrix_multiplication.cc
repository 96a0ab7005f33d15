// MatrixMultiplication: multiplies the C x W matrix of A by that of B for each batch N and height
// H. Every target has it. Facts: validators.json MatrixMult; netplist.md MatrixMultiplication;
// numerics.json mac-*.
//
// The last two axes of an ONNX matrix are H x W or C x W here, with the batch before them. The unit
// has batches on N, so most products need only reshapes: rows to C, and all leading axes to N. Only
// operands that broadcast along different axes (n,1 against 1,h) need a second batch axis on H, and
// therefore transposes.
//
// A constant right operand is a weight of the unit, so that it is packed once and no fp16 copy is
// kept. In a netplist it is a Constant and the second bottom.
#include "kernels/units/matrix_multiplication.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/constant_id.h"
#include "engine/formats/mil_emitter.h"
#include "engine/warning.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/shared/extents.h"
#include "kernels/units/linear.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "math/exact/exact_contract.h"
#include "rule_table.h"     // generated
#include "warning_table.h"  // generated

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;

struct MatMulParams {
  struct Weight {
    int64_t k = 1, n = 1;
    math::MatrixOrder order = math::MatrixOrder::kRowMajor;
  };
  std::optional<Weight> b;  // B, if it is a weight of the unit instead of the second bottom
};

Dims RightDims(const MatMulParams& p, Bottoms in) {
  return p.b ? MakeDims(1, p.b->k, 1, p.b->n) : in[1].dims;
}

// Whether B is there, as the second bottom or as a weight.
bool HasBothOperands(const MatMulParams& p, Bottoms in) { return in.size() + (p.b ? 1 : 0) == 2; }

absl::StatusOr<Dims> Shape(const MatMulParams& p, Bottoms in) {
  if (!HasBothOperands(p, in)) {
    return absl::InvalidArgumentError(
        absl::StrCat("matrix multiplication: want two operands, got ", in.size()));
  }
  Dims b = RightDims(p, in);
  Dims out = in[0].dims;
  out[Axis::kN] = std::max(out.n(), b.n());
  out[Axis::kH] = std::max(out.h(), b.h());
  out[Axis::kW] = b.w();
  return out;
}

int64_t UnitMacs(const MatMulParams&, Bottoms in, absl::Span<const Tensor>, const Dims& out) {
  return out.elements() * in[0].dims.w();
}

Verdict Validate(const MatMulParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!HasBothOperands(p, in)) return judge.Reject(rule::kMatmulBottoms);
  const Dims& a = in[0].dims;
  Dims b = RightDims(p, in);
  if (a.d() > 1 || b.d() > 1) return judge.Reject(rule::kMatmulDepth);
  if (a.w() != b.c()) return judge.Reject(rule::kMatmulContraction, a.w(), 0, b.c());
  for (Axis axis : {Axis::kN, Axis::kH}) {
    if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) {
      return judge.Reject(rule::kMatmulBatch, AxisName(axis), a[axis], b[axis]);
    }
  }
  if (!judge.Within(a.c() * BytesOf(Format::kFloat16), Limit::kKmemDenseCapBytes)) {
    return judge.Reject(rule::kMatmulKernelMemory);
  }
  return judge.Accept();
}

constexpr Field<MatMulParams> kFields[] = {
    {kWeightOrder,
     [](const MatMulParams& p) -> Json {
       if (!p.b || p.b->order == math::MatrixOrder::kRowMajor) return nullptr;
       return Plain::Write(p.b->order);
     },
     [](MatMulParams& p, const Json& from) {
       p.b = MatMulParams::Weight();
       return Plain::Read(from, p.b->order);
     },
     /*required=*/false, ValueType::kName, NamesOfMember<math::MatrixOrder>()}};

// The weight of an authored unit is (K, N), unless WeightOrder says otherwise.
absl::Status Complete(MatMulParams& p, Bottoms in, absl::Span<const Tensor> weights) {
  const math::MatrixOrder order = p.b.value_or(MatMulParams::Weight()).order;
  p.b.reset();
  if (in.size() > 1 || weights.empty()) return absl::OkStatus();
  const std::vector<int64_t>& sizes = weights[0].dims();
  if (sizes.size() != 2) return absl::InvalidArgumentError("weight: want a matrix");
  const size_t along_k = order == math::MatrixOrder::kRowMajor ? 0 : 1;
  p.b = MatMulParams::Weight{sizes[along_k], sizes[1 - along_k], order};
  return absl::OkStatus();
}

// The grids of A and B, and B packed, if it is a weight.
struct PreparedProduct {
  std::optional<math::CodeGrid> a_grid, b_grid;
  math::PackedMatrix b;
};

absl::StatusOr<Prepared> Prepare(const MatMulParams& p, Bottoms in,
                                 absl::Span<const Tensor> weights) {
  PreparedProduct product{.a_grid = in[0].grid};
  if (in.size() > 1) product.b_grid = in[1].grid;
  if (p.b) {
    const math::CodedWeights coded = CodedFormOf(weights[0]);
    product.b = math::PackMatrix(
        p.b->k, p.b->n, p.b->order,
        [&](int64_t first, absl::Span<math::Half> to) { ReadHalves(weights[0], first, to); },
        &coded, IdOf(weights[0]));
  }
  return std::make_shared<PreparedProduct>(std::move(product));
}

math::MatrixLayout LayoutOf(const Dims& d) {
  return {.row = d.h() * d.w(),
          .col = 1,
          .batch = {0, d.n() == 1 ? 0 : d.c() * d.h() * d.w(), d.h() == 1 ? 0 : d.w()}};
}

void Compute(const MatMulParams& p, const void* prepared, absl::Span<const ConstView> in, View out,
             const math::Epilogue& epilogue) {
  const Dims& a = in[0].dims;
  const auto& product = *static_cast<const PreparedProduct*>(prepared);
  if (p.b) {  // one matrix for all batches: every row along W is a row of A
    const int64_t rows = a.c() * a.h();
    math::Gemm({.m = rows, .k = a.w(), .n = p.b->n, .batch = {1, 1, a.n()}}, in[0].span(),
               math::RowMajor(a.w(), rows), product.b, {}, out.span(), math::RowMajor(p.b->n, rows),
               epilogue, product.a_grid);
    return;
  }
  math::Gemm({.m = a.c(), .k = a.w(), .n = out.dims.w(), .batch = {1, out.dims.n(), out.dims.h()}},
             in[0].span(), LayoutOf(a), in[1].span(), LayoutOf(in[1].dims), {}, out.span(),
             LayoutOf(out.dims), epilogue, {product.a_grid, product.b_grid});
}

void Exact(const MatMulParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  const Dims& a = in[0].dims;
  if (!p.b) {
    return math::ExactGemm(
        unit.numerics,
        {.m = a.c(), .k = a.w(), .n = out.dims.w(), .batch = {1, out.dims.n(), out.dims.h()}},
        in[0].span(), LayoutOf(a), in[1].span(), LayoutOf(in[1].dims), {}, out.span(),
        LayoutOf(out.dims));
  }
  std::vector<math::Half> factor(unit.weights[0].elements());
  ReadHalves(unit.weights[0], 0, absl::MakeSpan(factor));
  math::ExactGemm(unit.numerics, {.m = a.n() * a.c() * a.h(), .k = a.w(), .n = p.b->n},
                  in[0].span(), math::RowMajor(a.w()), factor,
                  math::LayoutOf(p.b->order, p.b->k, p.b->n), {}, out.span(),
                  math::RowMajor(p.b->n));
}

void Warn(const MatMulParams& p, const Unit&, Bottoms in, const Target& target, Route,
          WarningList& list) {
  if (!p.b && !in[1].is_constant()) return;
  WarnOfConstantFactor(RightDims(p, in).elements(), target, list);
}

// A constant factor is written as an operand, K channels by N columns.
std::optional<Operand> Compose(const MatMulParams& p, const Unit& unit, NetworkBuilder& c) {
  if (!p.b) return std::nullopt;
  const int64_t k = p.b->k, n = p.b->n;
  Tensor matrix = unit.weights[0];
  if (p.b->order == math::MatrixOrder::kColumnMajor) matrix = TransposedMatrix(matrix, n, k);
  Operand right = c.AddConstant(std::move(matrix), MakeDims(1, k, 1, n));
  return MatrixProduct(c, unit.bottoms[0], right);
}

// MIL multiplies the last two axes, so channel and height are swapped before and after it.
absl::Status WriteMil(const MatMulParams& p, const Unit& unit, MilEmitter& e) {
  auto rows_last = [](const Dims& dims) { return Sizes{dims.n(), dims.h(), dims.c(), dims.w()}; };
  ANEMONE_ASSIGN_OR_RETURN(std::string x, WriteFlatBottom(e, 0));
  const Dims& to = unit.dims;
  if (p.b) {  // every row along W is a row of A
    const bool turned = p.b->order == math::MatrixOrder::kColumnMajor;
    Sizes shape = {p.b->k, p.b->n};
    if (turned) std::swap(shape[0], shape[1]);
    const std::string y = e.Weight(unit.weights[0], shape);
    x = e.Emit("matmul",
               {{"x", {x}},
                {"y", {y}},
                {"transpose_x", {e.Bool(false)}},
                {"transpose_y", {e.Bool(turned)}}},
               FlatShape(to));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(std::string y, WriteFlatBottom(e, 1));
    x = WriteSwapped(e, std::move(x), rows_last(e.DimsOf(0)));
    y = WriteSwapped(e, std::move(y), rows_last(e.DimsOf(1)));
    x = e.Emit("matmul",
               {{"x", {x}},
                {"y", {y}},
                {"transpose_x", {e.Bool(false)}},
                {"transpose_y", {e.Bool(false)}}},
               rows_last(to));
    x = WriteSwapped(e, std::move(x), FlatShape(to));
  }
  WriteFlatResult(e, std::move(x), to);
  return absl::OkStatus();
}

std::optional<Arithmetic> ArithmeticOf(const MatMulParams&, Bottoms, absl::Span<const Tensor>) {
  return Arithmetic{Arithmetic::Kind::kContraction};
}

const UnitKindOf<MatMulParams>& Kind() {
  static const UnitKindOf<MatMulParams> kind({
      .type = "MatrixMultiplication",
      .bottoms = {1, 2, &rule::kMatmulBottoms},
      .arithmetic = ArithmeticOf,
      .macs = UnitMacs,
      .judge = {.shape = Shape, .validate = Validate, .warn = Warn},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil, .compose = Compose},
      .run = {.prepare = Prepare, .compute_then = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// A batch of matrices in ONNX: leading axes, then rows and columns.
struct Stack {
  Sizes batch;
  int64_t rows, columns;
  Dims folded() const { return MakeDims(Product(batch), rows, 1, columns); }
};

Stack StackOf(Sizes shape) {
  Stack stack{.batch = {}, .rows = shape[shape.size() - 2], .columns = shape.back()};
  shape.resize(shape.size() - 2);
  stack.batch = std::move(shape);
  return stack;
}

// Whether all leading axes can be joined on N: both operands have the same batches, or one of them
// has a single matrix, which is repeated.
bool BatchesFold(Sizes a, Sizes b) {
  if (Product(a) == 1 || Product(b) == 1) return true;
  size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1);
  b.insert(b.begin(), rank - b.size(), 1);
  return a == b;
}

// A right or left operand: its batch of matrices as stored, and a function that puts it under dims.
struct Factor {
  Stack stack;
  bool transposed = false;
  std::function<Operand(const Dims&)> lay_out;
};

// `x` with rows on C and columns on W, as the unit requires.
Operand Turned(NetworkBuilder& c, const Operand& x, const Factor& factor) {
  return factor.transposed ? SwapAxes(c, x, Axis::kC, Axis::kW) : x;
}

// The operand with its leading axes, at most two, on N and H.
Operand WithBatchOnHeight(NetworkBuilder& c, const Factor& factor) {
  Stack stack = factor.stack;
  stack.batch.insert(stack.batch.begin(), 2 - stack.batch.size(), 1);
  Dims dims = MakeDims(stack.batch[0], stack.batch[1], stack.rows, stack.columns);
  Operand x = factor.lay_out(dims);
  x = SwapAxes(c, x, Axis::kC, Axis::kH);
  return Turned(c, x, factor);
}

Operand ProductOfStacks(NetworkBuilder& c, const Factor& a, const Factor& b) {
  if (BatchesFold(a.stack.batch, b.stack.batch)) {
    Operand left = a.lay_out(a.stack.folded());
    left = Turned(c, left, a);
    Operand right = b.lay_out(b.stack.folded());
    right = Turned(c, right, b);
    return MatrixProduct(c, left, right);
  }
  Operand left = WithBatchOnHeight(c, a);
  Operand right = WithBatchOnHeight(c, b);
  Operand y = MatrixProduct(c, left, right);
  return SwapAxes(c, y, Axis::kC, Axis::kH);
}

absl::Status LowerMatMul(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_RETURN_IF_ERROR(Attributes(node).NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(Sizes a_shape, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Sizes b_shape, c.ShapeOf(node.inputs[1]));
  ANEMONE_ASSIGN_OR_RETURN(Sizes y_shape, c.ShapeOf(node.outputs[0]));
  if (a_shape.empty() || b_shape.empty()) {
    return absl::InvalidArgumentError("MatMul of a scalar; run the ONNX checker on the model");
  }
  if (auto b = ConstantRight(c.view(), node.inputs[1])) {
    Operand x = c.In(node.inputs[0]);
    x = ToOnnxOrder(c, x, static_cast<int>(a_shape.size()));
    x = FullyConnected(c, x, a_shape, *b, nullptr, y_shape);
    return c.Out(node.outputs[0], x);
  }
  if (a_shape.size() == kMaxRank || b_shape.size() == kMaxRank) {
    return c.Refuse(rule::kMatmulRank5);
  }
  if (a_shape.size() == 1) a_shape.insert(a_shape.begin(), 1);
  if (b_shape.size() == 1) b_shape.push_back(1);
  auto factor = [&](int i, Sizes shape) {
    return Factor{.stack = StackOf(std::move(shape)), .lay_out = [&c, &node, i](const Dims& dims) {
                    return InAs(c, node.inputs[i], dims);
                  }};
  };
  Operand y = ProductOfStacks(c, factor(0, a_shape), factor(1, b_shape));
  y = ReshapeToDims(c, y, PlaceShape(y_shape));
  return c.Out(node.outputs[0], y);
}

// The number of output elements times the extent of the contracted axis.
int64_t Macs(const Graph& graph, const Node& node) {
  Sizes a = graph.values[node.inputs[0]].dims();
  return a.empty() ? 0 : Product(graph.values[node.outputs[0]].dims()) * a.back();
}

// An argument of matmul; a vector becomes a matrix.
absl::StatusOr<Factor> FactorOf(MilContext& c, size_t i, bool transposed) {
  Sizes shape = c.ShapeOf(i);
  if (shape.empty()) return absl::InvalidArgumentError("matmul: want arguments of rank 1 or more");
  if (shape.size() == 1) shape.insert(i == 0 ? shape.begin() : shape.end(), 1);
  Operand x = c.In(i);
  return Factor{.stack = StackOf(std::move(shape)),
                .transposed = transposed,
                .lay_out = [&c, x](const Dims& dims) { return ReshapeToDims(c, x, dims); }};
}

// The shape of the result; kInvalidArgument if the shapes of the arguments do not match.
absl::StatusOr<Sizes> ProductShape(MilContext& c, const Factor& a, const Factor& b) {
  auto [rows, k] = std::pair(a.stack.rows, a.stack.columns);
  if (a.transposed) std::swap(rows, k);
  auto [k_of_b, columns] = std::pair(b.stack.rows, b.stack.columns);
  if (b.transposed) std::swap(k_of_b, columns);
  Sizes longer = a.stack.batch, shorter = b.stack.batch;
  if (longer.size() < shorter.size()) std::swap(longer, shorter);
  bool fits = k == k_of_b;
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& one = longer[longer.size() - 1 - i];
    const int64_t other = shorter[shorter.size() - 1 - i];
    fits = fits && (one == other || one == 1 || other == 1);
    one = std::max(one, other);
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("matmul: ", DimsToString(c.ShapeOf(0)), " and ",
                                                   DimsToString(c.ShapeOf(1)),
                                                   " cannot be multiplied"));
  }
  if (c.rank(0) > 1) longer.push_back(rows);
  if (c.rank(1) > 1) longer.push_back(columns);
  return longer;
}

// matmul, and ne_matmul, which is the name of the unit itself.
absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(bool transpose_x, c.Bool("transpose_x", false));
  ANEMONE_ASSIGN_OR_RETURN(bool transpose_y, c.Bool("transpose_y", false));
  for (const MilTensor& argument : c.call().arguments) {
    const bool is_flag = argument.name == "transpose_x" || argument.name == "transpose_y";
    if (is_flag && !argument.constant) return c.Refuse(rule::kOrionMatmulFlags);
  }
  if (c.arguments() != 2) return absl::InvalidArgumentError("matmul: want two arguments");
  ANEMONE_ASSIGN_OR_RETURN(Factor a, FactorOf(c, 0, transpose_x));
  ANEMONE_ASSIGN_OR_RETURN(Factor b, FactorOf(c, 1, transpose_y));
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, ProductShape(c, a, b));
  if (c.rank(0) == kMaxRank || c.rank(1) == kMaxRank) return c.Refuse(rule::kMatmulRank5);
  const MilTensor& right = c.call().arguments[1];
  if (right.constant && !transpose_x && Product(b.stack.batch) == 1) {
    ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(right));
    ConstantMatrix matrix{std::move(zeros), b.stack.rows, b.stack.columns};
    if (transpose_y) {
      std::swap(matrix.k, matrix.n);
      matrix.order = math::MatrixOrder::kColumnMajor;
    }
    if (!IsEngineConstant(matrix.values.type())) return c.Refuse(rule::kIntegerWeight);
    Operand x = c.In(0);
    x = ToOnnxOrder(c, x, c.rank(0));
    x = FullyConnected(c, x, c.ShapeOf(0), matrix, nullptr, shape);
    return c.Out(x, shape);
  }
  Operand y = ProductOfStacks(c, a, b);
  y = ReshapeToDims(c, y, PlaceShape(shape));
  return c.Out(y, shape);
}

constexpr MilOperation kOperations[] = {{"matmul", Build}, {"ne_matmul", Build}};

// Integer products that the importer did not rewrite to floats are not lowered. Only their MACs are
// counted.
constexpr Lowering kLowerings[] = {{.op = "MatMul", .lower = LowerMatMul, .macs = Macs},
                                   {.op = "QLinearMatMul", .macs = Macs},
                                   {.op = "MatMulInteger", .macs = Macs}};

}  // namespace

Tensor TransposedMatrix(const Tensor& matrix, int64_t rows, int64_t columns) {
  if (matrix.is_fill()) return matrix.Reshaped({columns, rows});
  if (matrix.compressed() != nullptr) {
    Compressed::Ptr turned = matrix.compressed()->Transposed(rows, columns);
    if (turned != nullptr) return Tensor::Of({columns, rows}, std::move(turned));
  }
  const std::vector<float> from = RoundedFloats(matrix);
  std::vector<float> to(from.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) to[i * rows + row] = from[row * columns + i];
  }
  return Tensor::Floats({columns, rows}, to);
}

void WarnOfConstantFactor(int64_t elements, const Target& target, WarningList& list) {
  list.Add(warning::kLinearAsConvolution);
  const int64_t bytes = elements * BytesOf(Format::kFloat16);
  auto held = target.limit(Limit::kMatmulWorkingSetBytes);
  if (held && bytes >= held->value) list.Add(warning::kMatmulWorkingSet, bytes, held->value);
}

Operand MatrixProduct(NetworkBuilder& c, const Operand& a, const Operand& b) {
  return c.Add(Kind(), MatMulParams{}, {a, b});
}

Operand MatrixProduct(NetworkBuilder& c, const Operand& a, const ConstantMatrix& b) {
  return c.Add(Kind(), MatMulParams{MatMulParams::Weight{b.k, b.n, b.order}}, {a}, {b.Matrix()});
}

std::optional<ConstantMatrix> FactorOfProduct(const Unit& unit) {
  if (unit.kind != &Kind()) return std::nullopt;
  const auto& p = *static_cast<const MatMulParams*>(unit.params.get());
  if (!p.b) return std::nullopt;
  return ConstantMatrix{unit.weights[0], p.b->k, p.b->n, p.b->order};
}

std::optional<ConstantMatrix> ConstantRight(const GraphView& view, ValueId value) {
  const Tensor* tensor = view.Constant(value);
  if (tensor == nullptr || !IsEngineConstant(tensor->type()) || tensor->dims().empty()) {
    return std::nullopt;
  }
  Sizes shape = tensor->dims();
  if (shape.size() == 1) shape.push_back(1);
  Stack stack = StackOf(shape);
  if (Product(stack.batch) != 1) return std::nullopt;
  return ConstantMatrix{.values = *tensor, .k = stack.rows, .n = stack.columns};
}

Operand InAs(LowerContext& c, ValueId value, const Dims& dims) {
  const Tensor* constant = c.view().Constant(value);
  if (constant != nullptr && IsEngineConstant(constant->type())) {
    return c.AddConstant(*constant, dims);
  }
  Operand x = c.In(value);
  return ReshapeToDims(c, x, dims);
}

KernelRows MatrixMultiplicationRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
