// Operators that pick elements by index, or find indices: Gather, Scatter, TopK, ArgMax, OneHot.
// ONNX counts negative indices from the end; MIL's operations get all of them counted from the
// start.
#include <algorithm>
#include <utility>

#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

// Indices from 0: `extents`, those of the axes that the indices count, are added to negative ones.
MilVar FromStart(NodeWriter& w, const MilVar& indices, const MilVar& extents) {
  const MilVar zero{w.to().Int(0), "int32", {}};
  const MilVar is_before =
      w.Emit("less", {{"x", {indices.name}}, {"y", {zero.name}}}, "bool", indices.shape);
  return w.Select(is_before, w.Binary("add", indices, extents), indices);
}

// The extent of an axis, to which indices broadcast.
MilVar Extent(NodeWriter& w, const MilVar& x, int64_t axis) {
  if (x.shape[axis] == kFree) return w.SizeOf(x, axis);
  return w.Scalar(static_cast<double>(x.shape[axis]), "int32");
}

void WriteGather(NodeWriter& w) {
  const MilVar x = w.Movable(0), indices = w.In(1, "int32");
  const int64_t axis = w.Axis("axis", 0);
  if (!w.ok()) return;
  MilShape shape = x.shape;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.shape.begin(), indices.shape.end());
  const MilVar from0 = FromStart(w, indices, Extent(w, x, axis));
  w.Out(w.Emit("gather", {{"x", {x.name}}, {"indices", {from0.name}}, {"axis", {w.to().Int(axis)}}},
               x.dtype, shape));
}

// The indices of GatherElements and ScatterElements. MIL's operations have no shorter ones.
MilVar FromStartAlong(NodeWriter& w, const MilVar& x, const MilVar& indices, int64_t axis) {
  if (!w.ok()) return indices;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (static_cast<int64_t>(i) != axis && !w.IsSameSize(0, i, 1, i)) {
      w.Fail("indices that are shorter than the data on another axis");
      return indices;
    }
  }
  return FromStart(w, indices, Extent(w, x, axis));
}

void WriteGatherElements(NodeWriter& w) {
  const MilVar x = w.Movable(0), indices = w.In(1, "int32");
  const int64_t axis = w.Axis("axis", 0);
  const MilVar from0 = FromStartAlong(w, x, indices, axis);
  if (!w.ok()) return;
  w.Out(w.Emit("gather_along_axis",
               {{"x", {x.name}}, {"indices", {from0.name}}, {"axis", {w.to().Int(axis)}}}, x.dtype,
               indices.shape));
}

// The extents that the last axis of the indices counts.
MilVar Extents(NodeWriter& w, const MilVar& x, int64_t first, int64_t count) {
  const MilShape extents(x.shape.begin() + first, x.shape.begin() + first + count);
  return HasFree(extents) ? w.Part(w.to().ExtentsOf(x), first, count) : w.VectorOf(extents);
}

void WriteGatherNd(NodeWriter& w) {
  const MilVar x = w.Movable(0), indices = w.In(1, "int32");
  const int64_t batch = w.Int("batch_dims", 0);
  if (!w.ok()) return;
  const MilVar from0 = FromStart(w, indices, Extents(w, x, batch, indices.shape.back()));
  std::vector<MilArgument> arguments = {{"x", {x.name}}, {"indices", {from0.name}}};
  if (batch != 0) arguments.push_back({"batch_dims", {w.to().Int(batch)}});
  w.Out(w.Emit("gather_nd", std::move(arguments), x.dtype, w.OutShape()));
}

// The names that MIL has for the reductions of a scatter.
std::string ModeOf(NodeWriter& w) {
  const std::string reduction = w.Text("reduction", "none");
  return reduction == "none" ? "update" : reduction;
}

void WriteScatterNd(NodeWriter& w) {
  const MilVar x = w.Movable(0), indices = w.In(1, "int32"), updates = w.In(2, x.dtype);
  if (!w.ok()) return;
  const MilVar from0 = FromStart(w, indices, Extents(w, x, 0, indices.shape.back()));
  w.Out(w.Emit("scatter_nd",
               {{"data", {x.name}},
                {"indices", {from0.name}},
                {"updates", {updates.name}},
                {"mode", {w.to().Text(ModeOf(w))}}},
               x.dtype, x.shape));
}

void WriteScatterElements(NodeWriter& w) {
  const MilVar x = w.Movable(0), indices = w.In(1, "int32"), updates = w.In(2, x.dtype);
  const int64_t axis = w.Axis("axis", 0);
  const MilVar from0 = FromStartAlong(w, x, indices, axis);
  if (!w.ok()) return;
  w.Out(w.Emit("scatter_along_axis",
               {{"data", {x.name}},
                {"indices", {from0.name}},
                {"updates", {updates.name}},
                {"axis", {w.to().Int(axis)}},
                {"mode", {w.to().Text(ModeOf(w))}}},
               x.dtype, x.shape));
}

void WriteTopK(NodeWriter& w) {
  const MilVar x = w.In(0);
  const std::vector<int64_t> k = w.IntsAt(1);
  const int64_t axis = w.Axis("axis", -1);
  const bool is_largest = w.Int("largest", 1) != 0;
  if (!w.ok()) return;
  MilShape shape = x.shape;
  shape[axis] = k[0];
  const std::vector<MilVar> made = w.to().EmitAll("topk",
                                                  {{"x", {x.name}},
                                                   {"k", {w.to().Int(k[0])}},
                                                   {"axis", {w.to().Int(axis)}},
                                                   {"ascending", {w.to().Bool(!is_largest)}}},
                                                  {{x.dtype, shape}, {"int32", shape}});
  w.Out(made[0], 0);
  w.Out(made[1], 1);
}

template <bool kMax>
void WriteArg(NodeWriter& w) {
  MilVar x = w.In(0);
  const int64_t axis = w.Axis("axis", 0);
  if (!w.ok()) return;
  const bool is_last = w.Int("select_last_index", 0) != 0;
  if (is_last) {  // the first of the reversed elements
    x = w.Reversed(x, axis);
  }
  const MilVar found = w.Emit(kMax ? "reduce_argmax" : "reduce_argmin",
                              {{"x", {x.name}},
                               {"axis", {w.to().Int(axis)}},
                               {"keep_dims", {w.to().Bool(w.Int("keepdims", 1) != 0)}}},
                              "int32", w.OutShape());
  if (!is_last) return w.Out(found);
  const MilVar last = w.Binary("add", Extent(w, x, axis), -1);
  w.Out(w.Binary("sub", last, found));
}

void WriteOneHot(NodeWriter& w) {
  const MilVar indices = w.In(0, "int32"), values = w.In(2);
  const auto depth = static_cast<int64_t>(w.NumberAt(1, 0));
  const int64_t rank = static_cast<int64_t>(w.OutShape().size());
  int64_t axis = w.Int("axis", -1);
  if (axis < 0) axis += rank;
  if (!w.ok()) return;
  // The classes along the axis, compared with the indices, which have an extent of 1 there.
  MilShape shape = w.RankOf(0) == 0 ? MilShape{} : indices.shape;
  shape.insert(shape.begin() + axis, 1);
  std::vector<int64_t> classes(depth);
  for (int64_t i = 0; i < depth; ++i) classes[i] = i;
  MilShape along(rank, 1);
  along[axis] = depth;
  const MilVar each = w.to().Constant(Tensor::Int64s({depth}, classes), "int32", along);
  const MilVar from0 =
      w.Reshape(FromStart(w, indices, w.Scalar(static_cast<double>(depth), "int32")), shape);
  const MilVar is_class =
      w.Emit("equal", {{"x", {from0.name}}, {"y", {each.name}}}, "bool", w.OutShape());
  auto value = [&](int64_t i) { return w.Part(values, i); };
  const bool is_free = HasFree(w.OutShape());
  const MilVar off = value(0);
  const MilVar on = is_free ? w.SpreadWith(value(1), is_class) : w.Spread(value(1), w.OutShape());
  w.Out(w.Select(is_class, on, off));
}

// Input 1 as an axis of input 0, from 0.
int64_t AxisAt1(NodeWriter& w) {
  const auto given = static_cast<int64_t>(w.NumberAt(1, 0));
  return given < 0 ? given + w.RankOf(0) : given;
}

void WriteCumSum(NodeWriter& w) {
  const MilVar x = w.In(0);
  const int64_t axis = AxisAt1(w);
  w.Out(w.Emit("cumsum", {{"x", {x.name}},
                          {"axis", {w.to().Int(axis)}},
                          {"exclusive", {w.to().Bool(w.Int("exclusive", 0) != 0)}},
                          {"reverse", {w.to().Bool(w.Int("reverse", 0) != 0)}}}));
}

// By doubling: after k rounds an element is the product of up to 2^k elements before it and itself.
void WriteCumProd(NodeWriter& w) {
  MilVar x = w.In(0);
  const int64_t axis = AxisAt1(w);
  const bool is_reverse = w.Int("reverse", 0) != 0;
  if (!w.ok()) return;
  const int64_t extent = x.shape[axis];
  if (HasFree(x.shape)) return w.Fail("sizes that are only known at run time");
  // The elements moved by `count`, after ones.
  const auto moved = [&](const MilVar& from, int64_t count) {
    MilShape shape = from.shape;
    shape[axis] = count;
    MilVar ones = w.Filled(w.VectorOf(shape), 1, from.dtype, shape);
    if (count == extent) return ones;
    return w.Joined({std::move(ones), w.Part(from, 0, extent - count, axis)}, axis);
  };
  if (is_reverse) x = w.Reversed(x, axis);
  if (w.Int("exclusive", 0) != 0) x = moved(x, 1);
  for (int64_t count = 1; count < extent; count *= 2) x = w.Binary("mul", x, moved(x, count));
  w.Out(is_reverse ? w.Reversed(x, axis) : x);
}

void WriteReverseSequence(NodeWriter& w) {
  const MilVar x = w.In(0), lengths = w.In(1, "int32");
  w.Out(w.Emit("reverse_sequence", {{"x", {x.name}},
                                    {"lengths", {lengths.name}},
                                    {"seq_axis", {w.to().Int(w.Int("time_axis", 0))}},
                                    {"batch_axis", {w.to().Int(w.Int("batch_axis", 1))}}}));
}

// The diagonal of a matrix whose sizes are known.
void WriteEyeLike(NodeWriter& w) {
  const MilShape shape = w.OutShape();
  const std::string dtype = w.OutType();
  if (!w.ok()) return;
  if (HasFree(shape)) return w.Fail("sizes that are only known at run time");
  std::vector<float> numbers(shape[0] * shape[1], 0);
  const int64_t k = w.Int("k", 0);
  for (int64_t row = std::max<int64_t>(0, -k); row < shape[0] && row + k < shape[1]; ++row) {
    numbers[row * shape[1] + row + k] = 1;
  }
  w.Out(w.to().Constant(Tensor::Floats(shape, numbers), dtype, shape));
}

constexpr MilNode kIndexNodes[] = {
    {"ArgMax", WriteArg<true>},
    {"ArgMin", WriteArg<false>},
    {"CumProd", WriteCumProd},
    {"CumSum", WriteCumSum},
    {"EyeLike", WriteEyeLike},
    {"Gather", WriteGather},
    {"GatherElements", WriteGatherElements},
    {"GatherND", WriteGatherNd},
    {"OneHot", WriteOneHot},
    {"ReverseSequence", WriteReverseSequence},
    {"ScatterElements", WriteScatterElements},
    {"ScatterND", WriteScatterNd},
    {"TopK", WriteTopK},
};

}  // namespace

absl::Span<const MilNode> IndexMilNodes() { return kIndexNodes; }

}  // namespace anemone
