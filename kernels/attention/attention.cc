// Lowers attention in plain nodes to SDPA units, one for each different mask. Where the target
// refuses that unit, or where it is not reliable, the nodes become units one by one instead. Facts:
// netplist.md SDPA; hidden_layers.json SDPA; conflicts.md C-sdpa-mask.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attention/attention_mask.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/units/broadcast.h"
#include "kernels/units/concat.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "kernels/units/sdpa.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;

// An operand's extents as (heads, sequence, elements).
Sizes InOrder(const Sizes& shape, const std::vector<int>& axes) {
  Sizes ordered;
  for (int axis : axes) ordered.push_back(shape[axis]);
  return axes.empty() ? shape : ordered;
}

// A value of rank 4 or less with its axes permuted to this order, on D, C, H, W.
Operand Reordered(LowerContext& c, const Operand& x, const Sizes& shape,
                  const std::vector<int>& axes) {
  const int first = kAxisCount - static_cast<int>(shape.size());
  Dims dims;
  Permutation order = {Axis::kN, Axis::kD, Axis::kC, Axis::kH, Axis::kW};
  for (size_t i = 0; i < shape.size(); ++i) {
    dims.extent[first + i] = shape[i];
    order[first + i] = static_cast<Axis>(first + axes[i]);
  }
  Operand spread = ReshapeToDims(c, x, dims);
  return Permuted(c, spread, order);
}

// The inverse of Reordered(): brings (heads, sequence, elements) to the axes of the result.
Operand PutBack(LowerContext& c, const Operand& y, const Sizes& shape,
                const std::vector<int>& axes) {
  std::vector<int> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[axes[i]] = static_cast<int>(i);
  return Reordered(c, y, InOrder(shape, axes), back);
}

// A shape as planes x rows x columns. The unit has no batch ("netplist route seen with batch 1
// only", validators.json SDPA), so the heads of all images are treated alike.
Sizes PlanesAsOne(const Sizes& shape) {
  const auto rows = shape.end() - 2;
  const int64_t planes = std::accumulate(shape.begin(), rows, int64_t{1}, std::multiplies<>());
  return {planes, rows[0], rows[1]};
}

// The extents before rows and columns, without leading ones.
Sizes StackOf(const Sizes& shape) {
  const auto first = std::find_if(shape.begin(), shape.end() - 2, [](int64_t n) { return n != 1; });
  return {first, shape.end() - 2};
}

// The axes of the sequence and of a head's elements, in a value of planes x rows x columns.
Axis SequenceOf(bool is_transposed) { return is_transposed ? Axis::kW : Axis::kH; }
Axis DimOf(bool is_transposed) { return is_transposed ? Axis::kH : Axis::kW; }

// Planes that share one mask and are computed by one unit: `images` images from `first_image` on,
// with one head of each, or all heads.
struct Group {
  int64_t head = 0, first_image = 0, images = 1;
};

// Planes as images x heads. One unit computes consecutive images, and one head, or all heads if the
// masks do not differ between heads.
struct Grouping {
  int64_t images = 1, heads = 1;
  std::vector<Group> groups;  // by head, then by image
};

// `firsts`: for each plane, the first plane with the same mask. `heads`: the extent of the
// innermost axis of the planes.
Grouping GroupsOf(const Sizes& firsts, int64_t heads) {
  const int64_t planes = static_cast<int64_t>(firsts.size());
  bool differ = false;  // by head
  for (int64_t p = 0; p < planes; ++p) differ |= firsts[p] != firsts[p - p % heads];
  // With one image, the heads take the place of the images.
  Grouping grouping{.images = planes};
  if (differ && heads < planes) grouping = {.images = planes / heads, .heads = heads};
  for (int64_t head = 0; head < grouping.heads; ++head) {
    for (int64_t image = 0; image < grouping.images; ++image) {
      const int64_t plane = image * grouping.heads + head;
      if (image > 0 && firsts[plane] == firsts[plane - grouping.heads]) {
        ++grouping.groups.back().images;
      } else {
        grouping.groups.push_back({.head = head, .first_image = image});
      }
    }
  }
  return grouping;
}

// The broadcast shape of two stacks; nullopt if they are not compatible.
std::optional<Sizes> Together(Sizes a, Sizes b) {
  if (a.size() < b.size()) std::swap(a, b);
  b.insert(b.begin(), a.size() - b.size(), 1);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return std::nullopt;
    a[i] = std::max(a[i], b[i]);
  }
  return a;
}

// Repeats planes, which are on C, from `stack` to `whole`: heads that several queries share.
Operand RepeatedTo(LowerContext& c, const Operand& x, Sizes stack, const Sizes& whole) {
  if (stack == whole) return x;
  if (whole.size() > 2) {
    return c.NotLowered("attention with shared heads and more than one batch axis");
  }
  stack.insert(stack.begin(), whole.size() - stack.size(), 1);
  Operand y = x;
  for (size_t i = whole.size(); i-- > 0;) {
    if (stack[i] == whole[i]) continue;
    const bool each = i + 1 == whole.size();
    y = Repeated(c, y, Axis::kC, whole[i], each);
  }
  return y;
}

// Query, key or value, planes x rows x columns on C, H, W.
struct Stacked {
  Operand x;
  Sizes size;  // planes, rows, columns
  bool is_transposed = false;
  std::map<int64_t, Operand> heads;  // one head of all images, each added once
};

absl::StatusOr<Stacked> Stack(LowerContext& c, ValueId value, const std::vector<int>& axes,
                              const Sizes& stack, bool is_transposed) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(value));
  Operand x = c.In(value);
  Sizes size = PlanesAsOne(InOrder(shape, axes));
  if (!axes.empty()) {
    x = Reordered(c, x, shape, axes);
    shape = InOrder(shape, axes);
  }
  x = ReshapeInOnnxOrder(c, x, static_cast<int>(shape.size()), {1, size[0], size[1], size[2]});
  x = RepeatedTo(c, x, StackOf(shape), stack);
  size[0] = c.DimsOf(x).c();
  return Stacked{x, size, is_transposed, {}};
}

absl::StatusOr<Stacked> StackedThird(LowerContext& c, const PackedHeads& packed, int64_t third) {
  Operand x = Unpacked(c, packed, third);
  return Stacked{x, {packed.heads, c.DimsOf(x).h(), packed.dim}, /*is_transposed=*/false, {}};
}

// Multiplies the query by the factor of each head.
absl::Status ScaleByHead(LowerContext& c, const Attention& form, Stacked& query) {
  const Tensor& scale = *c.view().Constant(form.head_scale);
  const Sizes read = PlanesRead(scale.dims(), form.scaled_scores);
  const int64_t planes = query.size[0];
  if (!IsEngineConstant(scale.type()) || static_cast<int64_t>(read.size()) != planes) {
    return c.NotLowered("attention with a scale that is not one float for each head");
  }
  const std::vector<float> values = RoundedFloats(scale);
  std::vector<float> factors;
  for (int64_t plane : read) factors.push_back(values[scale.is_fill() ? 0 : plane]);
  const Operand factor =
      c.AddConstant(Tensor::Floats({planes}, factors), MakeDims(1, planes, 1, 1));
  query.x = Combined(c, ElementWiseType::kMult, query.x, factor);
  return absl::OkStatus();
}

// One head of all images; the images are on C.
Operand HeadOf(LowerContext& c, Stacked& from, const Grouping& grouping, int64_t head) {
  if (grouping.heads == 1) return from.x;
  auto made = from.heads.find(head);
  if (made == from.heads.end()) {
    const int64_t rows = from.size[1], columns = from.size[2];
    const Dims dims{{1, grouping.images, grouping.heads, rows, columns}};
    Operand x = ReshapeToDims(c, from.x, dims);
    x = Sliced(c, x, Axis::kC, head, 1);
    x = ReshapeToDims(c, x, MakeDims(1, grouping.images, rows, columns));
    made = from.heads.emplace(head, x).first;
  }
  return made->second;
}

// The planes of a group, with the sequence on C and the planes on H.
Operand Laid(LowerContext& c, Stacked& from, const Grouping& grouping, const Group& group) {
  Operand x = HeadOf(c, from, grouping, group.head);
  x = Sliced(c, x, Axis::kC, group.first_image, group.images);
  return Permuted(
      c, x,
      {Axis::kN, Axis::kD, SequenceOf(from.is_transposed), Axis::kC, DimOf(from.is_transposed)});
}

// Moves the planes of the result back to C.
Operand Unlaid(LowerContext& c, const Operand& y, bool is_transposed) {
  if (!is_transposed) return SwapAxes(c, y, Axis::kC, Axis::kH);
  return Permuted(c, y, {Axis::kN, Axis::kD, Axis::kH, Axis::kW, Axis::kC});
}

// Concatenates at most kMostPieces parts with one unit, and repeats that if there are more.
Operand Joined(LowerContext& c, std::vector<Operand> parts, Axis axis) {
  while (parts.size() > 1) {
    std::vector<Operand> wider;
    for (size_t i = 0; i < parts.size(); i += kMostPieces) {
      const size_t end = std::min<size_t>(parts.size(), i + kMostPieces);
      wider.emplace_back() =
          Concatenated(c, std::vector<Operand>(parts.begin() + i, parts.begin() + end), axis);
    }
    parts = std::move(wider);
  }
  return parts.front();
}

// Joins the results of the groups, whose planes are on C, to images x heads.
Operand Joined(LowerContext& c, const Grouping& grouping, const std::vector<Operand>& results) {
  std::vector<std::vector<Operand>> by_head(grouping.heads);
  for (size_t i = 0; i < results.size(); ++i) {
    by_head[grouping.groups[i].head].push_back(results[i]);
  }
  std::vector<Operand> heads;
  for (std::vector<Operand>& images : by_head) {
    Operand y = Joined(c, std::move(images), Axis::kC);
    if (grouping.heads > 1) {
      const Dims dims = c.DimsOf(y);
      y = ReshapeToDims(c, y, Dims{{1, dims.c(), 1, dims.h(), dims.w()}});
    }
    heads.push_back(y);
  }
  return Joined(c, std::move(heads), Axis::kC);
}

constexpr int64_t kMostPlanes = 65536;  // the largest extent of an axis of the engine
constexpr size_t kMostGroups = 128;     // each group is one SDPA unit

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& anchor = c.anchor(match);
  const Attention form = *FindAttention(c.view(), anchor);
  ANEMONE_ASSIGN_OR_RETURN(Sizes q, c.ShapeOf(form.q));
  ANEMONE_ASSIGN_OR_RETURN(Sizes k, c.ShapeOf(form.k));
  ANEMONE_ASSIGN_OR_RETURN(Sizes v, c.ShapeOf(form.v));
  ANEMONE_ASSIGN_OR_RETURN(Sizes y_shape, c.ShapeOf(anchor.outputs[0]));
  const size_t most = std::max({form.q_axes.size(), form.k_axes.size(), form.v_axes.size()});
  if (std::min({q.size(), k.size(), v.size()}) < 3 || most >= kMaxRank) {
    return c.NotLowered("attention with a rank below 3, or with an Einsum of a rank above 4");
  }
  q = InOrder(q, form.q_axes);
  k = InOrder(k, form.k_axes);
  std::optional<Sizes> both = Together(StackOf(q), StackOf(k));
  if (both) both = Together(*both, StackOf(InOrder(v, form.v_axes)));
  if (!both) return c.NotLowered("attention whose query, key and value have incompatible shapes");
  const Sizes& stack = *both;
  const int64_t queries = q[q.size() - 2];
  const int64_t keys = *(form.k_is_transposed ? k.end() - 1 : k.end() - 2);
  int64_t planes = 1;
  for (int64_t n : stack) planes = std::min(planes, kMostPlanes + 1) * std::min(n, kMostPlanes + 1);
  if (planes < 1 || planes > kMostPlanes) {
    return c.NotLowered("attention without heads, or with more than 65536 heads in all images");
  }
  if (!SdpaIsReliable(queries, keys)) {
    return c.NotLowered("attention over sequences of this length as one unit");
  }
  AttentionMasks masks(c, form, queries, keys);
  ANEMONE_ASSIGN_OR_RETURN(Sizes firsts, masks.FirstsOf(planes));
  const Grouping grouping = GroupsOf(firsts, stack.empty() ? 1 : stack.back());
  if (grouping.groups.size() > kMostGroups) {
    return c.NotLowered("attention with more than 128 groups of different masks");
  }
  Stacked query, key, value;
  if (match.values.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(query, Stack(c, form.q, form.q_axes, stack, /*is_transposed=*/false));
    ANEMONE_ASSIGN_OR_RETURN(key, Stack(c, form.k, form.k_axes, stack, form.k_is_transposed));
    ANEMONE_ASSIGN_OR_RETURN(value, Stack(c, form.v, form.v_axes, stack, form.v_is_transposed));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(query, StackedThird(c, *form.packed, form.packed->q));
    ANEMONE_ASSIGN_OR_RETURN(key, StackedThird(c, *form.packed, form.packed->k));
    ANEMONE_ASSIGN_OR_RETURN(value, StackedThird(c, *form.packed, form.packed->v));
  }
  if (form.head_scale != kNone) ANEMONE_RETURN_IF_ERROR(ScaleByHead(c, form, query));
  std::vector<Operand> results;
  for (const Group& group : grouping.groups) {
    ANEMONE_ASSIGN_OR_RETURN(MaskOperands mask,
                             masks.For(group.first_image * grouping.heads + group.head));
    SdpaOperands in{.scale = static_cast<float>(form.scale), .mask = mask.mask};
    if (c.route() == Route::kMil && !SdpaHasMilForm(in, q.back())) {
      return c.NotLowered(
          "attention with a mask, or with a scale other than 1 / sqrt(dim), on route mil");
    }
    in.query = Laid(c, query, grouping, group);
    in.key = Laid(c, key, grouping, group);
    in.value = Laid(c, value, grouping, group);
    Operand y = Attended(c, in);
    if (mask.kept) {
      y = Combined(c, ElementWiseType::kMult, y, *mask.kept);
    }
    results.emplace_back() = Unlaid(c, y, form.v_is_transposed);
  }
  Operand y = Joined(c, grouping, results);
  const Dims dims = c.DimsOf(results.front());
  y = ReshapeToDims(c, y, MakeDims(1, planes, dims.h(), dims.w()));
  if (form.y_axes.empty()) {
    y = ReshapeInOnnxOrder(c, y, 4, y_shape);
  } else {
    y = PutBack(c, y, y_shape, form.y_axes);
    y = ReshapeToDims(c, y, PlaceShape(y_shape));
  }
  ANEMONE_RETURN_IF_ERROR(c.Out(anchor.outputs[0], y));
  c.CleanUp();  // removes transposes that cancel: an Einsum may have the unit's order of axes
  return absl::OkStatus();
}

void SetNodes(std::vector<NodeId> nodes, Match& match) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  match.nodes = std::move(nodes);
}

bool IsAttention(const GraphView& view, const Node& anchor, Match& match) {
  auto attention = FindAttention(view, anchor);
  if (!attention) return false;
  SetNodes(std::move(attention->nodes), match);
  return true;
}

// Also matches the nodes that split query, key and value from a packed value, and captures it.
bool IsPackedAttention(const GraphView& view, const Node& anchor, Match& match) {
  if (view.OnlyProducer(anchor.inputs[1], "Gather") == nullptr) return false;  // as ThirdOf() wants
  auto attention = FindAttention(view, anchor);
  if (!attention || !attention->packed) return false;
  const std::vector<NodeId>& between = attention->packed->nodes;
  attention->nodes.insert(attention->nodes.end(), between.begin(), between.end());
  SetNodes(std::move(attention->nodes), match);
  match.values = {attention->packed->value};
  return true;
}

constexpr Lowering kLowerings[] = {
    {.op = "MatMul", .pattern = "attention", .match = IsPackedAttention, .lower = Lower},
    {.op = "MatMul", .pattern = "attention", .match = IsAttention, .lower = Lower},
    {.op = "Einsum", .pattern = "attention", .match = IsAttention, .lower = Lower},
};

}  // namespace

KernelRows AttentionRows() { return {{}, kLowerings}; }

}  // namespace anemone
