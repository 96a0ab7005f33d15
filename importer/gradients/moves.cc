// Gradients of operators that move elements: each puts the cotangent's elements back to their
// places, and adds where several were read from one place.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/gradients/gradient.h"
#include "importer/gradients/rules.h"

namespace anemone::gradient {
namespace {

// A gathered axis of at most this size gets its gradient by a matrix product with ones and zeros,
// which the engine computes; fp16 holds all its integers. A longer one is scattered on the CPU.
constexpr int64_t kLongestOneHot = fp16::kLargestExactInteger;

}  // namespace

absl::Status InOrder(Context& g) {
  if (g.wants(0)) g.Give(0, g.Reshape(g.cotangent(), g.in_dims(0)));
  return absl::OkStatus();
}

absl::Status Transpose(Context& g) {
  const Sizes dims = g.in_dims(0);
  const Sizes order = PermOf(g.node(), dims.size());
  Sizes inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
  g.Give(0, g.Transpose(g.cotangent(), inverse));
  return absl::OkStatus();
}

// Zeros around the cotangent, and between its elements if the slice has steps.
absl::Status Slice(Context& g) {
  const Sizes dims = g.in_dims(0), made = g.out_dims();
  const Sizes all = Range(0, static_cast<int64_t>(dims.size()));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes starts, g.IntsOfInput(1, {}));
  Sizes first_axes(all.begin(), all.begin() + std::min(all.size(), starts.size()));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes axes, g.IntsOfInput(3, first_axes));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes steps, g.IntsOfInput(4, Sizes(starts.size(), 1)));
  Sizes before(dims.size(), 0), after(dims.size(), 0), ends = made;
  ValueId gradient = g.cotangent();
  Sizes sizes = made;
  bool has_steps = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] < 0) return g.Refuse("Slice in negative steps has no gradient");
    const int64_t axis = AxisFromZero(axes[i], dims.size());
    const int64_t start = starts[i] < 0 ? starts[i] + dims[axis] : starts[i];
    before[axis] = std::clamp<int64_t>(start, 0, dims[axis]);
    gradient = g.Spread(g.type(), gradient, sizes, axis, steps[i]);
    sizes[axis] *= steps[i];
    ends[axis] = (made[axis] - 1) * steps[i] + 1;
    has_steps = has_steps || steps[i] > 1;
  }
  if (std::find(made.begin(), made.end(), 0) != made.end()) {
    return g.Refuse("Slice of no elements has no gradient");
  }
  if (has_steps) gradient = g.Slice(gradient, Sizes(dims.size(), 0), ends);
  for (size_t i = 0; i < dims.size(); ++i) after[i] = dims[i] - before[i] - ends[i];
  g.Give(0, g.Pad(g.type(), gradient, before, after));
  return absl::OkStatus();
}

absl::Status Concat(Context& g) {
  const Sizes dims = g.out_dims();
  const int64_t axis = AxisFromZero(IntOr(g.node(), "axis", 0), dims.size());
  Sizes begins(dims.size(), 0), ends = dims;
  for (size_t i = 0; i < g.node().inputs.size(); ++i) {
    ends[axis] = begins[axis] + g.in_dims(i)[axis];
    if (g.wants(i)) g.Give(i, g.Slice(g.cotangent(), begins, ends));
    begins[axis] = ends[axis];
  }
  return absl::OkStatus();
}

absl::Status Split(Context& g) {
  const int64_t axis = AxisFromZero(IntOr(g.node(), "axis", 0), g.in_dims(0).size());
  std::vector<ValueId> parts;
  parts.reserve(g.node().outputs.size());
  for (size_t i = 0; i < g.node().outputs.size(); ++i) {
    if (g.cotangent(i) != kNone) {
      parts.push_back(g.cotangent(i));
    } else if (g.output(i) != kNone) {
      parts.push_back(g.Expand(g.Scalar(g.type(), 0), g.out_dims(i)));
    } else {
      return g.Refuse("Split without one of its outputs has no gradient");
    }
  }
  g.Give(0, g.Concat(parts, axis));
  return absl::OkStatus();
}

absl::Status Expand(Context& g) {
  g.Give(0, g.SumTo(g.cotangent(), g.out_dims(), g.in_dims(0)));
  return absl::OkStatus();
}

// Each axis of size n that is repeated r times is split to r x n, and summed over r.
absl::Status Tile(Context& g) {
  const Sizes dims = g.in_dims(0), made = g.out_dims();
  Sizes split, axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return g.Refuse("Tile of no elements has no gradient");
    if (made[i] != dims[i]) {
      axes.push_back(static_cast<int64_t>(split.size()));
      split.push_back(made[i] / dims[i]);
    }
    split.push_back(dims[i]);
  }
  const ValueId parts = g.Reshape(g.cotangent(), split);
  g.Give(0, g.Reshape(axes.empty() ? parts : g.Sum(parts, axes, /*keep=*/false), dims));
  return absl::OkStatus();
}

absl::Status Pad(Context& g) {
  if (g.wants(2)) return g.Refuse("Pad has no gradient by its value");
  const std::string mode = StringOr(g.node(), "mode", "constant");
  if (mode != "constant") {
    return g.Refuse(absl::StrCat("Pad in mode ", mode, " has no gradient"));
  }
  const Sizes dims = g.in_dims(0);
  const Sizes all = Range(0, static_cast<int64_t>(dims.size()));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes pads, g.IntsOfInput(1, {}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes axes, g.IntsOfInput(3, all));
  Sizes begins(dims.size(), 0), ends = dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (pads[i] < 0 || pads[i + axes.size()] < 0) {
      return g.Refuse("Pad that removes elements has no gradient");
    }
    const int64_t axis = AxisFromZero(axes[i], dims.size());
    begins[axis] = pads[i];
    ends[axis] = pads[i] + dims[axis];
  }
  g.Give(0, g.Slice(g.cotangent(), begins, ends));
  return absl::OkStatus();
}

// The table is P x V x Q and the indices are N numbers: the cotangent is P x N x Q.
absl::Status Gather(Context& g) {
  const Sizes table = g.in_dims(0), indices = g.in_dims(1);
  const int64_t axis = AxisFromZero(IntOr(g.node(), "axis", 0), table.size());
  const absl::Span<const int64_t> sizes = table;
  const int64_t p = Product(sizes.first(axis)), v = table[axis],
                q = Product(sizes.subspan(axis + 1)), n = Product(indices);
  const ValueId cotangent = g.Reshape(g.cotangent(), {p, n, q});
  const DataType type = g.type();
  if (v > kLongestOneHot) {
    const ValueId zeros = g.Expand(g.Scalar(type, 0), {p, v, q});
    const ValueId places = g.Expand(g.Reshape(g.input(1), {1, n, 1}), {p, n, q});
    const ValueId sums = g.Emit("ScatterElements", {zeros, places, cotangent},
                                {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
    g.Give(0, g.Reshape(sums, table));
    return absl::OkStatus();
  }
  const ValueId places = g.Reshape(g.input(1), {n});
  const ValueId count = g.Constant(Tensor::Int64s({}, {v}));
  const ValueId off_on =
      g.Concat({g.Reshape(g.Scalar(type, 0), {1}), g.Reshape(g.Scalar(type, 1), {1})}, 0);
  const ValueId rows = g.Emit("OneHot", {places, count, off_on}, {{"axis", int64_t{0}}});
  const ValueId matrix = p == 1 ? g.Reshape(cotangent, {n, q}) : cotangent;
  g.Give(0, g.Reshape(g.Emit("MatMul", {rows, matrix}), table));
  return absl::OkStatus();
}

absl::Status DepthToSpace(Context& g) {
  if (StringOr(g.node(), "mode", "DCR") != "DCR") {
    return g.Refuse("DepthToSpace in mode CRD has no gradient");
  }
  g.Give(0,
         g.Emit("SpaceToDepth", {g.cotangent()}, {{"blocksize", IntOr(g.node(), "blocksize", 1)}}));
  return absl::OkStatus();
}

absl::Status SpaceToDepth(Context& g) {
  g.Give(0,
         g.Emit("DepthToSpace", {g.cotangent()}, {{"blocksize", IntOr(g.node(), "blocksize", 1)}}));
  return absl::OkStatus();
}

absl::Status Trilu(Context& g) {
  std::vector<ValueId> inputs = {g.cotangent()};
  if (g.input(1) != kNone) inputs.push_back(g.input(1));
  g.Give(0, g.Emit("Trilu", std::move(inputs), {{"upper", IntOr(g.node(), "upper", 1)}}));
  return absl::OkStatus();
}

}  // namespace anemone::gradient
