// Infers types of the outputs of contrib operators, as far as they are known.
#include <algorithm>
#include <utility>

#include "importer/contrib/builders.h"
#include "importer/edit.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

using onnx::TypeProto;

// The known type of an input; an empty type if it is omitted.
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

// The shape of the first input with another last dimension.
TypeProto WithLast(const Graph& graph, const Node& node, const TypeProto& type, Dim last) {
  const Shape* shape = ShapeOfInput(graph, node, 0);
  if (shape == nullptr || shape->empty()) return OnlyType(type);
  Shape made = *shape;
  made.back() = std::move(last);
  return Shaped(type, made);
}

Dim KnownDim(int64_t size) { return {.size = std::max<int64_t>(size, -1), .symbol = ""}; }

// Types for a packed projection. The width of v comes from an attribute, or is a third.
Types Packed(const Graph& graph, const Node& node, const TypeProto& like) {
  const TypeProto type = OnlyType(like);
  const Shape* weights = ShapeOfInput(graph, node, 1);
  const auto widths = IntsOf(node, "qkv_hidden_sizes");
  Dim width;
  if (widths.has_value()) {
    if (widths->size() == 3) width = KnownDim((*widths)[2]);
  } else if (weights != nullptr && weights->size() == 2 && (*weights)[1].known()) {
    width = KnownDim((*weights)[1].size / 3);
  }
  Types types(node.outputs.size(), type);
  if (!types.empty()) types[0] = WithLast(graph, node, type, width);
  return types;
}

}  // namespace

// All outputs have the type of the first input. The first and fourth also have its shape; the
// fourth is a sum with the first input.
Types TypesLikeFirst(const Graph& graph, const Node& node) {
  const TypeProto type = TypeOfInput(graph, node, 0);
  Types types(node.outputs.size(), OnlyType(type));
  for (size_t i : {size_t{0}, size_t{3}}) {
    if (i < types.size()) types[i] = type;
  }
  return types;
}

// Only the first output: the deviation is float32 for every type of x.
Types TypesOfSimplifiedLayerNormalization(const Graph& graph, const Node& node) {
  return {TypeOfInput(graph, node, 0)};
}

Types TypeOfFirst(const Graph& graph, const Node& node) {
  return {OnlyType(TypeOfInput(graph, node, 0))};
}

Types TypeOfSecond(const Graph& graph, const Node& node) {
  return {OnlyType(TypeOfInput(graph, node, 1))};
}

Types TypeOfThird(const Graph& graph, const Node& node) {
  return {OnlyType(TypeOfInput(graph, node, 2))};
}

// Without a scale for the result, the result is a float, of the type of the first operand's scale.
Types TypeOfQGemm(const Graph& graph, const Node& node) {
  return {OnlyType(TypeOfInput(graph, node, HasInput(node, 7) ? 0 : 1))};
}

Types TypeOfMatMulNBits(const Graph& graph, const Node& node) {
  const int64_t columns = IntOr(node, "N", -1);
  return {WithLast(graph, node, TypeOfInput(graph, node, 0), KnownDim(columns > 0 ? columns : -1))};
}

// The sequence (length, directions, batch, hidden), and the last hidden and cell states.
Types TypesOfDynamicQuantizeLstm(const Graph& graph, const Node& node) {
  const TypeProto type = OnlyType(TypeOfInput(graph, node, 0));
  Types types(std::min<size_t>(node.outputs.size(), 3), type);
  const Shape* x = ShapeOfInput(graph, node, 0);
  const Shape* r = ShapeOfInput(graph, node, 2);
  if (x == nullptr || x->size() != 3 || r == nullptr || r->size() != 3) return types;
  for (size_t i = 0; i < types.size(); ++i) {
    Shape shape = {(*r)[0], (*x)[1], (*r)[1]};
    if (i == 0) shape.insert(shape.begin(), (*x)[0]);
    types[i] = Shaped(type, shape);
  }
  return types;
}

Types TypeOfEmbedLayerNormalization(const Graph& graph, const Node& node) {
  const TypeProto type = OnlyType(TypeOfInput(graph, node, 2));
  const Shape* words = ShapeOfInput(graph, node, 0);
  const Shape* table = ShapeOfInput(graph, node, 2);
  if (words == nullptr || words->size() != 2 || table == nullptr || table->size() != 2) {
    return {type};
  }
  return {Shaped(type, {(*words)[0], (*words)[1], (*table)[1]})};
}

Types TypesOfAttention(const Graph& graph, const Node& node) {
  return Packed(graph, node, TypeOfInput(graph, node, 0));
}

Types TypesOfQAttention(const Graph& graph, const Node& node) {
  return Packed(graph, node, TypeOfInput(graph, node, 3));
}

// The width of the output is that of the value input if that is 3-D.
Types TypesOfMultiHeadAttention(const Graph& graph, const Node& node) {
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

Types TypeOfGroupQueryAttention(const Graph& graph, const Node& node) {
  const TypeProto type = TypeOfInput(graph, node, 0);
  if (HasInput(node, 1)) return {type};
  const Shape* q = ShapeOfInput(graph, node, 0);
  const int64_t heads = IntOr(node, "num_heads", 0), groups = IntOr(node, "kv_num_heads", 0);
  Dim width;
  const bool sane = q != nullptr && !q->empty() && q->back().known() && heads > 0 && groups > 0 &&
                    heads <= q->back().size && groups <= heads;
  if (sane) width = KnownDim(q->back().size / (heads + 2 * groups) * heads);
  return {WithLast(graph, node, OnlyType(type), width)};
}

}  // namespace anemone
