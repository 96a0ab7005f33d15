#include "importer/operators/row_rules.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

#include "importer/edit.h"
#include "importer/operators/operators.h"

namespace anemone {
namespace {

using Needs = std::vector<int>;

std::vector<int64_t> InDims(const Graph& graph, const Node& node, size_t i) {
  return graph.values[node.inputs[i]].dims();
}

std::vector<int64_t> OutDims(const Graph& graph, const Node& node) {
  return graph.values[node.outputs[0]].dims();
}

// Nothing of any input is left out.
Needs WholeInputs(const Node& node) { return Needs(node.inputs.size(), kNone); }

// Only the first input has rows.
Needs FirstInput(const Node& node, int axis) {
  Needs needs = WholeInputs(node);
  needs[0] = axis;
  return needs;
}

// The axis of an input that is broadcast to a result of `rank` axes; kNone if it has one position.
int BroadcastAxis(const std::vector<int64_t>& input, int rank, int axis) {
  const int own = axis - (rank - static_cast<int>(input.size()));
  return own >= 0 && input[own] > 1 ? own : kNone;
}

std::optional<std::vector<int64_t>> ConstantInts(const Graph& graph, const Node& node, size_t i) {
  if (!HasInput(node, i)) return std::nullopt;
  const std::optional<Tensor>& constant = graph.values[node.inputs[i]].constant;
  return constant ? IntsOf(*constant) : std::nullopt;
}

int64_t ElementsBefore(const std::vector<int64_t>& dims, int axis) {
  return std::accumulate(dims.begin(), dims.begin() + axis, int64_t{1}, std::multiplies<>());
}

}  // namespace

RowInputs RowInputsOf(const Graph& graph, const Node& node, int axis) {
  const Operator& op = OperatorOf(node);
  if (IsSizedInRun(graph, node)) return std::nullopt;
  if (op.rows != nullptr) return op.rows(graph, node, axis);
  if (op.elementwise) return rows::EachElement(graph, node, axis);
  return std::nullopt;
}

namespace rows {

RowInputs EachElement(const Graph& graph, const Node& node, int axis) {
  const int rank = static_cast<int>(OutDims(graph, node).size());
  Needs needs = WholeInputs(node);
  for (size_t i = 0; i < needs.size(); ++i) {
    // The sizes of Expand are not an operand.
    if (!HasInput(node, i) || (node.op_type == "Expand" && i == 1)) continue;
    needs[i] = BroadcastAxis(InDims(graph, node, i), rank, axis);
  }
  return needs;
}

RowInputs Product(const Graph& graph, const Node& node, int axis) {
  const std::vector<int64_t> a = InDims(graph, node, 0), b = InDims(graph, node, 1);
  const int rank = static_cast<int>(OutDims(graph, node).size());
  if (a.size() < 2 || b.size() < 2 || axis == rank - 1) return std::nullopt;
  if (axis == rank - 2) return FirstInput(node, static_cast<int>(a.size()) - 2);
  return Needs{BroadcastAxis(a, rank, axis), BroadcastAxis(b, rank, axis)};
}

RowInputs Gemm(const Graph& graph, const Node& node, int axis) {
  if (axis != 0) return std::nullopt;
  Needs needs = FirstInput(node, IntOr(node, "transA", 0) != 0 ? 1 : 0);
  if (HasInput(node, 2)) needs[2] = BroadcastAxis(InDims(graph, node, 2), 2, axis);
  return needs;
}

RowInputs BesideAxis(const Graph& graph, const Node& node, int axis) {
  const int64_t usual = node.op_type == "Split" ? 0 : -1;  // Concat has to say it
  const size_t rank = OutDims(graph, node).size();
  if (AxisFromZero(IntOr(node, "axis", usual), rank) == axis) return std::nullopt;
  if (node.op_type != "Concat") return FirstInput(node, axis);
  return Needs(node.inputs.size(), axis);
}

RowInputs BeforeAxis(const Graph& graph, const Node& node, int axis) {
  const size_t rank = OutDims(graph, node).size();
  if (axis >= AxisFromZero(IntOr(node, "axis", -1), rank)) return std::nullopt;
  return FirstInput(node, axis);
}

RowInputs Reduction(const Graph& graph, const Node& node, int axis) {
  auto axes = IntsOf(node, "axes");
  if (HasInput(node, 1)) axes = ConstantInts(graph, node, 1);
  if (!axes || axes->empty()) return std::nullopt;
  const size_t rank = InDims(graph, node, 0).size();
  std::vector<bool> gone(rank);
  for (const int64_t reduced : *axes) gone[AxisFromZero(reduced, rank)] = true;
  if (IntOr(node, "keepdims", 1) != 0) return FirstInput(node, axis);  // a row is not one position
  int left = axis;
  for (size_t a = 0; a < rank; ++a) {
    if (!gone[a] && left-- == 0) return FirstInput(node, static_cast<int>(a));
  }
  return std::nullopt;
}

RowInputs SameOrder(const Graph& graph, const Node& node, int axis) {
  // Without axes, Squeeze would drop the axis of one row.
  if (node.op_type == "Squeeze" && !HasInput(node, 1)) return std::nullopt;
  const std::vector<int64_t> in = InDims(graph, node, 0), out = OutDims(graph, node);
  const int64_t before = ElementsBefore(out, axis);
  for (int a = 0; a < static_cast<int>(in.size()); ++a) {
    if (in[a] == out[axis] && ElementsBefore(in, a) == before) return FirstInput(node, a);
  }
  return std::nullopt;
}

RowInputs Transpose(const Graph& graph, const Node& node, int axis) {
  return FirstInput(node, static_cast<int>(PermOf(node, OutDims(graph, node).size())[axis]));
}

RowInputs Slice(const Graph& graph, const Node& node, int axis) {
  const size_t rank = OutDims(graph, node).size();
  const auto axes = ConstantInts(graph, node, 3);
  if (!axes) return std::nullopt;
  const bool is_cut = std::any_of(axes->begin(), axes->end(),
                                  [&](int64_t cut) { return AxisFromZero(cut, rank) == axis; });
  if (is_cut) return std::nullopt;
  return FirstInput(node, axis);
}

RowInputs Gather(const Graph& graph, const Node& node, int axis) {
  const std::vector<int64_t> data = InDims(graph, node, 0), indices = InDims(graph, node, 1);
  const int gathered = static_cast<int>(AxisFromZero(IntOr(node, "axis", 0), data.size()));
  const int rank = static_cast<int>(indices.size());
  if (axis < gathered) return FirstInput(node, axis);
  if (axis >= gathered + rank) return FirstInput(node, axis - rank + 1);
  return Needs{kNone, axis - gathered};
}

}  // namespace rows
}  // namespace anemone
