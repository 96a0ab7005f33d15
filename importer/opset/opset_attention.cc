// The lifts of Attention and RMSNormalization (from opset 23). Each emits the nodes of the function
// that ONNX defines for the operator, but without those that compute sizes and constants: a tenth
// of them. If a form needs more than that, they emit nothing, and the function is inlined
// (opset_function.cc).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/opset/attention_parts.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// The largest causal mask, in elements, that is written.
constexpr int64_t kLargestMask = int64_t{1} << 22;

using AxisSizes = std::vector<int64_t>;

enum AttentionInput : size_t {
  kQueryInput,
  kKeyInput,
  kValueInput,
  kMaskInput,
  kPastKeyInput,
  kPastValueInput
};

// The sizes of an Attention, as batch x heads x rows x size.
struct KnownForm {
  bool is_flat = false;  // heads and size are one axis of the inputs: batch x rows x (heads * size)
  DataType type = DataType::kUndefined;
  int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, past = 0, keys = 0, size = 0,
          v_size = 0;
  bool is_causal = false;
  float softcap = 0;
  float scale = 1;
};

ValueId CastTo(LiftContext& c, ValueId x, DataType from, DataType to) {
  return from == to ? x : c.Emit("Cast", {x}, {{"to", static_cast<int64_t>(to)}});
}

std::optional<AxisSizes> SizesOf(const LiftContext& c, size_t input) {
  const ValueId id = c.input(input);
  if (id == kNone || !c.value(id).is_static()) return std::nullopt;
  return c.value(id).dims();
}

// Sets the sizes; false if they are not known or do not fit together.
bool SetSizes(const LiftContext& c, KnownForm& form) {
  const auto q = SizesOf(c, kQueryInput), k = SizesOf(c, kKeyInput), v = SizesOf(c, kValueInput);
  if (!q || !k || !v || k->size() != q->size() || v->size() != q->size()) return false;
  form.type = c.value(c.input(kQueryInput)).type;
  form.batch = (*q)[0];
  form.heads = IntOr(c.node(), "q_num_heads", 0);
  form.key_heads = IntOr(c.node(), "kv_num_heads", 0);
  form.is_flat = form.heads > 0 && form.key_heads > 0;
  if (q->size() != (form.is_flat ? 3 : 4)) return false;
  if (!form.is_flat) {
    form.heads = (*q)[1];
    form.key_heads = (*k)[1];
  }
  if (form.heads <= 0 || form.key_heads <= 0 || form.heads % form.key_heads != 0) return false;
  form.queries = (*q)[q->size() - 2];
  form.keys = (*k)[k->size() - 2];
  form.size = q->back() / (form.is_flat ? form.heads : 1);
  form.v_size = v->back() / (form.is_flat ? form.key_heads : 1);
  if (const auto past = SizesOf(c, kPastKeyInput)) {
    if (past->size() != 4) return false;
    form.past = (*past)[2];
    form.keys += form.past;
  } else if (c.input(kPastKeyInput) != kNone) {
    return false;
  }
  return form.size > 0 && form.keys > 0 && form.queries <= kLargestMask / form.keys;
}

// nullopt if only the function of ONNX has this form.
std::optional<KnownForm> KnownFormOf(const LiftContext& c) {
  const Node& node = c.node();
  for (const Attribute& attribute : node.attributes) {
    const absl::string_view known[] = {
        "is_causal", "kv_num_heads", "q_num_heads",      "qk_matmul_output_mode",
        "scale",     "softcap",      "softmax_precision"};
    if (std::find(std::begin(known), std::end(known), attribute.name) == std::end(known)) {
      return std::nullopt;
    }
  }
  const bool has_past = c.input(kPastKeyInput) != kNone;
  if (c.input(6) != kNone || c.output(3) != kNone ||
      has_past != (c.input(kPastValueInput) != kNone)) {
    return std::nullopt;
  }
  KnownForm form;
  if (!SetSizes(c, form) || !IsFloating(form.type)) return std::nullopt;
  for (size_t i = kQueryInput; i <= kPastValueInput; ++i) {
    const ValueId id = c.input(i);
    const bool may_be_bool = i == kMaskInput && id != kNone && c.value(id).type == DataType::kBool;
    if (id != kNone && !may_be_bool && c.value(id).type != form.type) return std::nullopt;
  }
  const auto type = static_cast<int64_t>(form.type);
  if (IntOr(node, "softmax_precision", type) != type) return std::nullopt;
  if (c.input(kMaskInput) != kNone) {
    const auto mask = SizesOf(c, kMaskInput);
    if (!mask || mask->size() < 2 || mask->size() > 4 || mask->back() != form.keys) {
      return std::nullopt;
    }
  }
  form.is_causal = IntOr(node, "is_causal", 0) == 1;
  form.softcap = FloatOr(node, "softcap", 0);
  form.scale = FloatOr(node, "scale", 1 / std::sqrt(static_cast<float>(form.size)));
  return form;
}

// batch x heads x rows x size of a query, key or value.
ValueId ByHead(LiftContext& c, const KnownForm& form, size_t input, int64_t heads, int64_t rows,
               int64_t size) {
  if (!form.is_flat) return c.input(input);
  return ToHeads(c, c.input(input), {form.batch, rows, heads * size}, heads);
}

// The key or value behind its past, also as output `present`, and with each head repeated.
ValueId AllKeys(LiftContext& c, const KnownForm& form, size_t input, size_t past, size_t present,
                int64_t size) {
  ValueId x = ByHead(c, form, input, form.key_heads, form.keys - form.past, size);
  if (c.input(past) != kNone) x = c.Emit("Concat", {c.input(past), x}, {{"axis", int64_t{2}}});
  if (c.output(present) != kNone) {
    c.Emit("Identity", {x});
    c.emitted().back().outputs = {c.output(present)};
  }
  return RepeatHeads(c, x, {form.batch, form.key_heads, form.keys, size},
                     form.heads / form.key_heads);
}

// What is added to the scores: 0 for a key that a causal query attends to, minus infinity for
// others.
ValueId CausalBias(LiftContext& c, const KnownForm& form) {
  const Tensor kept = CausalMask({form.queries, form.keys}, form.past);
  std::vector<double> numbers(kept.elements());
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = kept.at<bool>(i) ? 0 : kMinusInfinity;
  }
  return c.Constant(FromDoubles(form.type, kept.dims(), numbers));
}

// The weights of the keys: the softmax of the scores. A boolean mask is true for keys that are
// kept, other masks are added to the scores. The weights of a query without keys are 0, and not
// NaN.
ValueId WeightsOf(LiftContext& c, const KnownForm& form, ValueId scores) {
  const auto softmax = [&](ValueId x) { return c.Emit("Softmax", {x}, {{"axis", int64_t{-1}}}); };
  ValueId mask = c.input(kMaskInput);
  if (mask == kNone) {
    return softmax(form.is_causal ? c.Emit("Add", {scores, CausalBias(c, form)}) : scores);
  }
  const ValueId zero = c.Scalar(form.type, 0);
  const ValueId minus_infinity = c.Scalar(form.type, kMinusInfinity);
  if (c.value(mask).type == DataType::kBool) {
    if (form.is_causal) {
      const ValueId causal = c.Constant(CausalMask({form.queries, form.keys}, form.past));
      mask = c.Emit("And", {mask, causal});
    }
    return c.Emit("Where", {mask, softmax(c.Emit("Where", {mask, scores, minus_infinity})), zero});
  }
  if (form.is_causal) mask = c.Emit("Add", {mask, CausalBias(c, form)});
  const ValueId weights = softmax(c.Emit("Add", {scores, mask}));
  const ValueId most = c.Emit("ReduceMax", {mask, c.Ints({-1})});
  return c.Emit("Where", {c.Emit("Equal", {most, minus_infinity}), zero, weights});
}

}  // namespace

Tensor CausalMask(AxisSizes dims, int64_t past) {
  Tensor kept = Tensor::Zeros(DataType::kBool, std::move(dims));
  const int64_t keys = kept.dims().back();
  for (int64_t i = 0; i < kept.elements(); ++i) {
    kept.mutable_data<bool>()[i] = i % keys <= past + i / keys;
  }
  return kept;
}

ValueId ToHeads(LiftContext& c, ValueId value, const AxisSizes& dims, int64_t heads) {
  return c.Transpose(c.Reshape(value, {dims[0], dims[1], heads, dims[2] / heads}), {0, 2, 1, 3});
}

ValueId RepeatHeads(LiftContext& c, ValueId value, const AxisSizes& dims, int64_t repeats) {
  if (repeats == 1) return value;
  const AxisSizes wide = {dims[0], dims[1], repeats, dims[2], dims[3]};
  const ValueId each = c.Emit("Unsqueeze", {value, c.Ints({2})});
  const ValueId all = c.Emit("Expand", {each, c.Ints(wide)});
  return c.Reshape(all, {dims[0], dims[1] * repeats, dims[2], dims[3]});
}

ValueId DividedByRms(LiftContext& c, DataType type, ValueId x, const AxisSizes& axes,
                     float epsilon) {
  const ValueId square = c.Emit("Mul", {x, x});
  const ValueId mean = c.Emit("ReduceMean", {square, c.Ints(axes)}, {{"keepdims", int64_t{1}}});
  const ValueId root = c.Emit("Sqrt", {c.Emit("Add", {mean, c.Scalar(type, epsilon)})});
  return c.Emit("Div", {x, root});
}

absl::Status LiftAttention(LiftContext& c) {
  const std::optional<KnownForm> form = KnownFormOf(c);
  if (!form.has_value()) return absl::OkStatus();
  const ValueId q = ByHead(c, *form, kQueryInput, form->heads, form->queries, form->size);
  const ValueId k = AllKeys(c, *form, kKeyInput, kPastKeyInput, 1, form->size);
  const ValueId v = AllKeys(c, *form, kValueInput, kPastValueInput, 2, form->v_size);
  const ValueId turned = c.Transpose(k, {0, 1, 3, 2});
  // The function multiplies queries and keys by the root of the scale, for the same range of
  // scores.
  const ValueId scaled = c.Emit("Mul", {q, c.Scalar(form->type, form->scale)});
  ValueId scores = c.Emit("MatMul", {scaled, turned});
  if (form->softcap != 0) {
    const ValueId cap = c.Scalar(form->type, form->softcap);
    scores = c.Emit("Mul", {c.Emit("Tanh", {c.Emit("Div", {scores, cap})}), cap});
  }
  const ValueId weights = WeightsOf(c, *form, scores);
  if (!form->is_flat) return c.EmitLast("MatMul", {weights, v});
  const ValueId rows = c.Transpose(c.Emit("MatMul", {weights, v}), {0, 2, 1, 3});
  const AxisSizes flat = {form->batch, form->queries, form->heads * form->v_size};
  return c.EmitLast("Reshape", {rows, c.Ints(flat)}, {{"allowzero", int64_t{1}}});
}

absl::Status LiftRmsNormalization(LiftContext& c) {
  const Node& node = c.node();
  const DataType type = c.value(c.input(0)).type;
  const std::optional<Shape>& shape = c.value(c.input(0)).shape;
  if (!shape.has_value() || !IsFloating(type)) return absl::OkStatus();
  const auto rank = static_cast<int64_t>(shape->size());
  const int64_t given = IntOr(node, "axis", -1);
  const int64_t axis = given < 0 ? given + rank : given;
  const auto inner =
      static_cast<DataType>(IntOr(node, "stash_type", static_cast<int64_t>(DataType::kFloat)));
  const DataType scale = c.value(c.input(1)).type;
  if (axis < 0 || axis >= rank || !IsFloating(inner) || scale != type) return absl::OkStatus();
  AxisSizes axes(rank - axis);
  std::iota(axes.begin(), axes.end(), axis);
  const ValueId x = CastTo(c, c.input(0), type, inner);
  const ValueId divided = DividedByRms(c, inner, x, axes, FloatOr(node, "epsilon", 1e-5f));
  const ValueId normal = CastTo(c, divided, inner, type);
  return c.EmitLast("Mul", {normal, c.input(1)});
}

}  // namespace anemone
