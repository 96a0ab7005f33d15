// Operators that move elements to other places: views, slices, joins, repeats.
#include <algorithm>
#include <limits>
#include <numeric>

#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

// Reshape, Flatten, Squeeze, Unsqueeze: the importer knows the shape of the result.
void WriteReshape(NodeWriter& w) {
  const MilShape shape = w.OutShape();
  if (w.ok()) w.Out(w.to().Reshape(w.Movable(0), shape));
}

MilShape Permuted(const MilShape& shape, const std::vector<int64_t>& order) {
  MilShape made;
  made.reserve(order.size());
  for (int64_t axis : order) made.push_back(shape[axis]);
  return made;
}

void WriteTranspose(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  std::vector<int64_t> order(x.shape.size());
  std::iota(order.rbegin(), order.rend(), int64_t{0});
  if (w.RankOf(0) > 0) order = w.Ints("perm", order);
  w.Out(w.Emit("transpose", {{"x", {x.name}}, {"perm", {w.to().Ints(order)}}}, x.dtype,
               Permuted(x.shape, order)));
}

void WriteConcat(NodeWriter& w) {
  MilArgument values{.name = "values", .is_list = true};
  std::string dtype;
  for (size_t i = 0; i < w.inputs(); ++i) {
    const MilShape shape = w.ShapeOf(i);
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) continue;
    const MilVar x = w.Movable(i);
    dtype = x.dtype;
    values.values.push_back(x.name);
  }
  const int64_t axis = w.Axis("axis", 0);
  w.Out(w.Emit(
      "concat",
      {std::move(values), {"axis", {w.to().Int(axis)}}, {"interleave", {w.to().Bool(false)}}},
      dtype, w.OutShape()));
}

void WriteSplit(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  const int64_t axis = w.Axis("axis", 0);
  int64_t first = 0;
  for (size_t i = 0; i < w.node().outputs.size() && w.ok(); ++i) {
    if (w.node().outputs[i] == kNone) return w.Fail("a part that nobody reads");
    const MilShape shape = w.OutShape(i);
    std::vector<int64_t> begin(x.shape.size(), 0);
    begin[axis] = first;
    first += shape[axis];
    w.Out(w.Emit("slice_by_size",
                 {{"x", {x.name}}, {"begin", {w.to().Ints(begin)}}, {"size", {w.to().Ints(shape)}}},
                 x.dtype, shape),
          i);
  }
}

// Starts and ends are brought into the axis, as ONNX clamps them; a slice to before the first
// element (a negative step) is masked.
void WriteSlice(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  const std::vector<int64_t> starts = w.IntsAt(1), ends = w.IntsAt(2);
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (w.Has(3)) axes = w.IntsAt(3);
  if (w.Has(4)) steps = w.IntsAt(4);
  if (!w.ok()) return;
  std::vector<int64_t> begin(x.shape.size(), 0), end = x.shape, stride(x.shape.size(), 1);
  Json mask = Json::array();
  for (size_t i = 0; i < x.shape.size(); ++i) mask.push_back(false);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(x.shape.size()) : axes[i];
    const int64_t extent = x.shape[axis], step = steps[i];
    auto placed = [&](int64_t at) { return at < 0 ? at + extent : at; };
    stride[axis] = step;
    if (step > 0) {
      begin[axis] = std::clamp<int64_t>(placed(starts[i]), 0, extent);
      end[axis] = std::clamp<int64_t>(placed(ends[i]), 0, extent);
    } else {
      begin[axis] = std::clamp<int64_t>(placed(starts[i]), 0, extent - 1);
      const int64_t last =
          ends[i] < -extent ? -1 : std::clamp<int64_t>(placed(ends[i]), -1, extent - 1);
      mask[axis] = last < 0;
      end[axis] = std::max<int64_t>(last, 0);
    }
  }
  const MilVar masks = w.to().Flags(mask);
  w.Out(w.Emit("slice_by_index",
               {{"x", {x.name}},
                {"begin", {w.to().Ints(begin)}},
                {"end", {w.to().Ints(end)}},
                {"stride", {w.to().Ints(stride)}},
                {"end_mask", {masks.name}}},
               x.dtype, w.OutShape()));
}

void WriteExpand(NodeWriter& w) { w.Out(w.Spread(w.Movable(0), w.OutShape())); }

void WriteTile(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  const std::vector<int64_t> repeats = w.IntsAt(1);
  if (repeats.empty()) return w.Out(x);  // a scalar
  w.Out(w.Emit("tile", {{"x", {x.name}}, {"reps", {w.to().Ints(repeats)}}}, x.dtype, w.OutShape()));
}

void WritePad(NodeWriter& w) {
  const std::string mode = w.Text("mode", "constant");
  if (mode == "wrap") return w.Fail("padding in mode wrap");
  const MilVar x = w.Movable(0);
  const std::vector<int64_t> given = w.IntsAt(1);
  const auto rank = static_cast<int64_t>(x.shape.size());
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (w.Has(3)) axes = w.IntsAt(3);
  if (!w.ok()) return;
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    pads[2 * axis] = given[i];
    pads[2 * axis + 1] = given[i + axes.size()];
  }
  if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad < 0; })) {
    return w.Fail("negative padding");
  }
  if (x.dtype == "int32") return w.Fail("padding of integers");
  const double value = w.NumberAt(2, 0);
  const char* name = mode == "edge" ? "replicate" : mode == "reflect" ? "reflect" : "constant";
  w.Out(w.Emit("pad", {{"x", {x.name}},
                       {"pad", {w.to().Ints(pads)}},
                       {"mode", {w.to().Text(name)}},
                       {"constant_val", {w.Scalar(value, x.dtype).name}}}));
}

// [N, b, b, C / b^2, H, W] (DCR) or [N, C / b^2, b, b, H, W] (CRD) with the blocks next to H, W.
void WriteDepthToSpace(NodeWriter& w) {
  MilVar x = w.Movable(0);
  if (x.shape.size() != 4) return w.Fail("a rank other than 4");
  const int64_t b = w.Int("blocksize", 1), n = x.shape[0], c = x.shape[1] / (b * b), h = x.shape[2],
                width = x.shape[3];
  const bool is_dcr = w.Text("mode", "DCR") == "DCR";
  // Rank 5 at most: the batch and the blocks of the height take turns.
  const MilShape apart = is_dcr ? MilShape{n * b, b, c, h, width} : MilShape{n * c, b, b, h, width};
  x = w.to().Reshape(x, apart);
  if (!is_dcr) {
    const std::vector<int64_t> order = {0, 3, 1, 4, 2};
    x = w.Emit("transpose", {{"x", {x.name}}, {"perm", {w.to().Ints(order)}}}, x.dtype,
               Permuted(x.shape, order));
    return w.Out(x);
  }
  std::vector<int64_t> order = {0, 2, 3, 4, 1};  // n*b, c, h, w, b
  x = w.Emit("transpose", {{"x", {x.name}}, {"perm", {w.to().Ints(order)}}}, x.dtype,
             Permuted(x.shape, order));
  x = w.to().Reshape(x, {n, b, c, h, width * b});
  order = {0, 2, 3, 1, 4};
  w.Out(w.Emit("transpose", {{"x", {x.name}}, {"perm", {w.to().Ints(order)}}}, x.dtype,
               Permuted(x.shape, order)));
}

void WriteTrilu(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  const auto k = static_cast<int64_t>(w.NumberAt(1, 0));
  const bool is_upper = w.Int("upper", 1) != 0;
  if (!w.ok()) return;
  const int64_t rows = x.shape[x.shape.size() - 2], columns = x.shape.back();
  Json kept = Json::array();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) kept.push_back(is_upper ? c - r >= k : c - r <= k);
  }
  MilShape shape(x.shape.size(), 1);
  shape[shape.size() - 2] = rows;
  shape.back() = columns;
  const MilVar zero = w.to().Constant(Tensor::Zeros(DataType::kInt32, {1}), x.dtype, {1});
  w.Out(w.Select(w.to().Flags(kept, shape), x, zero));
}

constexpr MilNode kNodes[] = {
    {"Concat", WriteConcat},
    {"DepthToSpace", WriteDepthToSpace},
    {"Expand", WriteExpand},
    {"Flatten", WriteReshape},
    {"Pad", WritePad},
    {"Reshape", WriteReshape},
    {"Slice", WriteSlice},
    {"Split", WriteSplit},
    {"Squeeze", WriteReshape},
    {"Tile", WriteTile},
    {"Transpose", WriteTranspose},
    {"Trilu", WriteTrilu},
    {"Unsqueeze", WriteReshape},
};

}  // namespace

absl::Span<const MilNode> MoveMilNodes() { return kNodes; }

}  // namespace anemone
