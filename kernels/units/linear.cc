// Linear: multiplies the last axis by a constant matrix. Every target has it. Facts:
// validators.json Linear; op_matrix.json linear ("becomes a convolution when the right operand fits
// on chip").
//
// The netplist keys of the Linear unit are known only from a listing, so it is used on route mil
// only. On route netplist, a value with one row per image (rank 1 or 2, or a single row) becomes a
// 1x1 convolution with its bias: (rows, k) becomes (rows, k, 1, 1), so k is limited by the cap of
// channels and not by that of widths. Rows of a sequence become a MatrixMultiplication, which needs
// no reshape.
#include "kernels/units/linear.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/constant_id.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/conv/conv.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/exact_terms.h"
#include "kernels/units/goc.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "math/exact/exact_contract.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct LinearParams {
  int64_t k = 1, n = 1;
  math::MatrixOrder order = math::MatrixOrder::kColumnMajor;
  int rank = 2;  // of the input value
};

absl::StatusOr<Dims> Shape(const LinearParams& p, Bottoms in) {
  if (in[0].dims.w() != p.k) {
    return absl::InvalidArgumentError(absl::StrCat("linear: want one input of width ", p.k));
  }
  Dims out = in[0].dims;
  out[Axis::kW] = p.n;
  return out;
}

int64_t UnitMacs(const LinearParams& p, Bottoms, absl::Span<const Tensor>, const Dims& out) {
  return out.elements() * p.k;
}

Verdict Validate(const LinearParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  // Where only dims are known, rank 5 is recognized by a depth above 1.
  if (p.rank >= kMaxRank || in[0].dims.d() > 1) return judge.Reject(rule::kLinearRank);
  return judge.Accept();
}

bool IsRowMajor(const LinearParams& p) { return p.order == math::MatrixOrder::kRowMajor; }

// The keys for the position of the kernel in a file are read elsewhere. WeightOrder is Anemone's.
constexpr Field<LinearParams> kFields[] = {
    {"KernelMode", [](const LinearParams&) -> Json { return "Dense"; }, nullptr},
    {"KernelType", [](const LinearParams&) -> Json { return "Float16"; }, nullptr},
    {"KernelMutable", [](const LinearParams&) -> Json { return false; }, nullptr},
    {"KernelIndex", [](const LinearParams&) -> Json { return nullptr; }, nullptr},
    {"KernelOffset", [](const LinearParams&) -> Json { return nullptr; }, nullptr},
    Alias<&LinearParams::k>("InputChannels"),
    Alias<&LinearParams::n>("OutputChannels"),
    Alias<&LinearParams::n>("out"),
    Key<&LinearParams::order, Plain, IsRowMajor>(kWeightOrder),
};

// The weight of an authored unit is (N, K), as in MIL, unless WeightOrder says otherwise.
absl::Status Complete(LinearParams& p, Bottoms in, absl::Span<const Tensor> weights) {
  p.k = in[0].dims.w();
  if (!weights.empty()) {
    const std::vector<int64_t>& sizes = weights[0].dims();
    const size_t along_k = IsRowMajor(p) ? 0 : 1;
    if (sizes.size() != 2 || sizes[along_k] != p.k) {
      return absl::InvalidArgumentError(absl::StrCat("weight: want a matrix with the input's ", p.k,
                                                     " elements along ",
                                                     IsRowMajor(p) ? "columns" : "rows"));
    }
    p.n = sizes[1 - along_k];
  }
  if (weights.size() > 2 || (weights.size() == 2 && weights[1].elements() != p.n)) {
    return absl::InvalidArgumentError(
        "weights: want a matrix and optionally one bias for each column");
  }
  if (p.n < 1) return absl::InvalidArgumentError("OutputChannels: want at least 1");
  return absl::OkStatus();
}

struct PackedLinear {
  math::PackedMatrix matrix;
  std::vector<float> bias;
};

absl::StatusOr<Prepared> Prepare(const LinearParams& p, Bottoms, absl::Span<const Tensor> weights) {
  if (weights.empty()) return absl::InvalidArgumentError("Linear: want a weight");
  auto packed = std::make_shared<PackedLinear>();
  const math::CodedWeights coded = CodedFormOf(weights[0]);
  packed->matrix = math::PackMatrix(
      p.k, p.n, p.order,
      [&](int64_t first, absl::Span<math::Half> to) { ReadHalves(weights[0], first, to); }, &coded,
      IdOf(weights[0]));
  if (weights.size() > 1) packed->bias = RoundedFloats(weights[1]);
  return packed;
}

void Compute(const LinearParams& p, const void* prepared, absl::Span<const ConstView> in, View out,
             const math::Epilogue& epilogue) {
  const auto& packed = *static_cast<const PackedLinear*>(prepared);
  const int64_t images = in[0].dims.n(), rows = in[0].dims.elements() / p.k / images;
  math::Gemm({.m = rows, .k = p.k, .n = p.n, .batch = {1, 1, images}}, in[0].span(),
             math::RowMajor(p.k, rows), packed.matrix, packed.bias, out.span(),
             math::RowMajor(p.n, rows), epilogue);
}

void Exact(const LinearParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  std::vector<math::Half> weight(unit.weights[0].elements());
  ReadHalves(unit.weights[0], 0, absl::MakeSpan(weight));
  const ExactTerms terms(unit, p.n);
  math::ExactGemm(unit.numerics, {.m = in[0].dims.elements() / p.k, .k = p.k, .n = p.n},
                  in[0].span(), math::RowMajor(p.k), weight, math::LayoutOf(p.order, p.k, p.n),
                  terms.view(), out.span(), math::RowMajor(p.n));
}

void Warn(const LinearParams& p, const Unit&, Bottoms, const Target& target, Route,
          WarningList& list) {
  WarnOfConstantFactor(p.k * p.n, target, list);
}

absl::Status WriteMil(const LinearParams& p, const Unit& unit, MilEmitter& e) {
  if (unit.weights.empty()) return absl::UnimplementedError("a linear layer without a weight");
  ANEMONE_ASSIGN_OR_RETURN(std::string x, WriteFlatBottom(e, 0));
  Tensor weight = unit.weights[0];
  if (p.order == math::MatrixOrder::kRowMajor) weight = TransposedMatrix(weight, p.k, p.n);
  std::vector<MilArgument> arguments = {{"x", {x}}, {"weight", {e.Weight(weight, {p.n, p.k})}}};
  if (unit.weights.size() > 1) arguments.push_back({"bias", {e.Weight(unit.weights[1], {p.n})}});
  WriteFlatResult(e, e.Emit("linear", std::move(arguments), FlatShape(unit.dims)), unit.dims);
  return absl::OkStatus();
}

std::optional<Arithmetic> ArithmeticOf(const LinearParams&, Bottoms, absl::Span<const Tensor>) {
  return Arithmetic{Arithmetic::Kind::kContraction};
}

const UnitKindOf<LinearParams>& Kind() {
  static const UnitKindOf<LinearParams> kind({
      .type = "Linear",
      .bottoms = {1, 1, &rule::kLinearInputs},
      .arithmetic = ArithmeticOf,
      .macs = UnitMacs,
      .judge = {.shape = Shape, .validate = Validate, .warn = Warn},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil},
      .run = {.prepare = Prepare, .compute_then = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

Tensor Times(const Tensor& tensor, float factor) {
  std::vector<float> values = RoundedFloats(tensor);
  for (float& v : values) v *= factor;
  return Tensor::Floats(tensor.dims(), values);
}

// `constant` as a bias of n columns, n elements, times `factor`; nullopt if its shape does not fit.
std::optional<Tensor> AsBias(const Tensor* constant, int64_t n, float factor) {
  if (constant == nullptr || !IsEngineConstant(constant->type())) return std::nullopt;
  if (constant->elements() == 1) {
    return Tensor::Floats({n}, std::vector<float>(n, RoundedFloats(*constant)[0] * factor));
  }
  if (constant->elements() != n || constant->dims().back() != n) return std::nullopt;
  return factor == 1.0f ? *constant : Times(*constant, factor);
}

// The operand of a value with its elements in ONNX's order.
Operand InputInOnnxOrder(LowerContext& c, ValueId value) {
  ANEMONE_ASSIGN_OR_FAIL(c, std::vector<int64_t> shape, c.ShapeOf(value));
  Operand x = c.In(value);
  return ToOnnxOrder(c, x, static_cast<int>(shape.size()));
}

// A product with a constant and its neighbors: a Flatten before it, and an Add of a constant bias
// after a MatMul. The input of the Flatten has the same elements, so it is read directly; then a
// long row need not be along W, whose cap is below that of channels.
struct Layer {
  const Node* product = nullptr;  // Gemm or MatMul
  ValueId source = kNone;         // input of the product or of the Flatten
  ValueId bias = kNone;           // operand of the Add
};

Layer FindLayer(const GraphView& view, const Node& anchor) {
  Layer layer{.product = &anchor};
  if (anchor.op_type == "Add") {
    layer.product = nullptr;
    for (int i : {0, 1}) {
      if (view.Constant(anchor.inputs[1 - i]) == nullptr) continue;
      layer.product = view.OnlyProducer(anchor.inputs[i], "MatMul");
      layer.bias = anchor.inputs[1 - i];
    }
  }
  if (layer.product == nullptr) return layer;
  layer.source = layer.product->inputs[0];
  const Value& x = view.graph.values[layer.source];
  if (!x.shape || x.shape->size() != 2) return layer;
  for (const char* op : {"Flatten", "Reshape"}) {
    const Node* flatten = view.OnlyProducer(layer.product->inputs[0], op);
    if (flatten != nullptr) layer.source = flatten->inputs[0];
  }
  return layer;
}

bool MatchLayer(const GraphView& view, const Node& anchor, Match& match) {
  Layer layer = FindLayer(view, anchor);
  if (layer.product == nullptr || !ConstantRight(view, layer.product->inputs[1])) return false;
  ValueId x = layer.product->inputs[0];
  if (layer.source != x) match.nodes.push_back(view.graph.values[x].producer);
  if (layer.product != &anchor) match.nodes.push_back(view.IdOf(*layer.product));
  return !match.nodes.empty();
}

// MatMul with Add, or with Flatten.
absl::Status LowerMatMulLayer(const Match& match, LowerContext& c) {
  const Node& anchor = c.anchor(match);
  Layer layer = FindLayer(c.view(), anchor);
  ANEMONE_RETURN_IF_ERROR(Attributes(*layer.product).NoneLeft(c));
  ConstantMatrix b = *ConstantRight(c.view(), layer.product->inputs[1]);
  ANEMONE_ASSIGN_OR_RETURN(auto x_shape, c.ShapeOf(layer.product->inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(auto product_shape, c.ShapeOf(layer.product->outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(auto y_shape, c.ShapeOf(anchor.outputs[0]));
  std::optional<Tensor> bias;
  if (layer.bias != kNone) {
    bias = AsBias(c.view().Constant(layer.bias), b.n, 1);
    if (!bias || product_shape != y_shape)
      return c.NotLowered("an Add that does not add one bias to each column");
  }
  Operand x = InputInOnnxOrder(c, layer.source);
  x = FullyConnected(c, x, x_shape, b, bias ? &*bias : nullptr, y_shape);
  return c.Out(anchor.outputs[0], x);
}

struct GemmForm {
  float alpha = 1, beta = 1;
  bool trans_a = false, trans_b = false;
  std::vector<int64_t> a, y;  // shapes; a after the transpose
};

absl::StatusOr<GemmForm> ReadGemm(const Node& node, LowerContext& c) {
  Attributes attributes(node);
  GemmForm form;
  ANEMONE_ASSIGN_OR_RETURN(form.alpha, attributes.Float("alpha", 1));
  ANEMONE_ASSIGN_OR_RETURN(form.beta, attributes.Float("beta", 1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t trans_a, attributes.Int("transA", 0));
  ANEMONE_ASSIGN_OR_RETURN(int64_t trans_b, attributes.Int("transB", 0));
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft(c));
  form.trans_a = trans_a != 0;
  form.trans_b = trans_b != 0;
  ANEMONE_ASSIGN_OR_RETURN(form.a, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(form.y, c.ShapeOf(node.outputs[0]));
  if (form.a.size() != 2 || form.y.size() != 2) {
    return absl::InvalidArgumentError("Gemm: want matrices; run the ONNX checker on the model");
  }
  if (form.trans_a) std::swap(form.a[0], form.a[1]);
  return form;
}

Operand Transposed(LowerContext& c, const Operand& x, bool transposed) {
  return transposed ? SwapAxes(c, x, Axis::kH, Axis::kW) : x;
}

// alpha * A * B with B computed at run time.
Operand ComputedProduct(LowerContext& c, const Node& node, const GemmForm& form) {
  auto matrix = [&](ValueId value, bool transposed) -> Operand {
    Operand x = c.In(value);
    x = Transposed(c, x, transposed);
    return ReshapeToDims(c, x, MakeDims(1, c.DimsOf(x).h(), 1, c.DimsOf(x).w()));
  };
  Operand a = matrix(node.inputs[0], form.trans_a);
  Operand b = matrix(node.inputs[1], form.trans_b);
  Operand y = MatrixProduct(c, a, b);
  y = ScaleInFactors(c, y, form.alpha, 0);
  return ReshapeToDims(c, y, PlaceShape(form.y));
}

absl::Status LowerGemm(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(GemmForm form, ReadGemm(node, c));
  ValueId addend = HasInput(node, 2) ? node.inputs[2] : kNone;
  Operand y;
  if (auto b = ConstantRight(c.view(), node.inputs[1])) {
    if (form.trans_b) {
      std::swap(b->k, b->n);
      b->order = math::MatrixOrder::kColumnMajor;
    }
    if (form.alpha != 1) b->values = Times(b->values, form.alpha);
    auto bias = AsBias(c.view().Constant(addend), b->n, form.beta);
    if (bias) addend = kNone;
    Operand x = InputInOnnxOrder(
        c, match.nodes.size() == 1 ? node.inputs[0] : FindLayer(c.view(), node).source);
    x = Transposed(c, x, form.trans_a);
    y = FullyConnected(c, x, form.a, *b, bias ? &*bias : nullptr, form.y);
  } else {
    y = ComputedProduct(c, node, form);
  }
  if (addend != kNone) {
    Operand added = AlignedOperand(c, addend, form.y);
    added = ScaleInFactors(c, added, form.beta, 0);
    y = Combined(c, ElementWiseType::kAdd, y, added);
  }
  return c.Out(node.outputs[0], y);
}

bool MatchFlatGemm(const GraphView& view, const Node& anchor, Match& match) {
  auto trans_a = Attributes(anchor).Int("transA", 0);
  return trans_a.ok() && *trans_a == 0 && MatchLayer(view, anchor, match);
}

// The number of output elements times the extent of the contracted axis.
int64_t GemmMacs(const Graph& graph, const Node& node) {
  std::vector<int64_t> a = graph.values[node.inputs[0]].dims();
  std::vector<int64_t> y = graph.values[node.outputs[0]].dims();
  auto trans_a = Attributes(node).Int("transA", 0);
  if (a.size() != 2 || y.size() != 2 || !trans_a.ok()) return 0;
  return y[0] * y[1] * (*trans_a != 0 ? a[0] : a[1]);
}

// The activation function of a linear_activation, by its name in MIL; nullopt if there is none.
absl::Status ReadActivation(MilContext& c, std::optional<NeuronType>& activation) {
  static constexpr std::pair<const char*, NeuronType> kFunctions[] = {
      {"relu", NeuronType::kReLU},  {"sigmoid", NeuronType::kSigmoidHighPrecision},
      {"tanh", NeuronType::kTanh},  {"gelu", NeuronType::kGELU},
      {"silu", NeuronType::kSwish},
  };
  if (!c.Has("mode")) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, c.Text("mode", ""));
  for (const auto& [name, type] : kFunctions) {
    if (mode != name) continue;
    activation = type;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(c.call().op, ": unknown activation '", mode, "'"));
}

// linear, and linear_activation with a weight: x * W^T + bias.
absl::Status BuildLinear(MilContext& c) {
  std::optional<NeuronType> activation;
  if (c.call().op == "linear_activation") {
    ANEMONE_RETURN_IF_ERROR(ReadActivation(c, activation));
  }
  ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> weight, c.Constant("weight"));
  if (!weight && c.arguments() > 1 && c.call().arguments[1].constant) {
    weight = c.call().arguments[1];
  }
  ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> bias, c.Constant("bias"));
  Operand x = c.In(0);
  std::vector<int64_t> shape = c.ShapeOf(0);
  if (!weight || weight->shape.size() != 2 || shape.empty() || shape.back() != weight->shape[1] ||
      (bias && bias->shape != std::vector<int64_t>{weight->shape[0]})) {
    return absl::InvalidArgumentError(absl::StrCat(
        c.call().op, ": want a constant weight (out, in) and a bias (out) that fit the input"));
  }
  ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(*weight));
  std::optional<Tensor> added;
  if (bias) {
    ANEMONE_ASSIGN_OR_RETURN(added, ZerosOf(*bias));
  }
  if (!IsEngineConstant(zeros.type()) || (added && !IsEngineConstant(added->type()))) {
    return c.Refuse(rule::kIntegerWeight);
  }
  const ConstantMatrix b{std::move(zeros), weight->shape[1], weight->shape[0],
                         math::MatrixOrder::kColumnMajor};
  const std::vector<int64_t> x_shape = shape;
  shape.back() = b.n;
  x = ToOnnxOrder(c, x, c.rank(0));
  x = FullyConnected(c, x, x_shape, b, added ? &*added : nullptr, shape);
  if (activation) {
    x = Activated(c, *activation, x);
  }
  return c.Out(x, shape);
}

// With a weight, a fully connected layer and an activation function (op_matrix.json). Without one,
// alpha * x + beta for each element, as coremltools defines this operation.
absl::Status BuildLinearActivation(MilContext& c) {
  if (c.arguments() > 1 || c.Has("weight")) return BuildLinear(c);
  ANEMONE_ASSIGN_OR_RETURN(float alpha, c.Number("alpha", 1));
  ANEMONE_ASSIGN_OR_RETURN(float beta, c.Number("beta", 0));
  Operand x = c.In(0);
  x = ScaleAndShift(c, x, alpha, beta);
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"linear", BuildLinear},
                                        {"linear_activation", BuildLinearActivation}};

constexpr Lowering kLowerings[] = {
    {.op = "Gemm", .pattern = "flat-gemm", .match = MatchFlatGemm, .lower = LowerGemm},
    {.op = "Gemm", .lower = LowerGemm, .macs = GemmMacs},
    {.op = "Add", .pattern = "matmul-bias", .match = MatchLayer, .lower = LowerMatMulLayer},
    {.op = "MatMul", .pattern = "flat-matmul", .match = MatchLayer, .lower = LowerMatMulLayer},
};

}  // namespace

Operand FullyConnected(NetworkBuilder& c, const Operand& x, absl::Span<const int64_t> x_shape,
                       const ConstantMatrix& b, const Tensor* bias,
                       absl::Span<const int64_t> y_shape) {
  int64_t rows = c.DimsOf(x).elements() / std::max<int64_t>(b.k, 1);
  if (x_shape.empty() || x_shape.back() != b.k) {
    return c.Fail(absl::InvalidArgumentError(absl::StrCat(
        "product: want rows of ", b.k, " elements; run the ONNX checker on the model")));
  }
  Operand y;
  if (c.route() == Route::kMil) {
    std::vector<Tensor> weights = {b.Matrix()};
    if (bias != nullptr) weights.push_back(*bias);
    int rank = static_cast<int>(x_shape.size());
    y = FromOnnxOrder(c, x, x_shape);
    y = c.Add(Kind(), LinearParams{b.k, b.n, b.order, rank}, {y}, std::move(weights));
    y = ToOnnxOrder(c, y, rank);
  } else if (x_shape.size() <= 2 || rows == 1) {
    y = ReshapeToDims(c, x, MakeDims(rows, b.k, 1, 1));
    bool in_major = b.order == math::MatrixOrder::kRowMajor;
    y = PointwiseConv(c, y, b.n, b.values, in_major, bias);
  } else {
    int64_t sequence = x_shape[x_shape.size() - 2];
    y = ReshapeToDims(c, x, MakeDims(rows / std::max<int64_t>(sequence, 1), sequence, 1, b.k));
    y = MatrixProduct(c, y, b);
    if (bias != nullptr) {
      Operand addend = c.AddConstant(*bias, MakeDims(1, 1, 1, b.n));
      y = Combined(c, ElementWiseType::kAdd, y, addend);
    }
  }
  return FromOnnxOrder(c, y, y_shape);
}

std::optional<ConstantMatrix> FactorOfLinear(const Unit& unit) {
  if (unit.kind != &Kind() || unit.weights.empty()) return std::nullopt;
  const auto& p = *static_cast<const LinearParams*>(unit.params.get());
  return ConstantMatrix{unit.weights[0], p.k, p.n, p.order};
}

KernelRows LinearRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
