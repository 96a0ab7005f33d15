// Operators that read or write elements at constant indices: GatherElements, GatherND,
// ScatterElements, ScatterND, TensorScatter, ReverseSequence, Compress. For each result, the index
// of the element that it comes from is computed here, and one Gather unit reads these elements. A
// scatter reads from the concatenation of the data and the updates. All are exact, except a scatter
// that adds or multiplies.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/bool_element.h"
#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/extents.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/concat.h"
#include "kernels/units/gather.h"
#include "kernels/units/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

using Shape = std::vector<int64_t>;
using Places = std::vector<int64_t>;  // for each result, an index of an element in memory order

absl::Status OutsideError(int64_t index, int64_t extent) {
  return absl::InvalidArgumentError(absl::StrCat("index ", index, " is outside of an axis of ",
                                                 extent,
                                                 " elements; run the ONNX checker on the model"));
}

// The number of elements of the axes from `first` on.
int64_t Behind(const Shape& shape, size_t first) {
  return Product(absl::MakeConstSpan(shape).subspan(first));
}

// Limits the number of elements, because the lowering computes an index for each one.
absl::Status CheckMoved(LowerContext& c, const Shape& shape) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(shape));
  if (count < 1) return c.Refuse(rule::kEmptyTensor);
  if (count > MostIntegers()) {
    return RefuseOverLimit(c, ModelLimit::kListElements, "gather or scatter of a tensor of");
  }
  return absl::OkStatus();
}

// The shapes and the constant indices, which most of the operators have.
struct Form {
  Shape data, indices, out;
  Places values;  // the indices
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
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
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

// For each element of `shape`, the position in `data` of the element with the same coordinates,
// except that the coordinate along `axis` is the index. `shape` may be smaller than `data`.
absl::StatusOr<Places> AlongAxis(const Form& form, const Shape& shape) {
  if (shape.size() != form.data.size()) {
    return absl::InvalidArgumentError("indices: want the rank of the data");
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<int>(i) != form.axis && shape[i] > form.data[i]) {
      return absl::InvalidArgumentError("indices: want extents of at most those of the data");
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

// The last axis of the indices has the coordinates of a block of the data. Returns the positions of
// all elements of all blocks.
absl::StatusOr<Places> Blocks(const Form& form) {
  const size_t batch = static_cast<size_t>(form.batch_axes);
  const int64_t known = form.indices.empty() ? 0 : form.indices.back();
  if (form.batch_axes < 0 || known < 1 || batch + 1 > form.indices.size() ||
      batch + known > form.data.size() ||
      !std::equal(form.indices.begin(), form.indices.begin() + static_cast<int64_t>(batch),
                  form.data.begin())) {
    return absl::InvalidArgumentError(
        "indices: want no more coordinates than the data has axes, and its batch axes; run the "
        "ONNX checker on the model");
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

// A value as one row on W, in ONNX's order of elements.
Operand InARow(LowerContext& c, ValueId value) {
  ANEMONE_ASSIGN_OR_FAIL(c, Shape shape, c.ShapeOf(value));
  Operand x = c.In(value);
  x = ToOnnxOrder(c, x, static_cast<int>(shape.size()));
  return ReshapeToDims(c, x, MakeDims(1, 1, 1, Product(shape)));
}

absl::Status OutPicked(LowerContext& c, const Node& node, const Operand& row, const Shape& out,
                       const Places& places) {
  if (static_cast<int64_t>(places.size()) != Product(out)) {
    return absl::InvalidArgumentError("indices: want one for each element of the output");
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

// How an update is combined with an element; `none` is the identity.
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

// Combines update i with element `to[i]`. Each round applies at most one update to each element,
// and `none` to elements without an update. A sum or product is rounded once for each update.
absl::Status OutCombined(LowerContext& c, const Node& node, const Form& form,
                         const Reduction& reduction, const Operand& updates, const Places& to) {
  const int64_t elements = Product(form.data), count = static_cast<int64_t>(to.size());
  std::vector<Places> rounds;
  std::vector<size_t> taken(elements, 0);
  for (int64_t i = 0; i < count; ++i) {
    const size_t round = taken[to[i]]++;
    if (round == kMostRounds) {
      return c.NotLowered("scatter with a reduction of more than 8 updates to one element");
    }
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

// Writes update i to element `to[i]`. Later updates overwrite earlier ones.
absl::Status OutScattered(LowerContext& c, const Node& node, const Form& form, ValueId updates,
                          const Places& to) {
  ANEMONE_ASSIGN_OR_RETURN(Shape shape, c.ShapeOf(updates));
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(shape));
  if (count != static_cast<int64_t>(to.size())) {
    return absl::InvalidArgumentError("updates: want one element for each index");
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

// ReverseSequence: reverses the first `length` time steps of each batch item.
absl::Status LowerReverseSequence(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t batch, a.Int("batch_axis", 1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t time, a.Int("time_axis", 0));
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c, a, 0));
  if (form.data.size() < 2 || std::min(batch, time) != 0 || std::max(batch, time) != 1 ||
      static_cast<int64_t>(form.values.size()) != form.data[batch]) {
    return absl::InvalidArgumentError(
        "sequence_lens: want one for each batch item, and 0 and 1 as batch_axis and time_axis");
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

// Compress: keeps the elements whose condition is true, along an axis or of the flattened input.
absl::Status LowerCompress(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const bool flat = node.FindAttribute("axis") == nullptr;
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t given_axis, a.Int("axis", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  Operand x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(Shape shape, c.ShapeOf(node.inputs[0]));
  const Tensor* flags = c.view().Constant(node.inputs[1]);
  if (flags == nullptr || flags->type() != DataType::kBool) {
    return c.NotLowered("Compress with a condition computed at run time");
  }
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(given_axis, static_cast<int64_t>(shape.size())));
  if (flat) {
    x = InARow(c, node.inputs[0]);
    shape = {Product(shape)};
  }
  Places taken;
  for (int64_t i = 0; i < std::min(flags->elements(), shape[axis]); ++i) {
    if (BoolAt(*flags, i)) taken.push_back(i);
  }
  if (taken.empty()) return c.Refuse(rule::kEmptyTensor);
  x = Gathered(c, shape, axis, x, FixedPoints(c, {}, taken));
  return c.Out(node.outputs[0], x);
}

// TensorScatter: updates a cache from position write_indices[batch] on, or from 0 if the input is
// omitted. In mode `circular`, positions past the end continue at the start.
absl::Status LowerTensorScatter(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, a.String("mode", "linear"));
  ANEMONE_ASSIGN_OR_RETURN(int64_t given_axis, a.Int("axis", -2));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
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
    return absl::InvalidArgumentError("update: want the shape of the cache, except along the axis");
  }
  ANEMONE_ASSIGN_OR_RETURN(Places starts, ConstantIntegers(c, node, 2, Places(form.data[0], 0)));
  if (static_cast<int64_t>(starts.size()) != form.data[0]) {
    return absl::InvalidArgumentError("write_indices: want one for each batch item");
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
