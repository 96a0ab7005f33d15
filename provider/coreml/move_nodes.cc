// Operators that move elements to other places: views, slices, joins, repeats.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "importer/elements.h"
#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

// Whether a vector that gives a shape may have a 0, for an extent of the input: sizes do not.
bool MayHaveZero(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  if (value.constant) {
    for (int64_t i = 0; i < value.constant->elements(); ++i) {
      if (NumberReaderOf(value.constant->type())(*value.constant, i) == 0) return true;
    }
    return false;
  }
  if (value.producer == kNone || graph.nodes[value.producer].op_type != "Concat") return true;
  const std::vector<ValueId>& parts = graph.nodes[value.producer].inputs;
  return std::any_of(parts.begin(), parts.end(), [&](ValueId part) {
    return graph.values[part].constant && MayHaveZero(graph, part);
  });
}

// The extents that a Reshape asks for, with an extent of x for each 0.
MilVar AskedSizes(NodeWriter& w, const MilVar& x) {
  MilVar sizes = w.In(1, "int32");
  if (!w.ok() || w.Int("allowzero", 0) != 0 || !MayHaveZero(w.to().graph(), w.node().inputs[1])) {
    return sizes;
  }
  const auto rank = static_cast<int64_t>(x.shape.size()), count = sizes.shape[0];
  MilVar own = w.to().ExtentsOf(x);
  if (rank > count) own = w.Part(own, 0, count);
  if (rank < count) own = w.Joined({own, w.VectorOf(MilShape(count - rank, 0))});
  const MilVar is_zero =
      w.Emit("equal", {{"x", {sizes.name}}, {"y", {w.to().Int(0)}}}, "bool", sizes.shape);
  return w.Select(is_zero, own, sizes);
}

// Reshape, Flatten, Squeeze, Unsqueeze: the importer knows the shape of the result, or all but one
// of its sizes. Else they are computed.
void WriteReshape(NodeWriter& w) {
  const MilShape shape = w.OutShape();
  const MilVar x = w.Movable(0);
  if (!w.ok()) return;
  const std::string& op = w.node().op_type;
  const bool is_fixed = !HasFree(x.shape) && !HasFree(shape);
  if (!is_fixed && std::count(shape.begin(), shape.end(), kFree) <= 1) {
    w.Out(w.ReshapeBy(x, w.VectorOf(shape), shape));
  } else if (!is_fixed && op == "Reshape") {
    w.Out(w.ReshapeBy(x, AskedSizes(w, x), shape));
  } else if (!is_fixed && op == "Flatten" && w.Axis("axis", 1) == 1) {
    w.Out(w.ReshapeBy(x, w.Joined({w.SizeOf(x, 0), w.VectorOf({-1})}), shape));
  } else {
    w.Out(w.Reshape(x, shape));
  }
}

void WriteTranspose(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  std::vector<int64_t> order(x.shape.size());
  std::iota(order.rbegin(), order.rend(), int64_t{0});
  if (w.RankOf(0) > 0) order = w.Ints("perm", order);
  w.Out(w.Transposed(x, order));
}

void WriteConcat(NodeWriter& w) {
  std::vector<MilVar> parts;
  parts.reserve(w.inputs());
  for (size_t i = 0; i < w.inputs(); ++i) {
    const MilShape shape = w.ShapeOf(i);
    const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    if (!is_empty) parts.push_back(w.Movable(i));
  }
  if (parts.empty()) return w.Fail("a result without elements");
  w.Out(w.Joined(parts, w.Axis("axis", 0)));
}

void WriteSplit(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  const int64_t axis = w.Axis("axis", 0);
  int64_t first = 0;
  for (size_t i = 0; i < w.node().outputs.size() && w.ok(); ++i) {
    if (w.node().outputs[i] == kNone) return w.Fail("a part that nobody reads");
    const int64_t count = w.OutShape(i)[axis];
    if (count == kFree) return w.Fail("parts of a size that is only known at run time");
    w.Out(w.Part(x, first, count, axis), i);
    first += count;
  }
}

// Where a slice begins or ends: a number, or int32 of shape [1].
struct Index {
  int64_t known = 0;
  std::optional<MilVar> computed;
};

// The part of one axis. `from_first` or `to_last`: the index is not read.
struct AxisPart {
  Index begin, end;
  int64_t stride = 1;
  bool from_first = false, to_last = false;
};

MilVar Joined(NodeWriter& w, const std::vector<AxisPart>& parts, Index AxisPart::*which) {
  std::vector<int64_t> known;
  std::vector<MilVar> each;
  bool is_known = true;
  for (const AxisPart& part : parts) {
    known.push_back((part.*which).known);
    is_known = is_known && !(part.*which).computed;
  }
  if (is_known) return w.VectorOf(known);
  each.reserve(parts.size());
  for (const AxisPart& part : parts) {
    const Index& index = part.*which;
    each.push_back(index.computed ? *index.computed : w.VectorOf({index.known}));
  }
  return w.Joined(each);
}

// An index that counts from the end if it is negative, brought into 0..extent.
MilVar Placed(NodeWriter& w, const MilVar& index, const MilVar& extent) {
  const MilVar is_before =
      w.Emit("less", {{"x", {index.name}}, {"y", {w.to().Int(0)}}}, "bool", {1});
  const MilVar from0 = w.Select(is_before, w.Binary("add", index, extent), index);
  return w.Binary("minimum", w.Binary("maximum", from0, 0), extent);
}

// Element `i` of an input, if it is a constant.
std::optional<int64_t> ConstantAt(NodeWriter& w, size_t input, size_t i) {
  return w.IsConstant(input) ? std::optional(w.IntsAt(input)[i]) : std::nullopt;
}

// Part `i` of a Slice, of an axis whose extent, start or end is only known at run time.
void PlaceFree(NodeWriter& w, const MilVar& x, int64_t axis, size_t i, AxisPart& part) {
  constexpr int64_t kFar = std::numeric_limits<int32_t>::max();
  const std::optional<int64_t> start = ConstantAt(w, 1, i), end = ConstantAt(w, 2, i);
  if (part.stride < 0) {
    part.from_first = start && (*start == -1 || *start >= kFar);
    part.to_last = end && *end <= -kFar;
    if (part.from_first && part.to_last) return;
    return w.Fail("a slice backward to or from a place that is only known at run time");
  }
  part.from_first = start == 0;
  part.to_last = end && *end >= kFar;
  const MilVar extent = w.SizeOf(x, axis);
  const auto at = static_cast<int64_t>(i);
  if (!part.from_first) part.begin.computed = Placed(w, w.Part(w.In(1, "int32"), at), extent);
  if (!part.to_last) part.end.computed = Placed(w, w.Part(w.In(2, "int32"), at), extent);
}

// Starts and ends are brought into the axis, as ONNX clamps them; a slice to before the first
// element (a negative step) is masked.
void PlaceKnown(int64_t extent, int64_t start, int64_t end, AxisPart& part) {
  auto placed = [&](int64_t at) { return at < 0 ? at + extent : at; };
  if (part.stride > 0) {
    part.begin.known = std::clamp<int64_t>(placed(start), 0, extent);
    part.end.known = std::clamp<int64_t>(placed(end), 0, extent);
    return;
  }
  const int64_t last = end < -extent ? -1 : std::clamp<int64_t>(placed(end), -1, extent - 1);
  part.begin.known = std::clamp<int64_t>(placed(start), 0, extent - 1);
  part.to_last = last < 0;
  part.end.known = std::max<int64_t>(last, 0);
}

void WriteSlice(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  const bool is_fixed = w.IsConstant(1) && w.IsConstant(2);
  if (!is_fixed && !w.to().may_be_free())
    return w.Fail("starts or ends are only known at run time");
  const MilShape count = w.ShapeOf(1);
  if (!w.ok() || HasFree(count)) return w.Fail("a number of axes that is only known at run time");
  std::vector<int64_t> axes(count[0]), steps(count[0], 1);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (w.Has(3)) axes = w.IntsAt(3);
  if (w.Has(4)) steps = w.IntsAt(4);
  if (!w.ok()) return;
  std::vector<AxisPart> parts(x.shape.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].end.known = std::max<int64_t>(x.shape[i], 0);
    parts[i].to_last = x.shape[i] == kFree;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(x.shape.size()) : axes[i];
    parts[axis].stride = steps[i];
    if (is_fixed && x.shape[axis] != kFree) {
      PlaceKnown(x.shape[axis], w.IntsAt(1)[i], w.IntsAt(2)[i], parts[axis]);
    } else {
      PlaceFree(w, x, axis, i, parts[axis]);
    }
  }
  Json from_first = Json::array(), to_last = Json::array();
  std::vector<int64_t> stride;
  bool masks_begin = false;
  for (const AxisPart& part : parts) {
    from_first.push_back(part.from_first);
    to_last.push_back(part.to_last);
    stride.push_back(part.stride);
    masks_begin = masks_begin || part.from_first;
  }
  std::vector<MilArgument> arguments = {{"x", {x.name}},
                                        {"begin", {Joined(w, parts, &AxisPart::begin).name}},
                                        {"end", {Joined(w, parts, &AxisPart::end).name}},
                                        {"stride", {w.to().Ints(stride)}},
                                        {"end_mask", {w.to().Flags(to_last).name}}};
  if (masks_begin) arguments.push_back({"begin_mask", {w.to().Flags(from_first).name}});
  w.Out(w.Emit("slice_by_index", std::move(arguments), x.dtype, w.OutShape()));
}

// To sizes that are only known at run time: x + 0.
void WriteExpand(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  const MilShape shape = w.OutShape();
  if (!HasFree(x.shape) && !HasFree(shape)) return w.Out(w.Spread(x, shape));
  const MilVar sizes = w.In(1, "int32");
  if (!w.ok()) return;
  const MilShape asked(sizes.shape[0], kFree);
  w.Out(w.Binary("add", x, w.Filled(sizes, 0, x.dtype, asked)));
}

void WriteConstantOfShape(NodeWriter& w) {
  const Attribute* given = w.node().FindAttribute("value");
  const Tensor* value = given == nullptr ? nullptr : std::get_if<Tensor>(&given->value);
  const std::string own = w.OutType(), dtype = own == "bool" ? "int32" : own;
  const NumberReader read = value == nullptr ? nullptr : NumberReaderOf(value->type());
  const double number = read == nullptr ? 0 : read(*value, 0);
  const MilVar sizes = w.In(0, "int32");
  if (w.ok()) w.Out(w.to().Cast(w.Filled(sizes, number, dtype, w.OutShape()), own));
}

void WriteRange(NodeWriter& w) {
  const std::string dtype = w.OutType();
  auto number = [&](size_t i) {
    if (w.IsConstant(i)) return w.Scalar(w.NumberAt(i, 0), dtype);
    return w.Squeezed(w.In(i, dtype), 0);
  };
  const MilVar start = number(0), end = number(1), step = number(2);
  w.Out(w.Emit("range_1d", {{"start", {start.name}}, {"end", {end.name}}, {"step", {step.name}}},
               dtype, w.OutShape()));
}

// The extents of the input, or some of them.
void WriteShape(NodeWriter& w) {
  const MilVar x = w.In(0);
  const int64_t rank = w.RankOf(0);
  auto placed = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t first = placed(w.Int("start", 0)), last = placed(w.Int("end", rank));
  if (!w.ok()) return;
  if (last <= first) return w.Fail("a shape of no axes");
  const MilVar all = w.to().ExtentsOf(x);
  w.Out(last - first == rank ? all : w.Part(all, first, last - first));
}

void WriteSize(NodeWriter& w) {
  const MilVar x = w.In(0);
  if (!w.ok()) return;
  w.Out(w.Emit("reduce_prod",
               {{"x", {w.to().ExtentsOf(x).name}},
                {"axes", {w.to().Ints(std::vector<int64_t>{0})}},
                {"keep_dims", {w.to().Bool(true)}}},
               "int32", {1}));
}

void WriteTile(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  if (!w.IsConstant(1) && w.to().may_be_free()) {
    const MilVar repeats = w.In(1, "int32");
    return w.Out(
        w.Emit("tile", {{"x", {x.name}}, {"reps", {repeats.name}}}, x.dtype, w.OutShape()));
  }
  const std::vector<int64_t> repeats = w.IntsAt(1);
  if (repeats.empty()) return w.Out(x);  // a scalar
  w.Out(w.Emit("tile", {{"x", {x.name}}, {"reps", {w.to().Ints(repeats)}}}, x.dtype, w.OutShape()));
}

// Where a padded axis gets its elements from. Negative padding removes elements.
std::vector<int64_t> PlacesOf(const std::string& mode, int64_t extent, int64_t before,
                              int64_t after) {
  std::vector<int64_t> places;
  places.reserve(std::max<int64_t>(extent + before + after, 0));
  const int64_t turn = std::max<int64_t>(2 * (extent - 1), 1);
  for (int64_t i = -before; i < extent + after; ++i) {
    int64_t at = std::clamp<int64_t>(i, 0, extent - 1);
    if (mode == "wrap") at = (i % extent + extent) % extent;
    if (mode == "reflect") at = std::min(std::abs(i) % turn, turn - std::abs(i) % turn);
    places.push_back(std::min(at, extent - 1));
  }
  return places;
}

// One axis, by the elements that are there, or joined with constants.
MilVar PaddedAxis(NodeWriter& w, MilVar x, int64_t axis, int64_t before, int64_t after,
                  const std::string& mode) {
  if (!w.ok() || (before == 0 && after == 0)) return x;
  if (x.shape[axis] == kFree && (mode != "constant" || before < 0 || after < 0)) {
    w.Fail("this padding of a size that is only known at run time");
    return x;
  }
  if (mode != "constant") return w.Picked(x, PlacesOf(mode, x.shape[axis], before, after), axis);
  const int64_t first = std::max<int64_t>(-before, 0), last = std::max<int64_t>(-after, 0);
  if (first + last > 0) {
    const int64_t count = x.shape[axis] - first - last;
    if (count < 1) w.Fail("padding that removes all elements");
    x = w.Part(x, first, count, axis);
  }
  std::vector<MilVar> parts = {x};
  const auto constants = [&](int64_t extent) {
    MilShape shape = x.shape;
    shape[axis] = extent;
    std::vector<MilVar> sizes;
    sizes.reserve(shape.size());
    for (size_t i = 0; i < shape.size() && HasFree(shape); ++i) {
      const auto at = static_cast<int64_t>(i);
      sizes.push_back(at == axis ? w.VectorOf({extent}) : w.SizeOf(x, at));
    }
    return w.Filled(sizes.empty() ? w.VectorOf(shape) : w.Joined(sizes), w.NumberAt(2, 0), x.dtype,
                    shape);
  };
  if (before > 0) parts.insert(parts.begin(), constants(before));
  if (after > 0) parts.push_back(constants(after));
  return w.Joined(parts, axis);
}

// MIL's pad has floats, and neither negative padding nor the mode wrap.
void WritePad(NodeWriter& w) {
  const std::string mode = w.Text("mode", "constant");
  MilVar x = w.Movable(0);
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
  const bool removes = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad < 0; });
  if (x.dtype == "int32" || removes || mode == "wrap") {
    for (int64_t axis = 0; axis < rank; ++axis) {
      x = PaddedAxis(w, x, axis, pads[2 * axis], pads[2 * axis + 1], mode);
    }
    return w.Out(x);
  }
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
  if (HasFree(x.shape)) {
    const char* op = is_dcr ? "depth_to_space" : "pixel_shuffle";
    const char* factor = is_dcr ? "block_size" : "upscale_factor";
    const MilVar y = w.Emit(op, {{"x", {w.In(0, w.floats()).name}}, {factor, {w.to().Int(b)}}},
                            w.floats(), w.OutShape());
    return w.Out(y);
  }
  // Rank 5 at most: the batch and the blocks of the height take turns.
  const MilShape apart = is_dcr ? MilShape{n * b, b, c, h, width} : MilShape{n * c, b, b, h, width};
  x = w.Reshape(x, apart);
  if (!is_dcr) {
    return w.Out(w.Transposed(x, {0, 3, 1, 4, 2}));
  }
  x = w.Transposed(x, {0, 2, 3, 4, 1});  // n*b, c, h, w, b
  x = w.Reshape(x, {n, b, c, h, width * b});
  w.Out(w.Transposed(x, {0, 2, 3, 1, 4}));
}

void WriteSpaceToDepth(NodeWriter& w) {
  const MilVar x = w.In(0, w.floats());
  w.Out(w.Emit("space_to_depth",
               {{"x", {x.name}}, {"block_size", {w.to().Int(w.Int("blocksize", 1))}}}, x.dtype,
               w.OutShape()));
}

// Of a matrix of ones: those on the diagonals that are kept are 1.
MilVar Band(NodeWriter& w, const MilVar& x, bool is_upper, int64_t k) {
  const int64_t rank = static_cast<int64_t>(x.shape.size());
  const MilVar sizes = w.Part(w.to().ExtentsOf(x), rank - 2, 2);
  const MilVar ones = w.Filled(sizes, 1, "fp16", {x.shape[rank - 2], x.shape[rank - 1]});
  // band_part keeps `lower` diagonals below the main one, and `upper` above it; -1: all.
  const bool keeps_main = is_upper ? k <= 0 : k >= 0;
  int64_t lower = -1, upper = -1;
  if (is_upper) {
    (keeps_main ? lower : upper) = keeps_main ? -k : k - 1;
  } else {
    (keeps_main ? upper : lower) = keeps_main ? k : -k - 1;
  }
  const MilVar band =
      w.Emit("band_part",
             {{"x", {ones.name}}, {"lower", {w.to().Int(lower)}}, {"upper", {w.to().Int(upper)}}},
             "fp16", ones.shape);
  return w.Emit("equal", {{"x", {band.name}}, {"y", {w.Scalar(keeps_main ? 1 : 0, "fp16").name}}},
                "bool", ones.shape);
}

void WriteTrilu(NodeWriter& w) {
  const MilVar x = w.Movable(0);
  const auto k = static_cast<int64_t>(w.NumberAt(1, 0));
  const bool is_upper = w.Int("upper", 1) != 0;
  if (!w.ok()) return;
  if (HasFree({x.shape[x.shape.size() - 2], x.shape.back()})) {
    return w.Out(w.Select(Band(w, x, is_upper, k), x, w.Scalar(0, x.dtype)));
  }
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

constexpr MilNode kMoveNodes[] = {
    {"Concat", WriteConcat},
    {"ConstantOfShape", WriteConstantOfShape},
    {"DepthToSpace", WriteDepthToSpace},
    {"Expand", WriteExpand},
    {"Flatten", WriteReshape},
    {"Pad", WritePad},
    {"Range", WriteRange},
    {"Reshape", WriteReshape},
    {"Shape", WriteShape},
    {"Size", WriteSize},
    {"Slice", WriteSlice},
    {"SpaceToDepth", WriteSpaceToDepth},
    {"Split", WriteSplit},
    {"Squeeze", WriteReshape},
    {"Tile", WriteTile},
    {"Transpose", WriteTranspose},
    {"Trilu", WriteTrilu},
    {"Unsqueeze", WriteReshape},
};

}  // namespace

absl::Span<const MilNode> MoveMilNodes() { return kMoveNodes; }

}  // namespace anemone
