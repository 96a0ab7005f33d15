// MIL's gather, gather_along_axis and gather_nd as the Gather unit (kernels/units/gather.cc).
// Indices may be constant or computed at run time; computed ones are fp16.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/integers.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/extents.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/gather.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// The indices of a call: the second argument, or the attribute `indices`.
struct Indices {
  std::vector<int64_t> shape;
  int64_t count = 1;               // elements
  std::optional<Operand> operand;  // nullopt if the indices are constant
  std::vector<int64_t> values;     // constant indices; zeros if they are unknown
};

// The arguments must be the data and, unless they are an attribute, the indices.
absl::Status CheckArguments(MilContext& c) {
  const std::string& op = c.call().op;
  for (size_t i = 1; i < c.arguments() && op != "gather_nd"; ++i) {
    const MilTensor& argument = c.call().arguments[i];
    if (argument.name != "axis" && (i != 2 || op != "gather")) continue;
    if (argument.constant) return c.NotLowered("gather along an axis of unknown value");
    if (c.route() == Route::kMil) return c.Refuse(rule::kGatherAxis);
    return c.NotLowered("gather along an axis computed at run time");
  }
  if (c.arguments() <= (c.Has("indices") ? 1 : 2)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(op, ": want two arguments: data and indices"));
}

absl::StatusOr<Indices> ReadIndices(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(CheckArguments(c));
  c.Ignore("validate_indices");
  ANEMONE_ASSIGN_OR_RETURN(int64_t batch_axes, c.Int("batch_dims", 0));
  if (batch_axes != 0) return c.NotLowered("gather with batch_dims");
  c.In(0);
  ANEMONE_RETURN_IF_ERROR(ElementCount(c.ShapeOf(0)).status());
  Indices indices;
  if (!c.Has("indices")) {
    Operand given = c.In(1);
    indices.shape = c.ShapeOf(1);
    const MilTensor& argument = c.call().arguments[1];
    if (!argument.constant) indices.operand = given;
    if (auto values = argument.value ? IntegersOf(*argument.value) : std::nullopt) {
      indices.values = *std::move(values);
    }
  } else if (c.call().attributes.at("indices").is_object()) {
    ANEMONE_ASSIGN_OR_RETURN(auto constant, c.Constant("indices"));
    if (constant) indices.shape = constant->shape;
  } else if (c.call().attributes.at("indices").is_array()) {
    ANEMONE_ASSIGN_OR_RETURN(auto values, c.Ints("indices", {}));
    indices.shape = {static_cast<int64_t>(values.size())};
  } else {
    ANEMONE_RETURN_IF_ERROR(c.Int("indices", 0).status());
  }
  ANEMONE_ASSIGN_OR_RETURN(indices.count, ElementCount(indices.shape));
  if (indices.count < 1) return c.Refuse(rule::kEmptyTensor);
  if (indices.count > MostIntegers()) {
    return RefuseOverLimit(c, ModelLimit::kListElements, "gather whose indices have");
  }
  if (!indices.operand) indices.values.resize(indices.count);
  return indices;
}

// Converts indices to 0..extent-1; negative ones count from the end.
absl::Status Normalize(absl::Span<int64_t> indices, int64_t extent) {
  for (int64_t& index : indices) {
    ANEMONE_ASSIGN_OR_RETURN(index, NormalIndex(index, extent));
  }
  return absl::OkStatus();
}

absl::StatusOr<PointList> PointsOf(NetworkBuilder& c, Indices indices, int64_t extent) {
  if (!indices.operand) {
    ANEMONE_RETURN_IF_ERROR(Normalize(absl::MakeSpan(indices.values), extent));
    return FixedPoints(c, {}, indices.values);
  }
  Operand flat = ToOnnxOrder(c, *indices.operand, static_cast<int>(indices.shape.size()));
  flat = ReshapeToDims(c, flat, MakeDims(1, 1, indices.count, 1));
  return ComputedPoints(c, flat, {});
}

// Without a texture engine the data must have batch and depth 1. Other data is reshaped to that
// form, which counts as a rewrite.
absl::Status CheckEnvelope(MilContext& c) {
  const Dims data = PlaceShape(c.ShapeOf(0));
  Judge judge(c.target(), c.route());
  if (judge.Has(Cap::kTextureEngine) || (data.n() == 1 && data.d() == 1)) return absl::OkStatus();
  if (!c.rewrites()) return c.Refuse(rule::kGatherEnvelope);
  c.SetRewritten();
  return absl::OkStatus();
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", 0));
  ANEMONE_ASSIGN_OR_RETURN(Indices indices, ReadIndices(c));
  ANEMONE_RETURN_IF_ERROR(CheckEnvelope(c));
  ANEMONE_ASSIGN_OR_RETURN(PointList points, PointsOf(c, indices, c.ShapeOf(0)[axis]));
  Operand x = c.In(0);
  std::vector<int64_t> shape = c.ShapeOf(0);
  x = Gathered(c, shape, axis, x, points);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.shape.begin(), indices.shape.end());
  x = ReshapeInOnnxOrder(c, x, c.rank(0), shape);
  return c.Out(x, shape);
}

// `x`, a value of shape `shape`, with `axis` last: 1 x 1 x (all other axes) x extent.
Operand AxisLast(NetworkBuilder& c, Operand x, absl::Span<const int64_t> shape, int axis) {
  const auto [before, after] = ProductsAround(shape, axis);
  x = ToOnnxOrder(c, x, static_cast<int>(shape.size()));
  x = ReshapeToDims(c, x, MakeDims(1, before, shape[axis], after));
  x = SwapAxes(c, x, Axis::kH, Axis::kW);
  return ReshapeToDims(c, x, MakeDims(1, 1, before * after, shape[axis]));
}

// gather_along_axis: each row (one position on the other axes) has separate indices. The points are
// (0, row, index).
absl::Status BuildAlongAxis(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", 0));
  ANEMONE_ASSIGN_OR_RETURN(Indices indices, ReadIndices(c));
  ANEMONE_RETURN_IF_ERROR(CheckEnvelope(c));
  const std::vector<int64_t>& from = c.ShapeOf(0);
  std::vector<int64_t> common = indices.shape;
  if (common.size() == from.size()) common[axis] = from[axis];
  if (common != from) {
    return absl::InvalidArgumentError(
        "gather_along_axis: want indices with the shape of the data, except along the axis");
  }
  const int64_t each = indices.shape[axis], rows = indices.count / each;
  // Next to computed indices, the row numbers are fp16 too.
  if (from[axis] > kMostPlaces ||
      rows > (indices.operand ? fp16::kLargestExactInteger : kMostPlaces)) {
    return c.NotLowered("gather_along_axis with an axis or rows too long for a coordinate");
  }
  const auto [before, after] = ProductsAround(from, axis);
  std::vector<int64_t> row(indices.count);
  for (int64_t i = 0; i < indices.count; ++i) row[i] = i / each;
  PointList points;
  if (indices.operand) {
    Operand index = AxisLast(c, *indices.operand, indices.shape, axis);
    index = ReshapeToDims(c, index, MakeDims(1, 1, indices.count, 1));
    points = ComputedPoints(c, index, std::vector<float>(row.begin(), row.end()));
  } else {
    ANEMONE_RETURN_IF_ERROR(Normalize(absl::MakeSpan(indices.values), from[axis]));
    std::vector<int64_t> columns(indices.count);  // in the order that has `axis` last
    for (int64_t i = 0; i < indices.count; ++i) {
      const int64_t at = i % each, inner = row[i] % after, outer = row[i] / after;
      columns[i] = indices.values[(outer * each + at) * after + inner];
    }
    points = FixedPoints(c, row, columns);
  }
  Operand x = c.In(0);
  x = AxisLast(c, x, from, axis);
  x = AtPoints(c, x, points);
  x = ReshapeToDims(c, x, MakeDims(1, before, rows / before, each));
  x = SwapAxes(c, x, Axis::kH, Axis::kW);
  x = FromOnnxOrder(c, x, indices.shape);
  return c.Out(x, indices.shape);
}

// gather_nd: the last axis of the indices holds coordinates of the data's first axes. Those axes
// become depth, height and width; the axes after them become the channel.
absl::Status BuildNd(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(Indices indices, ReadIndices(c));
  if (!Judge(c.target(), c.route()).Has(Cap::kTextureEngine)) {
    ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kGatherNd));
  }
  const std::vector<int64_t>& from = c.ShapeOf(0);
  if (indices.shape.empty() || indices.shape.back() > from.size()) {
    return absl::InvalidArgumentError("gather_nd: want no more coordinates than the data has axes");
  }
  const int64_t known = indices.shape.back(), count = indices.count / known;
  if (known > kCoordinates) return c.NotLowered("gather_nd with more than three coordinates");
  std::vector<int64_t> gathered(kCoordinates - known, 1);
  gathered.insert(gathered.end(), from.begin(), from.begin() + known);
  const int64_t after = Product(absl::MakeConstSpan(from).subspan(known));
  PointList points;
  if (indices.operand) {
    Operand list = ToOnnxOrder(c, *indices.operand, static_cast<int>(indices.shape.size()));
    list = ReshapeToDims(c, list, MakeDims(1, 1, count, known));
    list = SwapAxes(c, list, Axis::kC, Axis::kW);
    points = ComputedPoints(c, list, {});
  } else {
    std::vector<int64_t> coordinates[kCoordinates];  // by axis; missing leading ones are 0
    for (std::vector<int64_t>& list : coordinates) list.resize(count);
    for (int64_t i = 0; i < indices.count; ++i) {
      coordinates[kCoordinates - known + i % known][i / known] = indices.values[i];
    }
    for (int64_t k = 0; k < kCoordinates; ++k) {
      ANEMONE_RETURN_IF_ERROR(Normalize(absl::MakeSpan(coordinates[k]), gathered[k]));
    }
    points = FixedPoints(c, coordinates[1], coordinates[2], coordinates[0]);
  }
  Operand x = c.In(0);
  x = ToOnnxOrder(c, x, c.rank(0));
  const Dims flat{{1, gathered[0], gathered[1], gathered[2], after}};
  x = ReshapeToDims(c, x, flat);
  x = Permuted(c, x, {Axis::kN, Axis::kD, Axis::kW, Axis::kC, Axis::kH});
  x = AtPoints(c, x, points);
  x = SwapAxes(c, x, Axis::kC, Axis::kH);
  std::vector<int64_t> shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), from.begin() + known, from.end());
  if (shape.size() > kMaxRank) return c.Refuse(rule::kReshapeRank);
  x = FromOnnxOrder(c, x, shape);
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {
    {"gather", Build}, {"gather_along_axis", BuildAlongAxis}, {"gather_nd", BuildNd}};

}  // namespace

KernelRows MilGatherRows() { return {{}, {}, kOperations}; }

}  // namespace anemone
