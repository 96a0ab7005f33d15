// Operators that pick or place elements by constant indices: GatherElements, GatherND,
// ScatterElements, ScatterND, TensorScatter, ReverseSequence, Compress. What they mean is worked
// out here, as a list of the places that the results come from, and becomes one Gather unit; a
// scatter picks from the data with the updates behind it. Exact, unless a scatter adds or
// multiplies.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/extents.h"
#include "kernels/units/concat.h"
#include "kernels/units/gather.h"
#include "kernels/units/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

using Shape = std::vector<int64_t>;
using Places = std::vector<int64_t>;  // in memory order, by element

absl::Status OutsideError(int64_t index, int64_t extent) {
  return absl::InvalidArgumentError(absl::StrCat("index ", index, " of an axis of ", extent,
                                                 " elements; run the ONNX checker on the model"));
}

// Elements of all axes from `first` on.
int64_t Behind(const Shape& shape, size_t first) {
  return Product(absl::MakeConstSpan(shape).subspan(first));
}

// Work is done for each element.
absl::Status CheckMoved(LowerContext& c, const Shape& shape) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(shape));
  if (count < 1) return c.Refuse(rule::kEmptyTensor);
  if (count > kMostIntegers) return c.NotLowered("elements moved by the million");
  return absl::OkStatus();
}

// What the operators have in common: shapes, and indices that are constants.
struct Form {
  Shape data, indices, out;
  Places values;  // of the indices
  int axis = 0;
  int64_t batch_axes = 0;
  std::string reduction;
};

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c, Attributes& a,
                              int64_t default_axis) {
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", default_axis));
  ANEMONE_ASSIGN_OR_RETURN(form.batch_axes, a.Int("batch_dims", 0));
  ANEMONE_ASSIGN_OR_RETURN(form.reduction, a.String("reduction", "none"));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(form.data, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(form.out, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(form.indices, c.ShapeOf(node.inputs[1]));
  ANEMONE_ASSIGN_OR_RETURN(form.axis, NormalAxis(axis, static_cast<int64_t>(form.data.size())));
  ANEMONE_ASSIGN_OR_RETURN(form.values, ConstantIntegers(c, node, 1, {}));
  ANEMONE_RETURN_IF_ERROR(CheckMoved(c, form.data));
  ANEMONE_RETURN_IF_ERROR(CheckMoved(c, form.out));
  if (form.values.empty()) return c.Refuse(rule::kEmptyTensor);
  return form;
}

// For each element of `shape`, where the same coordinates, but `index` along `axis`, lie in
// `data`. `shape` may be smaller than `data`.
absl::StatusOr<Places> AlongAxis(const Form& form, const Shape& shape) {
  if (shape.size() != form.data.size()) {
    return absl::InvalidArgumentError("indices: want as many axes as the data has");
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<int>(i) != form.axis && shape[i] > form.data[i]) {
      return absl::InvalidArgumentError("indices: larger than the data");
    }
  }
  Places places(form.values.size());
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), place = 0, stride = 1;
    for (int k = static_cast<int>(shape.size()) - 1; k >= 0; --k) {
      int64_t at = rest % shape[k];
      rest /= shape[k];
      if (k == form.axis) {
        ANEMONE_ASSIGN_OR_RETURN(at, NormalIndex(form.values[i], form.data[k]));
      }
      place += at * stride;
      stride *= form.data[k];
    }
    places[i] = place;
  }
  return places;
}

// Where each of the blocks lies that the last axis of the indices names, element by element.
absl::StatusOr<Places> Blocks(const Form& form) {
  const size_t batch = static_cast<size_t>(form.batch_axes);
  const int64_t known = form.indices.empty() ? 0 : form.indices.back();
  if (form.batch_axes < 0 || known < 1 || batch + 1 > form.indices.size() ||
      batch + known > form.data.size() ||
      !std::equal(form.indices.begin(), form.indices.begin() + static_cast<int64_t>(batch),
                  form.data.begin())) {
    return absl::InvalidArgumentError(
        "indices: want coordinates of axes that the data has; run the ONNX checker on the model");
  }
  const int64_t block = Behind(form.data, batch + known);
  const int64_t count = static_cast<int64_t>(form.values.size()) / known;
  const int64_t batches = Product(form.data) / Behind(form.data, batch);
  Places places;
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = i / (count / batches);
    for (int64_t k = 0; k < known; ++k) {
      const int64_t extent = form.data[batch + k];
      ANEMONE_ASSIGN_OR_RETURN(int64_t at, NormalIndex(form.values[i * known + k], extent));
      place = place * extent + at;
    }
    for (int64_t j = 0; j < block; ++j) places.push_back(place * block + j);
  }
  return places;
}

// A value as a plane of one row, in ONNX's order of elements.
Operand InARow(LowerContext& c, ValueId value) {
  ANEMONE_ASSIGN_OR_FAIL(c, Shape shape, c.ShapeOf(value));
  Operand x = c.In(value);
  x = ToOnnxOrder(c, x, static_cast<int>(shape.size()));
  return ReshapeToDims(c, x, MakeDims(1, 1, 1, Product(shape)));
}

absl::Status OutPicked(LowerContext& c, const Node& node, const Operand& row, const Shape& out,
                       const Places& places) {
  if (static_cast<int64_t>(places.size()) != Product(out)) {
    return absl::InvalidArgumentError("indices: not as many as the output has elements");
  }
  Operand y = PickedElements(c, row, places);
  y = FromOnnxOrder(c, y, out);
  return c.Out(node.outputs[0], y);
}

absl::Status LowerGather(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c, a, 0));
  const bool nd = node.op_type == "GatherND";
  ANEMONE_ASSIGN_OR_RETURN(Places places, nd ? Blocks(form) : AlongAxis(form, form.indices));
  Operand row = InARow(c, node.inputs[0]);
  return OutPicked(c, node, row, form.out, places);
}

// How updates combine with what is there; `none` changes nothing.
struct Reduction {
  const char* name;
  ElementWiseType type;
  float none;
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Reduction kReductions[] = {{"add", ElementWiseType::kAdd, 0},
                                     {"mul", ElementWiseType::kMult, 1},
                                     {"max", ElementWiseType::kMax, -kInfinity},
                                     {"min", ElementWiseType::kMin, kInfinity}};

constexpr size_t kMostRounds = 8;

// Update i is combined with element `to[i]`; each round takes one update of every element that has
// one left, and `none` for the others. A rounding for each update of a sum or product.
absl::Status OutCombined(LowerContext& c, const Node& node, const Form& form,
                         const Reduction& reduction, const Operand& updates, const Places& to) {
  const int64_t elements = Product(form.data), count = static_cast<int64_t>(to.size());
  std::vector<Places> rounds;
  std::vector<size_t> taken(elements, 0);
  for (int64_t i = 0; i < count; ++i) {
    const size_t round = taken[to[i]]++;
    if (round == kMostRounds) return c.NotLowered("a scatter of many updates to one element");
    if (round == rounds.size()) rounds.emplace_back(elements, count);
    rounds[round][to[i]] = i;
  }
  Operand row = Concatenated(c, {updates, ScalarConstant(c, reduction.none)}, Axis::kW);
  Operand y = InARow(c, node.inputs[0]);
  for (const Places& places : rounds) {
    Operand picked = PickedElements(c, row, places);
    y = Combined(c, reduction.type, y, picked);
  }
  y = FromOnnxOrder(c, y, form.out);
  return c.Out(node.outputs[0], y);
}

// Update i goes to `to[i]`, later ones over earlier ones.
absl::Status OutScattered(LowerContext& c, const Node& node, const Form& form, ValueId updates,
                          const Places& to) {
  ANEMONE_ASSIGN_OR_RETURN(Shape shape, c.ShapeOf(updates));
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(shape));
  if (count != static_cast<int64_t>(to.size())) {
    return absl::InvalidArgumentError("updates: want an element for every index");
  }
  Operand behind = InARow(c, updates);
  for (const Reduction& reduction : kReductions) {
    if (form.reduction == reduction.name) {
      return OutCombined(c, node, form, reduction, behind, to);
    }
  }
  const int64_t elements = Product(form.data);
  Places places(elements);
  std::iota(places.begin(), places.end(), int64_t{0});
  for (int64_t i = 0; i < count; ++i) places[to[i]] = elements + i;
  Operand data = InARow(c, node.inputs[0]);
  Operand row = Concatenated(c, {data, behind}, Axis::kW);
  return OutPicked(c, node, row, form.out, places);
}

absl::Status LowerScatter(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c, a, 0));
  const bool nd = node.op_type == "ScatterND";
  ANEMONE_ASSIGN_OR_RETURN(Places to, nd ? Blocks(form) : AlongAxis(form, form.indices));
  return OutScattered(c, node, form, node.inputs[2], to);
}

// Time steps of each batch item, the first `length` of them backwards.
absl::Status LowerReverseSequence(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t batch, a.Int("batch_axis", 1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t time, a.Int("time_axis", 0));
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c, a, 0));
  if (form.data.size() < 2 || std::min(batch, time) != 0 || std::max(batch, time) != 1 ||
      static_cast<int64_t>(form.values.size()) != form.data[batch]) {
    return absl::InvalidArgumentError(
        "sequence_lens: want one for every batch item, and the axes 0 and 1");
  }
  const int64_t block = Behind(form.data, 2);
  Places places;
  for (int64_t i = 0; i < form.data[0] * form.data[1]; ++i) {
    const int64_t at[] = {i / form.data[1], i % form.data[1]};
    const int64_t length = form.values[at[batch]];
    if (length < 0 || length > form.data[time]) return OutsideError(length, form.data[time]);
    const int64_t step = at[time] < length ? length - 1 - at[time] : at[time];
    const int64_t from = time == 0 ? step * form.data[1] + at[1] : at[0] * form.data[1] + step;
    for (int64_t j = 0; j < block; ++j) places.push_back(from * block + j);
  }
  Operand row = InARow(c, node.inputs[0]);
  return OutPicked(c, node, row, form.out, places);
}

// The elements whose flag is set, of an axis or of all elements in a row.
absl::Status LowerCompress(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const bool flat = node.FindAttribute("axis") == nullptr;
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t given_axis, a.Int("axis", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  Operand x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(Shape shape, c.ShapeOf(node.inputs[0]));
  const Tensor* flags = c.view().Constant(node.inputs[1]);
  if (flags == nullptr || flags->type() != DataType::kBool) {
    return c.NotLowered("Compress by a condition computed at run time");
  }
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(given_axis, static_cast<int64_t>(shape.size())));
  if (flat) {
    x = InARow(c, node.inputs[0]);
    shape = {Product(shape)};
  }
  Places taken;
  for (int64_t i = 0; i < std::min(flags->elements(), shape[axis]); ++i) {
    if (flags->at<bool>(i)) taken.push_back(i);
  }
  if (taken.empty()) return c.Refuse(rule::kEmptyTensor);
  x = Gathered(c, shape, axis, x, FixedPoints(c, {}, taken));
  return c.Out(node.outputs[0], x);
}

// A cache updated from position write_indices[batch] on, 0 if there are none; `circular` goes on at
// the start.
absl::Status LowerTensorScatter(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, a.String("mode", "linear"));
  ANEMONE_ASSIGN_OR_RETURN(int64_t given_axis, a.Int("axis", -2));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(form.data, c.ShapeOf(node.inputs[0]));
  form.out = form.data;
  ANEMONE_ASSIGN_OR_RETURN(Shape update, c.ShapeOf(node.inputs[1]));
  const int rank = static_cast<int>(form.data.size());
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(given_axis, rank));
  ANEMONE_RETURN_IF_ERROR(CheckMoved(c, form.data));
  ANEMONE_RETURN_IF_ERROR(CheckMoved(c, update));
  Shape like = update;
  if (update.size() == form.data.size()) like[axis] = form.data[axis];
  if (axis == 0 || like != form.data) {
    return absl::InvalidArgumentError("update: want the cache's shape but for the axis");
  }
  ANEMONE_ASSIGN_OR_RETURN(Places starts, ConstantIntegers(c, node, 2, Places(form.data[0], 0)));
  if (static_cast<int64_t>(starts.size()) != form.data[0]) {
    return absl::InvalidArgumentError("write_indices: want one for every batch item");
  }
  const int64_t extent = form.data[axis], block = Behind(form.data, axis + 1);
  const int64_t count = Product(update);
  Places to(count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t step = i / block % update[axis], outer = i / block / update[axis];
    int64_t at = starts[i / (count / form.data[0])] + step;
    if (mode == "circular") at %= extent;
    if (at < 0 || at >= extent) return OutsideError(at, extent);
    to[i] = (outer * extent + at) * block + i % block;
  }
  return OutScattered(c, node, form, node.inputs[1], to);
}

constexpr Lowering kLowerings[] = {
    {.op = "GatherElements", .rewritten = true, .lower = LowerGather},
    {.op = "GatherND", .rewritten = true, .lower = LowerGather},
    {.op = "ScatterElements", .rewritten = true, .lower = LowerScatter},
    {.op = "ScatterND", .rewritten = true, .lower = LowerScatter},
    {.op = "TensorScatter", .rewritten = true, .lower = LowerTensorScatter},
    {.op = "ReverseSequence", .rewritten = true, .lower = LowerReverseSequence},
    {.op = "Compress", .rewritten = true, .lower = LowerCompress},
};

}  // namespace

KernelRows ElementMapsRows() { return {{}, kLowerings}; }

}  // namespace anemone
