// The parts of importer/contrib/attention.h. They emit the node patterns that
// kernels/attention/attention.h matches.
#include <cmath>
#include <limits>
#include <utility>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "importer/contrib/attention.h"

namespace anemone {
namespace {

ValueId KeptKeys(ContribBody& b, const KeyMask& mask) {
  using Kind = KeyMask::Kind;
  const ValueId given = b.input(mask.input);
  const int64_t batch = mask.batch;
  if (mask.kind == Kind::kOfKeys || mask.kind == Kind::kOfScores) {
    const int64_t rows = mask.kind == Kind::kOfKeys ? 1 : mask.queries;
    const ValueId plane = b.Reshape(given, {batch, 1, rows, mask.keys});
    return b.Emit("Greater", {plane, b.Constant(Tensor::Of<int32_t>(DataType::kInt32, {}, {0}))});
  }
  const ValueId at = b.Count(DataType::kInt32, mask.keys, {1, 1, 1, mask.keys});
  const ValueId end = b.Reshape(b.Slice(given, 0, 0, batch), {batch, 1, 1, 1});
  const ValueId before = b.Emit("Less", {at, end});
  if (mask.kind == Kind::kLengths) return before;
  const ValueId start = b.Reshape(b.Slice(given, 0, batch, 2 * batch), {batch, 1, 1, 1});
  return b.Emit("And", {before, b.Emit("GreaterOrEqual", {at, start})});
}

}  // namespace

float ScaleOr(float scale, int64_t head_size) {
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(head_size));
}

double LowestOf(DataType type) {
  return type == DataType::kFloat16 ? fp16::kLowest : std::numeric_limits<float>::lowest();
}

ValueId FromHeads(ContribBody& b, ValueId value, const Sizes& dims) {
  return b.Reshape(b.Transpose(value, {0, 2, 1, 3}), dims);
}

ValueId Attended(ContribBody& b, const AttentionForm& form) {
  const ValueId k = RepeatHeads(b, form.k, form.k_dims, form.repeats);
  const ValueId v = RepeatHeads(b, form.v, form.v_dims, form.repeats);
  ValueId scores = b.Emit("MatMul", {form.q, b.Transpose(k, {0, 1, 3, 2})});
  scores = b.Emit("Mul", {scores, b.Scalar(form.type, form.scale)});
  if (form.softcap > 0) {
    const ValueId cap = b.Scalar(form.type, form.softcap);
    scores = b.Emit("Mul", {b.Emit("Tanh", {b.Emit("Div", {scores, cap})}), cap});
  }
  for (const ValueId mask : form.masks) scores = b.Plus(scores, mask);
  const ValueId weights = b.Emit("Softmax", {scores}, {{"axis", int64_t{-1}}});
  return b.Emit("MatMul", {weights, v});
}

absl::Status CheckAdded(ContribBody& b, size_t input, int64_t batch, int64_t heads, int64_t queries,
                        int64_t keys) {
  ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(input, {4}));
  return b.Need((dims[0] == batch || dims[0] == 1) && (dims[1] == heads || dims[1] == 1) &&
                    dims[2] == queries && dims[3] == keys,
                "attention_bias has an unexpected shape");
}

absl::Status CheckMask(ContribBody& b, bool is_attention, KeyMask& mask) {
  using Kind = KeyMask::Kind;
  mask.causal = mask.causal && mask.queries > 1;
  const int64_t plane = mask.causal ? mask.queries : 1;
  ANEMONE_RETURN_IF_ERROR(
      b.Need(mask.keys > 0 && plane <= kMostMasked / mask.keys, "the mask is too large"));
  if (!b.Has(mask.input)) return absl::OkStatus();
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.value(b.input(mask.input)).type == DataType::kInt32, "the mask is not int32"));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(mask.input, {1, 2, 3}));
  const int64_t batch = mask.batch;
  if (dims == Sizes{batch, mask.queries, mask.keys}) {
    mask.kind = Kind::kOfScores;
  } else if (dims == Sizes{batch, mask.keys}) {
    mask.kind = Kind::kOfKeys;
  } else if (dims == Sizes{batch} || dims == Sizes{3 * batch + 2}) {
    mask.kind = Kind::kLengths;  // the last 2 * batch + 2 elements are cumulative lengths
  } else if (is_attention && dims == Sizes{2 * batch}) {
    mask.kind = Kind::kRanges;
  } else if (is_attention && (dims == Sizes{batch, 1} || dims == Sizes{1, 1})) {
    mask.kind = Kind::kNone;  // one element for all keys masks nothing
  } else {
    return b.Keep("the mask has an unsupported shape");
  }
  return absl::OkStatus();
}

ValueId EmitMask(ContribBody& b, const KeyMask& mask) {
  const auto number = [&](double value) { return b.Scalar(mask.type, value); };
  const auto causal = [&] {
    return b.Constant(CausalMask({1, 1, mask.queries, mask.keys}, mask.past));
  };
  if (mask.kind == KeyMask::Kind::kNone) {
    if (!mask.causal) return kNone;
    return b.Emit("Where", {causal(), number(0), number(LowestOf(mask.type))});
  }
  const ContribBody::Aside aside(b, "mask");
  ValueId added = b.Emit("Where", {KeptKeys(b, mask), number(0), number(mask.fill)});
  if (!mask.causal) return added;
  return b.Emit("Where", {causal(), added, number(LowestOf(mask.type))});
}

// The rotation is x * cos + swapped(x) * sin, where the sine is negative for the first element of
// each pair. This needs two products instead of four, of the same numbers.
Rotation WithSigns(ContribBody& b, Rotation rotation) {
  const ValueId negative = b.Emit("Neg", {rotation.sin});
  const auto axis = static_cast<int64_t>(rotation.dims.size());
  if (rotation.interleaved) {
    const ValueId last = b.Ints({axis});
    rotation.cos = b.Emit("Unsqueeze", {rotation.cos, last});
    rotation.sin = b.Concat(
        {b.Emit("Unsqueeze", {negative, last}), b.Emit("Unsqueeze", {rotation.sin, last})}, axis);
    return rotation;
  }
  rotation.cos = b.Concat({rotation.cos, rotation.cos}, axis - 1);
  rotation.sin = b.Concat({negative, rotation.sin}, axis - 1);
  return rotation;
}

ValueId Rotated(ContribBody& b, ValueId x, const Sizes& x_dims, const Rotation& rotation) {
  const int64_t half = rotation.dims.back(), all = x_dims.back();
  const int64_t last = static_cast<int64_t>(x_dims.size()) - 1;
  ValueId rest = kNone;
  if (2 * half < all) {
    const std::vector<ValueId> parts = b.Split(x, last, {2 * half, all - 2 * half});
    x = parts[0];
    rest = parts[1];
  }
  Sizes dims = x_dims;
  dims.back() = 2 * half;
  int64_t axis = last, width = half;
  if (rotation.interleaved) {
    Sizes pairs = dims;
    pairs.back() = half;
    pairs.push_back(2);
    x = b.Reshape(x, pairs);
    axis = last + 1;
    width = 1;
  }
  const std::vector<ValueId> parts = b.Split(x, axis, {width, width});
  const ValueId swapped = b.Concat({parts[1], parts[0]}, axis);
  ValueId y =
      b.Emit("Add", {b.Emit("Mul", {x, rotation.cos}), b.Emit("Mul", {swapped, rotation.sin})});
  if (rotation.interleaved) y = b.Reshape(y, dims);
  return rest == kNone ? y : b.Concat({y, rest}, last);
}

}  // namespace anemone
