// DynamicSlice: a part of a tensor whose position is computed at run time; ONNX's Slice with such
// starts becomes one unit for each axis. Needs A14 (conflicts.md C-dynslice-m1). Facts:
// validators.json DynamicSlice; hidden_layers.json DynamicSlice.
#include "kernels/units/dynamic_slice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "kernels/attributes.h"
#include "kernels/node_inputs.h"
#include "kernels/resize/sampling.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "math/core/extents.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct Slice {
  std::optional<Axis> axis;  // nullopt: not a valid axis; the validator refuses it
  int64_t size = 1;
};

struct DynamicSliceParams {
  std::vector<Axis> order;
  std::vector<Slice> slices;
  AxisValues<Coordinates> coordinates;
  CoordinateMode mode = CoordinateMode::kNonNormalized;
  AxisValues<SamplePadding> padding;
  float background = 0;
};

struct AsSlices {
  static Json Write(const std::vector<Slice>& slices) {
    Json items = Json::array();
    for (const Slice& slice : slices) {
      items.push_back({{"Coordinate", slice.axis ? Json(AxisName(*slice.axis)) : Json("")},
                       {"SliceSize", slice.size}});
    }
    return items;
  }
  static absl::Status Read(const Json& from, std::vector<Slice>& slices) {
    slices.clear();
    if (!from.is_array()) return NoSuchArray(from);
    for (const Json& item : from) {
      if (!item.is_object() || item.size() != 2 || !item.contains("Coordinate") ||
          !item.contains("SliceSize")) {
        return NoSuchArray(item);
      }
      Slice& slice = slices.emplace_back();
      Axis axis;
      if (Plain::Read(item["Coordinate"], axis).ok()) slice.axis = axis;
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item["SliceSize"], slice.size));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status NoSuchArray(const Json& from) {
    return Unwanted("an array of {Coordinate, SliceSize}", from);
  }
};

absl::StatusOr<Dims> Shape(const DynamicSliceParams& p, Bottoms in) {
  Dims out = in[0].dims;
  for (const Slice& slice : p.slices) {
    if (!slice.axis || slice.size < 1) {
      return absl::InvalidArgumentError("DynamicSliceInfo: want an axis and a size of 1 or more");
    }
    out[*slice.axis] = slice.size;
  }
  return out;
}

Verdict Validate(const DynamicSliceParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  for (const Slice& slice : p.slices) {
    if (!slice.axis) return judge.Reject(rule::kDynamicSliceSize);
  }
  return judge.Accept();
}

Verdict Codegen(const DynamicSliceParams&, Bottoms, const Target& target, Route route) {
  return Judge(target, route).Requires(rule::kDynamicSliceFamily);
}

constexpr Field<DynamicSliceParams> kFields[] = {
    Required<&DynamicSliceParams::order>("DynamicSliceAxisOrder"),
    Required<&DynamicSliceParams::slices, AsSlices>("DynamicSliceInfo"),
    Key<&DynamicSliceParams::coordinates, AsCoordinates>("CoordinateInfo"),
    Key<&DynamicSliceParams::mode>("CoordinateMode"),
    Key<&DynamicSliceParams::padding, PerAxis<kSamplePaddingKey>>("PaddingInfo"),
    Key<&DynamicSliceParams::background>("BackgroundValue"),
};

// The padding mode of one axis. The default is the mode that was seen in a netplist (netplist.md).
SamplePadding PaddingOf(const DynamicSliceParams& p, Axis axis) {
  for (const AxisValue<SamplePadding>& entry : p.padding) {
    if (entry.axis == axis) return entry.value;
  }
  return SamplePadding::kBackground;
}

using Starts = std::vector<float>;  // in the order of DynamicSliceAxisOrder

// Where the sources are silent, the simplest interpretation is used. The index holds a start, an
// element number, for each axis of the order. An axis without a start begins at 0, and an axis
// without a size keeps its extent. Positions outside the tensor are padded, so no start is refused.
absl::StatusOr<Prepared> Prepare(const DynamicSliceParams& p, Bottoms in,
                                 absl::Span<const Tensor>) {
  bool counted = p.mode == CoordinateMode::kNonNormalized;
  for (const AxisValue<Coordinates>& entry : p.coordinates) {
    counted = counted && entry.value.mode == CoordinateMode::kNonNormalized;
  }
  for (const AxisValue<SamplePadding>& entry : p.padding) {
    counted = counted &&
              (entry.value == SamplePadding::kBackground || entry.value == SamplePadding::kZero ||
               entry.value == SamplePadding::kReplication);
  }
  if (!counted) {
    return absl::UnimplementedError(
        "DynamicSlice with normalized coordinates, or with padding other than Zero, Background and "
        "Replication, can be checked but not run");
  }
  if (in[1].dims.elements() != static_cast<int64_t>(p.order.size())) {
    return absl::UnimplementedError(
        "DynamicSlice whose index has another size than DynamicSliceAxisOrder can be checked but "
        "not "
        "run");
  }
  if (in[1].format != Format::kUInt16)
    return Prepared();  // otherwise it is a constant: no port has this format
  auto starts = std::make_shared<Starts>();
  for (int64_t i = 0; i < in[1].constant->elements(); ++i) {
    starts->push_back(in[1].constant->at<uint16_t>(i));
  }
  return starts;
}

// The input positions along one axis of the output elements.
struct Source {
  std::vector<int64_t> at;  // -1: outside the input
  math::Half beyond;
};

Source SourceOf(const DynamicSliceParams& p, Axis axis, int64_t start, int64_t from, int64_t to) {
  const SamplePadding padding = PaddingOf(p, axis);
  Source source;
  source.beyond = padding == SamplePadding::kZero ? math::kHalfZero : math::ToHalf(p.background);
  for (int64_t i = start; i < start + to; ++i) {
    const bool inside = i >= 0 && i < from;
    const int64_t nearest = std::clamp<int64_t>(i, 0, from - 1);
    source.at.push_back(inside || padding == SamplePadding::kReplication ? nearest : -1);
  }
  return source;
}

void Compute(const DynamicSliceParams& p, const void* prepared, absl::Span<const ConstView> in,
             View out) {
  // Starts are rounded down. All starts outside every extent, also infinite ones, are equivalent.
  constexpr float kFar = 1 << 20;
  std::array<int64_t, kAxisCount> starts = {};
  for (size_t i = 0; i < p.order.size(); ++i) {
    const float start = prepared != nullptr ? (*static_cast<const Starts*>(prepared))[i]
                                            : math::ToFloat(in[1].data[i]);
    starts[static_cast<int>(p.order[i])] =
        static_cast<int64_t>(std::clamp(std::floor(start), -kFar, kFar));
  }
  std::array<Source, kAxisCount> sources;
  for (int axis = 0; axis < kAxisCount; ++axis) {
    sources[axis] = SourceOf(p, static_cast<Axis>(axis), starts[axis], in[0].dims.extent[axis],
                             out.dims.extent[axis]);
  }
  const math::Strides strides = math::DenseStrides(in[0].dims.extent);
  const int64_t width = out.dims.w(), rows = out.dims.elements() / width;
  const Source& along = sources[static_cast<int>(Axis::kW)];
  for (int64_t row = 0; row < rows; ++row) {
    math::Half* to = out.data + row * width;
    const math::Half* from = in[0].data;
    const Source* beyond = nullptr;
    for (int64_t axis = kAxisCount - 2, left = row; axis >= 0; --axis) {
      const int64_t at = sources[axis].at[left % out.dims.extent[axis]];
      left /= out.dims.extent[axis];
      if (at < 0) beyond = &sources[axis];
      from += std::max<int64_t>(at, 0) * strides[axis];
    }
    for (int64_t i = 0; i < width; ++i) {
      const Source* off = beyond == nullptr && along.at[i] < 0 ? &along : beyond;
      to[i] = off != nullptr ? off->beyond : from[along.at[i]];
    }
  }
}

const UnitKindOf<DynamicSliceParams>& Kind() {
  static const UnitKindOf<DynamicSliceParams> kind({
      .type = "DynamicSlice",
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields},
      .run = {.prepare = Prepare, .compute = Compute},
  });
  return kind;
}

}  // namespace

absl::Status LowerDynamicSlice(const Node& node, LowerContext& c) {
  if (c.route() == Route::kMil) return c.NotLowered("DynamicSlice on route mil");
  Operand starts = c.In(node.inputs[1]);
  ANEMONE_RETURN_IF_ERROR(c.status());
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  const int64_t count = c.DimsOf(starts).elements();
  std::vector<int64_t> first_axes(count);
  std::iota(first_axes.begin(), first_axes.end(), 0);
  ANEMONE_ASSIGN_OR_RETURN(auto axes, ConstantIntegers(c, node, 3, first_axes));
  ANEMONE_ASSIGN_OR_RETURN(auto steps,
                           ConstantIntegers(c, node, 4, std::vector<int64_t>(count, 1)));
  if (std::ssize(axes) != count || steps.size() != axes.size() || axes.size() > from.size()) {
    return absl::InvalidArgumentError(
        "starts, ends, axes and steps: want the same number of elements in each; run the ONNX "
        "checker on the model");
  }
  const int rank = static_cast<int>(from.size());
  const std::optional<Interval> range = c.view().RangeOf(node.inputs[1]).interval;
  Operand x = c.In(node.inputs[0]);
  starts = ReshapeToDims(c, starts, MakeDims(1, 1, 1, count));
  for (int64_t i = 0; i < count; ++i) {
    ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axes[i], rank));
    if (to[at] < 1) return c.Refuse(rule::kEmptyTensor);
    if (to[at] == from[at] && steps[i] == 1) continue;  // all of the axis
    if (steps[i] != 1) return c.NotLowered("Slice at run time in steps other than 1");
    if (!range || range->low < 0 || range->high > from[at] - to[at]) {
      return c.NotLowered(absl::StrCat("Slice at run time whose start is not known to be in 0..",
                                       from[at] - to[at]));
    }
    const Axis axis = ToEngineAxis(rank, at);
    x = c.Add(Kind(),
              DynamicSliceParams{.order = {axis},
                                 .slices = {{axis, to[at]}},
                                 .coordinates = {{axis, {CoordinateMode::kNonNormalized, {}}}},
                                 .padding = {{axis, SamplePadding::kBackground}}},
              {x, Sliced(c, starts, Axis::kW, i, 1)});
  }
  return c.Out(node.outputs[0], x);
}

KernelRows DynamicSliceRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
