// Transposes that one unit cannot do: those of five axes that move the batch, and those of more
// axes between two Reshapes (windows of an image, patches, groups). Axes of extent 1 are dropped,
// and neighboring axes that stay together are merged. A unit moves four axes; as many units as
// necessary are used.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;

// Output axis i is input axis order[i].
struct Move {
  Sizes extents;
  std::vector<int> order;
};

// The same move without axes of extent 1, and with neighboring axes that stay together merged.
Move Merged(const Move& move) {
  std::vector<int> heads;  // the first axis of each block, by output position
  Sizes extents(move.extents.size(), 1);
  int last = -2;
  for (int axis : move.order) {
    if (move.extents[axis] == 1) continue;
    int next = last + 1;  // axes of extent 1 do not separate neighbors
    while (last >= 0 && next < axis && move.extents[next] == 1) ++next;
    if (last < 0 || next != axis) heads.push_back(axis);
    extents[heads.back()] *= move.extents[axis];
    last = axis;
  }
  std::vector<int> sorted = heads;
  std::sort(sorted.begin(), sorted.end());
  Move merged;
  for (int head : sorted) merged.extents.push_back(extents[head]);
  for (int head : heads) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), head);
    merged.order.push_back(static_cast<int>(at - sorted.begin()));
  }
  return merged;
}

constexpr int kMostMoved = 4;  // D, C, H and W; a unit cannot move N

// A merged move of at most kMostMoved axes, as one unit.
Operand MovedAtOnce(NetworkBuilder& c, const Operand& x, const Move& move) {
  const int first = kAxisCount - static_cast<int>(move.order.size());
  Dims dims;
  Permutation order = {Axis::kN, Axis::kD, Axis::kC, Axis::kH, Axis::kW};
  for (size_t i = 0; i < move.order.size(); ++i) {
    dims.extent[first + i] = move.extents[i];
    order[first + i] = static_cast<Axis>(first + move.order[i]);
  }
  Operand y = ReshapeToDims(c, x, dims);
  return Permuted(c, y, order);
}

// The elements of `x` in the order that the move gives. The dims of the result have no meaning; the
// caller reshapes it.
Operand Moved(NetworkBuilder& c, Operand x, const Move& whole) {
  Move move = Merged(whole);
  while (move.order.size() > kMostMoved) {
    // This step moves one axis to the first position that is not right yet. The axes after that
    // position keep their order.
    const int axes = static_cast<int>(move.order.size());
    int to = 0;
    while (move.order[to] == to) ++to;
    const int from = move.order[to];
    Move step{.extents = move.extents, .order = std::vector<int>(axes)};
    std::iota(step.order.begin(), step.order.end(), 0);
    std::rotate(step.order.begin() + to, step.order.begin() + from, step.order.begin() + from + 1);
    x = MovedAtOnce(c, x, Merged(step));
    Move rest{.extents = Sizes(axes), .order = std::vector<int>(axes)};
    for (int i = 0; i < axes; ++i) {
      rest.extents[i] = move.extents[step.order[i]];
      const auto now = std::find(step.order.begin(), step.order.end(), move.order[i]);
      rest.order[i] = static_cast<int>(now - step.order.begin());
    }
    move = Merged(rest);
  }
  return MovedAtOnce(c, x, move);
}

// The attribute `perm` of a Transpose; nullopt if it is not a permutation of `rank` axes.
std::optional<std::vector<int>> OrderOf(const Node& transpose, size_t rank) {
  Sizes reversed(rank);
  for (size_t i = 0; i < rank; ++i) reversed[i] = static_cast<int64_t>(rank - 1 - i);
  auto perm = Attributes(transpose).Ints("perm", reversed);
  if (!perm.ok() ||
      !std::is_permutation(perm->begin(), perm->end(), reversed.begin(), reversed.end())) {
    return std::nullopt;
  }
  return std::vector<int>(perm->begin(), perm->end());
}

// A Transpose of rank 5. In the engine, the order of ONNX's axes is 0, 2, 1, 3, 4.
absl::Status LowerInSteps(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Sizes to, c.ShapeOf(node.outputs[0]));
  const std::optional<std::vector<int>> perm = OrderOf(node, shape.size());
  if (shape.size() != kMaxRank || !perm) {
    return c.NotLowered("Transpose of a rank other than 5, in several steps");
  }
  constexpr int kPlaced[] = {0, 2, 1, 3, 4};
  Move move;
  for (int axis : kPlaced) {
    move.extents.push_back(shape[axis]);
    move.order.push_back(kPlaced[(*perm)[axis]]);
  }
  Operand x = c.In(node.inputs[0]);
  Operand y = Moved(c, x, move);
  y = ReshapeToDims(c, y, PlaceShape(to));
  return c.Out(node.outputs[0], y);
}

// The pattern Reshape, Transpose, Reshape.
struct Regrouped {
  Move move;
  const Node *reshape, *transpose;
};

std::optional<Regrouped> FindRegrouped(const GraphView& view, const Node& anchor) {
  const Node* transpose = view.OnlyProducer(anchor.inputs[0], "Transpose");
  if (transpose == nullptr) return std::nullopt;
  const Node* reshape = view.OnlyProducer(transpose->inputs[0], "Reshape");
  const Value& middle = view.graph.values[transpose->inputs[0]];
  if (reshape == nullptr || !middle.is_static() || middle.shape->size() < kMaxRank) {
    return std::nullopt;
  }
  const Sizes extents = middle.dims();
  std::optional<std::vector<int>> order = OrderOf(*transpose, extents.size());
  if (!order || std::count(extents.begin(), extents.end(), 0) > 0) return std::nullopt;
  return Regrouped{{extents, *std::move(order)}, reshape, transpose};
}

bool MatchRegrouped(const GraphView& view, const Node& anchor, Match& match) {
  const std::optional<Regrouped> found = FindRegrouped(view, anchor);
  if (found) match.nodes = {view.IdOf(*found->reshape), view.IdOf(*found->transpose)};
  return found.has_value();
}

absl::Status LowerRegrouped(const Match& match, LowerContext& c) {
  const Node& anchor = c.anchor(match);
  const Regrouped found = *FindRegrouped(c.view(), anchor);
  const ValueId from = found.reshape->inputs[0];
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(from));
  ANEMONE_ASSIGN_OR_RETURN(Sizes to, c.ShapeOf(anchor.outputs[0]));
  Operand x = c.In(from);
  x = ToOnnxOrder(c, x, static_cast<int>(shape.size()));
  Operand y = Moved(c, x, found.move);
  y = FromOnnxOrder(c, y, to);
  return c.Out(anchor.outputs[0], y);
}

constexpr Lowering kLowerings[] = {
    {.op = "Transpose", .rewritten = true, .lower = LowerInSteps},
    {.op = "Reshape",
     .pattern = "axes regrouped",
     .rewritten = true,
     .match = MatchRegrouped,
     .lower = LowerRegrouped},
};

}  // namespace

KernelRows AxisMovesRows() { return {{}, kLowerings}; }

}  // namespace anemone
