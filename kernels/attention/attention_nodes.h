// kernels/attention/attention_nodes.h: predicates on single nodes and values, for the search for
// attention.
#ifndef ANEMONE_KERNELS_ATTENTION_ATTENTION_NODES_H_
#define ANEMONE_KERNELS_ATTENTION_ATTENTION_NODES_H_

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/lowering.h"
#include "kernels/units/layer_normalization.h"
#include "math/core/half.h"

namespace anemone {

class AttentionNodes {
 public:
  explicit AttentionNodes(const GraphView& view) : view_(view) {}
  const GraphView& view() const { return view_; }

  std::optional<std::vector<int64_t>> ShapeOf(ValueId value) const {
    const Value& v = view_.graph.values[value];
    if (!v.is_static()) return std::nullopt;
    return v.dims();
  }

  int RankOf(ValueId value) const {
    const Value& v = view_.graph.values[value];
    return v.shape ? static_cast<int>(v.shape->size()) : 0;
  }

  // The node that computes `value` if it is of the ONNX domain and `value` has a single reader;
  // else null.
  const Node* Sole(ValueId value) const {
    const NodeId id = view_.graph.values[value].producer;
    return id == kNone ? nullptr : view_.OnlyProducer(value, view_.graph.nodes[id].op_type);
  }

  // Whether input `i` of an elementwise node has as many elements as the output, so that it is not
  // broadcast.
  bool KeepsElements(const Node& node, int i) const {
    auto from = ShapeOf(node.inputs[i]), to = ShapeOf(node.outputs[0]);
    if (!from || !to || from->size() > to->size()) return false;
    const auto shared = to->end() - from->size();
    return std::count(to->begin(), shared, 1) == shared - to->begin() &&
           std::equal(from->begin(), from->end(), shared);
  }

  // The value of a constant whose elements are all equal: a scalar or a fill.
  std::optional<double> NumberOf(ValueId value) const {
    if (auto number = view_.Scalar(value)) return number;
    const Tensor* t = view_.Constant(value);
    if (t == nullptr || !t->is_fill()) return std::nullopt;
    if (t->type() == DataType::kFloat) return t->at<float>(0);
    if (t->type() == DataType::kFloat16) return math::ToFloat(math::Half{t->at<uint16_t>(0)});
    return std::nullopt;
  }

  bool IsFloat(ValueId value) const { return IsFloating(view_.graph.values[value].type); }

  // A cast between float types has no effect inside the engine.
  bool IsFloatCast(const Node& node) const {
    return node.op_type == "Cast" && IsFloat(node.inputs[0]) && IsFloat(node.outputs[0]);
  }

  // A reshape that keeps the last two axes and only regroups the axes before them.
  bool KeepsPlanes(const Node& node) const {
    if (node.op_type != "Reshape" && node.op_type != "Unsqueeze" && node.op_type != "Squeeze") {
      return false;
    }
    auto from = ShapeOf(node.inputs[0]), to = ShapeOf(node.outputs[0]);
    if (!from || !to || from->size() < 2 || to->size() < 2) return false;
    return std::equal(from->end() - 2, from->end(), to->end() - 2);
  }

  bool IsOverLastAxis(const Node& softmax) const {
    auto axis = Attributes(softmax).Int("axis", -1);
    return axis.ok() && (*axis == -1 || *axis == RankOf(softmax.inputs[0]) - 1);
  }

  bool ReducesLastAxis(const Node& reduction) const {
    auto keepdims = Attributes(reduction).Int("keepdims", 1);
    auto axes = ReducedAxes(view_, reduction);
    return keepdims.ok() && *keepdims == 1 && axes &&
           *axes == std::vector<int>{RankOf(reduction.inputs[0]) - 1};
  }

  bool SwapsLastTwo(const Node& transpose) const {
    const int rank = RankOf(transpose.inputs[0]);
    auto perm = Attributes(transpose).Ints("perm", {});
    if (rank < 3 || !perm.ok() || static_cast<int>(perm->size()) != rank) return false;
    for (int i = 0; i < rank; ++i) {
      int64_t want = i == rank - 2 ? rank - 1 : i == rank - 1 ? rank - 2 : i;
      if ((*perm)[i] != want) return false;
    }
    return true;
  }

  // The Transpose that computes `value` by swapping the last two axes, or null.
  const Node* SwapBehind(ValueId value) const {
    const Node* transpose = view_.OnlyProducer(value, "Transpose");
    return transpose != nullptr && SwapsLastTwo(*transpose) ? transpose : nullptr;
  }

 private:
  const GraphView& view_;
};

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ATTENTION_ATTENTION_NODES_H_
