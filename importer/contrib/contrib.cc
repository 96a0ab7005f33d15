#include "importer/contrib/contrib.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/contrib/builders.h"
#include "importer/edit.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

using onnx::TypeProto;

using Types = std::vector<TypeProto>;

// What is known of an input; nothing if it is left out.
TypeProto TypeOfInput(const Graph& graph, const Node& node, size_t index) {
  const ValueId id = InputOr(node, index);
  return id == kNone ? TypeProto() : TypeOf(graph.values[id]);
}

const Shape* ShapeOfInput(const Graph& graph, const Node& node, size_t index) {
  const ValueId id = InputOr(node, index);
  if (id == kNone || !graph.values[id].shape.has_value()) return nullptr;
  return &*graph.values[id].shape;
}

TypeProto OnlyType(TypeProto type) {
  if (type.has_tensor_type()) type.mutable_tensor_type()->clear_shape();
  return type;
}

TypeProto Shaped(TypeProto type, const Shape& shape) {
  if (!type.has_tensor_type()) return type;
  onnx::TensorShapeProto* proto = type.mutable_tensor_type()->mutable_shape();
  proto->clear_dim();
  for (const Dim& dim : shape) {
    onnx::TensorShapeProto::Dimension* to = proto->add_dim();
    if (dim.known()) {
      to->set_dim_value(dim.size);
    } else if (!dim.symbol.empty()) {
      to->set_dim_param(dim.symbol);
    }
  }
  return type;
}

// The first input with another last dimension.
TypeProto WithLast(const Graph& graph, const Node& node, const TypeProto& type, Dim last) {
  const Shape* shape = ShapeOfInput(graph, node, 0);
  if (shape == nullptr || shape->empty()) return OnlyType(type);
  Shape made = *shape;
  made.back() = std::move(last);
  return Shaped(type, made);
}

Dim Known(int64_t size) { return {.size = std::max<int64_t>(size, -1), .symbol = ""}; }

// All outputs of the type, the first of the shape as well, and the fourth, which is a sum with it.
Types LikeFirst(const Graph& graph, const Node& node) {
  const TypeProto type = TypeOfInput(graph, node, 0);
  Types types(node.outputs.size(), OnlyType(type));
  for (size_t i : {size_t{0}, size_t{3}}) {
    if (i < types.size()) types[i] = type;
  }
  if (node.op_type == "SimplifiedLayerNormalization" && !types.empty()) {
    types.resize(1);  // the deviation is float32 whatever x is
  }
  return types;
}

Types TypeOnly(const Graph& graph, const Node& node) {
  return {OnlyType(TypeOfInput(graph, node, 0))};
}

// What quantized operators make has the type of the integers they read; of a float if they have no
// scale for it.
Types InferQuantized(const Graph& graph, const Node& node) {
  size_t like = 0;
  if (node.op_type == "QLinearConcat" || node.op_type == "MatMulIntegerToFloat") like = 2;
  if (node.op_type == "QGemm" && !HasInput(node, 7)) like = 1;
  return {OnlyType(TypeOfInput(graph, node, like))};
}

Types InferNBits(const Graph& graph, const Node& node) {
  const int64_t columns = IntOr(node, "N", -1);
  return {WithLast(graph, node, TypeOfInput(graph, node, 0), Known(columns > 0 ? columns : -1))};
}

Types InferEmbedded(const Graph& graph, const Node& node) {
  const TypeProto type = OnlyType(TypeOfInput(graph, node, 2));
  const Shape* words = ShapeOfInput(graph, node, 0);
  const Shape* table = ShapeOfInput(graph, node, 2);
  if (words == nullptr || words->size() != 2 || table == nullptr || table->size() != 2) {
    return {type};
  }
  return {Shaped(type, {(*words)[0], (*words)[1], (*table)[1]})};
}

// Attention: what of the projection is of v. QAttention: a third, of the type of its scale.
Types InferPacked(const Graph& graph, const Node& node) {
  const bool quantized = node.op_type == "QAttention";
  const TypeProto type = OnlyType(TypeOfInput(graph, node, quantized ? 3 : 0));
  const Shape* weights = ShapeOfInput(graph, node, 1);
  const auto widths = IntsOf(node, "qkv_hidden_sizes");
  Dim width;
  if (widths.has_value()) {
    if (widths->size() == 3) width = Known((*widths)[2]);
  } else if (weights != nullptr && weights->size() == 2 && (*weights)[1].known()) {
    width = Known((*weights)[1].size / 3);
  }
  Types types(node.outputs.size(), type);
  if (!types.empty()) types[0] = WithLast(graph, node, type, width);
  return types;
}

// The width of the value, if it lies in a row.
Types InferMultiHead(const Graph& graph, const Node& node) {
  const TypeProto type = OnlyType(TypeOfInput(graph, node, 0));
  const Shape* q = ShapeOfInput(graph, node, 0);
  const Shape* v = ShapeOfInput(graph, node, 2);
  Types types(std::min<size_t>(node.outputs.size(), 3), type);
  if (!types.empty() && q != nullptr && q->size() == 3) {
    const bool in_a_row = v != nullptr && v->size() == 3;
    types[0] = WithLast(graph, node, type, in_a_row ? v->back() : Dim());
  }
  return types;
}

Types InferGrouped(const Graph& graph, const Node& node) {
  const TypeProto type = TypeOfInput(graph, node, 0);
  if (HasInput(node, 1)) return {type};
  const Shape* q = ShapeOfInput(graph, node, 0);
  const int64_t heads = IntOr(node, "num_heads", 0), groups = IntOr(node, "kv_num_heads", 0);
  Dim width;
  const bool sane = q != nullptr && !q->empty() && q->back().known() && heads > 0 && groups > 0 &&
                    heads <= q->back().size && groups <= heads;
  if (sane) width = Known(q->back().size / (heads + 2 * groups) * heads);
  return {WithLast(graph, node, OnlyType(type), width)};
}

struct Row {
  absl::string_view op;
  absl::Status (*expand)(ContribBody&);
  Types (*infer)(const Graph&, const Node&);
  unsigned required;  // bit i: input i must be there
  unsigned alike;     // bit i: input i, if it is there, is of the type that the operator is of
  absl::string_view domain = "com.microsoft";
};

constexpr Row kRows[] = {
    {"Attention", ExpandAttention, InferPacked, 0b11, 0b110111},
    {"BiasGelu", ExpandBiasGelu, LikeFirst, 0b11, 0b11},
    {"DynamicQuantizeMatMul", ExpandDynamicQuantizeMatMul, InferQuantized, 0b111, 0},
    {"EmbedLayerNormalization", ExpandEmbedLayerNormalization, InferEmbedded, 0b1101101, 0b1111100},
    {"FastGelu", ExpandFastGelu, LikeFirst, 0b1, 0b11},
    {"FusedConv", ExpandFusedConv, TypeOnly, 0b11, 0b1111},
    {"FusedMatMul", ExpandFusedMatMul, TypeOnly, 0b11, 0b11},
    {"Gelu", ExpandGelu, LikeFirst, 0b1, 0b1},
    {"GroupQueryAttention", ExpandGroupQueryAttention, InferGrouped, 0b1100001, 0b10110011111},
    {"MatMulNBits", ExpandMatMulNBits, InferNBits, 0b111, 0b100101},
    {"MatMulIntegerToFloat", ExpandMatMulIntegerToFloat, InferQuantized, 0b1111, 0},
    {"MultiHeadAttention", ExpandMultiHeadAttention, InferMultiHead, 0b1, 0b11101111},
    {"QAttention", ExpandQAttention, InferPacked, 0b11111, 0b100011100},
    {"QGemm", ExpandQGemm, InferQuantized, 0b11011, 0},
    {"QLinearAdd", ExpandQLinear, InferQuantized, 0b1011011, 0},
    {"QLinearAveragePool", ExpandQLinear, InferQuantized, 0b1011, 0},
    {"QLinearConcat", ExpandQLinearConcat, InferQuantized, 0b11111, 0},
    {"QLinearConv", ExpandQLinearConv, InferQuantized, 0b11111111, 0, ""},
    {"QLinearGlobalAveragePool", ExpandQLinear, InferQuantized, 0b1011, 0},
    {"QLinearLeakyRelu", ExpandQLinear, InferQuantized, 0b1011, 0},
    {"QLinearMatMul", ExpandQLinearMatMul, InferQuantized, 0b11111111, 0, ""},
    {"QLinearMul", ExpandQLinear, InferQuantized, 0b1011011, 0},
    {"QLinearSigmoid", ExpandQLinear, InferQuantized, 0b1011, 0},
    {"QLinearSoftmax", ExpandQLinear, InferQuantized, 0b1011, 0},
    {"QuickGelu", ExpandQuickGelu, LikeFirst, 0b1, 0b1},
    {"RotaryEmbedding", ExpandRotaryEmbedding, LikeFirst, 0b1111, 0b1101},
    {"SimplifiedLayerNormalization", ExpandSimplifiedLayerNormalization, LikeFirst, 0b11, 0b11, ""},
    {"SkipLayerNormalization", ExpandSkipLayerNormalization, LikeFirst, 0b111, 0b11111},
    {"SkipSimplifiedLayerNormalization", ExpandSkipSimplifiedLayerNormalization, LikeFirst, 0b111,
     0b1111},
};

const Row* RowOf(const Node& node) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) {
    return r.op == node.op_type && r.domain == node.domain;
  });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

bool IsContrib(const Node& node) { return RowOf(node) != nullptr; }

std::vector<ContribName> ContribNames() {
  std::vector<ContribName> names;
  for (const Row& row : kRows) names.push_back({row.domain, row.op});
  return names;
}

absl::Status ExpandContrib(ContribBody& body) {
  const Row& row = *RowOf(body.node());
  for (size_t i = 0; row.required >> i != 0; ++i) {
    const bool fits = (row.required >> i & 1) == 0 || body.Has(i);
    ANEMONE_RETURN_IF_ERROR(body.Need(fits, absl::StrCat("input ", i, " is missing")));
  }
  std::optional<DataType> type;
  for (size_t i = 0; row.alike >> i != 0; ++i) {
    if ((row.alike >> i & 1) == 0 || !body.Has(i)) continue;
    const DataType own = body.value(body.input(i)).type;
    ANEMONE_RETURN_IF_ERROR(
        body.Need(own == type.value_or(own), absl::StrCat("input ", i, " is of another type")));
    type = own;
  }
  return row.expand(body);
}

std::vector<TypeProto> InferContrib(const Graph& graph, const Node& node) {
  const Row* row = RowOf(node);
  return row == nullptr ? Types() : row->infer(graph, node);
}

}  // namespace anemone
