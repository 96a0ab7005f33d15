// Attention, QAttention and MultiHeadAttention of com.microsoft.
#include "importer/contrib/attention.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/contrib/builders.h"

namespace anemone {
namespace {

// The indices of inputs of Attention and QAttention, which include the projection of their input.
struct PackedInputs {
  size_t mask, past;
  std::optional<size_t> added;  // to the scores
};
constexpr PackedInputs kAttention = {.mask = 3, .past = 4, .added = 5};
constexpr PackedInputs kQuantized = {.mask = 5, .past = 8, .added = std::nullopt};

struct PackedAttention {
  DataType type = DataType::kFloat;
  int64_t batch = 0, sequence = 0, past = 0, heads = 0, size = 0, v_size = 0;
  float scale = 0;
  KeyMask mask;
  Sizes widths;  // of q, k and v in the projection
};

absl::Status CheckWidths(ContribBody& b, const Sizes& weights, PackedAttention& p) {
  p.widths = b.IntList("qkv_hidden_sizes");
  const int64_t all = weights[1];
  if (p.widths.empty()) {
    ANEMONE_RETURN_IF_ERROR(
        b.Need(all % 3 == 0, "the width of the weights is not a multiple of 3, for q, k and v"));
    p.widths = {all / 3, all / 3, all / 3};
  }
  ANEMONE_RETURN_IF_ERROR(b.Need(p.widths.size() == 3 && p.widths[0] == p.widths[1],
                                 "qkv_hidden_sizes: want three sizes, the first two equal"));
  int64_t left = all;
  for (int64_t width : p.widths) {
    ANEMONE_RETURN_IF_ERROR(b.Need(0 < width && width <= left && width % p.heads == 0,
                                   "the hidden size is not a multiple of num_heads"));
    left -= width;
  }
  p.size = p.widths[0] / p.heads;
  p.v_size = p.widths[2] / p.heads;
  return b.Need(left == 0, "the weights are wider than q, k and v");
}

absl::Status CheckPast(ContribBody& b, const PackedInputs& in, PackedAttention& p) {
  if (!b.Has(in.past)) {
    return b.Need(p.size == p.v_size || !b.Makes(1),
                  "the output present requires equal head sizes of k and v");
  }
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Makes(1), "past is given, but present is not an output"));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes past, b.DimsOf(in.past, {5}));
  p.past = past[3];
  return b.Need(p.size == p.v_size && past == Sizes{2, p.batch, p.heads, p.past, p.size},
                "past has an unexpected shape");
}

// The checks that both operators share; input `type_of` has the type of the computation.
absl::StatusOr<PackedAttention> CheckPacked(ContribBody& b, const PackedInputs& in,
                                            size_t type_of) {
  PackedAttention p;
  ANEMONE_ASSIGN_OR_RETURN(p.type, b.FloatTypeOf(type_of));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes x, b.DimsOf(0, {3}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes weights, b.DimsOf(1, {2}));
  p.batch = x[0];
  p.sequence = x[1];
  p.heads = b.Int("num_heads", 0);
  ANEMONE_RETURN_IF_ERROR(b.Need(p.heads > 0, "num_heads: want at least 1"));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(x[2] == weights[0], "the shape of the weights does not match the input"));
  ANEMONE_RETURN_IF_ERROR(CheckWidths(b, weights, p));
  if (b.Has(2)) {
    ANEMONE_ASSIGN_OR_RETURN(const Sizes bias, b.DimsOf(2, {1}));
    ANEMONE_RETURN_IF_ERROR(
        b.Need(bias[0] == weights[1], "the size of the bias does not match the weights"));
  }
  ANEMONE_RETURN_IF_ERROR(CheckPast(b, in, p));
  p.scale = ScaleOr(b.Float("scale", 0), p.size);
  p.mask = {.input = in.mask,
            .batch = p.batch,
            .queries = p.sequence,
            .past = p.past,
            .keys = p.past + p.sequence,
            .causal = b.Int("unidirectional", 0) == 1,
            .fill = b.Float("mask_filter_value", -10000),
            .type = p.type};
  ANEMONE_RETURN_IF_ERROR(CheckMask(b, /*is_attention=*/true, p.mask));
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Int("do_rotary", 0) == 0, "do_rotary is not supported"));
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Int("past_present_share_buffer", 0) == 0,
                                 "past_present_share_buffer is not supported"));
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  if (!in.added || !b.Has(*in.added)) return p;
  ANEMONE_RETURN_IF_ERROR(
      b.Need(p.past == 0 && !b.Has(in.past), "past together with attention_bias is not supported"));
  ANEMONE_RETURN_IF_ERROR(CheckAdded(b, *in.added, p.batch, p.heads, p.sequence, p.mask.keys));
  return p;
}

absl::Status EmitPacked(ContribBody& b, const PackedInputs& in, const PackedAttention& p, ValueId x,
                        ValueId weights) {
  const ValueId all = b.Plus(b.Emit("MatMul", {x, weights}), b.input(2));
  std::vector<ValueId> parts = b.Split(all, 2, p.widths);
  for (size_t i = 0; i < 3; ++i) {
    parts[i] = ToHeads(b, parts[i], {p.batch, p.sequence, p.widths[i]}, p.heads);
  }
  AttentionForm form{.type = p.type, .q = parts[0], .k = parts[1], .v = parts[2]};
  form.k_dims = {p.batch, p.heads, p.mask.keys, p.size};
  form.v_dims = {p.batch, p.heads, p.mask.keys, p.v_size};
  if (b.Has(in.past)) {
    for (auto [part, number] : {std::pair(&form.k, int64_t{0}), std::pair(&form.v, int64_t{1})}) {
      const ValueId number_of = b.Constant(Tensor::Int64s({}, {number}));
      *part = b.Concat({b.Gather(b.input(in.past), 0, number_of), *part}, 2);
    }
  }
  if (b.Makes(1)) {
    const ValueId front = b.Ints({0});
    ANEMONE_RETURN_IF_ERROR(b.Give(
        1,
        b.Concat({b.Emit("Unsqueeze", {form.k, front}), b.Emit("Unsqueeze", {form.v, front})}, 0)));
  }
  form.scale = p.scale;
  if (in.added) form.masks.push_back(b.input(*in.added));
  form.masks.push_back(EmitMask(b, p.mask));
  const ValueId y = Attended(b, form);
  return b.Give(0, FromHeads(b, y, {p.batch, p.sequence, p.widths[2]}));
}

struct MultiHead {
  DataType type = DataType::kFloat;
  int64_t heads = 0, size = 0, v_size = 0, batch = 0, queries = 0, past = 0;
  int64_t fresh = 0;  // number of new keys, without the past
  enum class Layout { kSeparate, kPackedKv, kPackedQkv, kHeads } layout = Layout::kSeparate;
  float scale = 0;
  KeyMask mask;
};

// The shapes of query, key and value, in each of the four layouts.
absl::Status CheckLayout(ContribBody& b, MultiHead& m) {
  ANEMONE_ASSIGN_OR_RETURN(const Sizes q, b.DimsOf(0, {3, 5}));
  m.batch = q[0];
  m.queries = m.fresh = q[1];
  if (q.size() == 5) {
    m.layout = MultiHead::Layout::kPackedQkv;
    m.size = m.v_size = q[4];
    return b.Need(!b.Has(1) && !b.Has(2) && q[2] == m.heads && q[3] == 3,
                  "packed q, k and v have an unexpected shape");
  }
  ANEMONE_RETURN_IF_ERROR(
      b.Need(q[2] > 0 && q[2] % m.heads == 0, "the hidden size is not a multiple of num_heads"));
  m.size = m.v_size = q[2] / m.heads;
  ANEMONE_ASSIGN_OR_RETURN(const Sizes k, b.DimsOf(1, {3, 4, 5}));
  m.fresh = k[k.size() == 4 ? 2 : 1];
  if (k.size() == 5) {
    m.layout = MultiHead::Layout::kPackedKv;
    return b.Need(!b.Has(2) && !b.Has(3) && k == Sizes{m.batch, m.fresh, m.heads, 2, m.size},
                  "packed k and v have an unexpected shape");
  }
  ANEMONE_ASSIGN_OR_RETURN(const Sizes v, b.DimsOf(2, {k.size()}));
  if (k.size() == 4) {
    m.layout = MultiHead::Layout::kHeads;
    m.v_size = v[3];
    return b.Need(k == Sizes{m.batch, m.heads, m.fresh, m.size} &&
                      v == Sizes{m.batch, m.heads, m.fresh, m.v_size},
                  "k and v, given by head, have an unexpected shape");
  }
  m.v_size = v[2] / m.heads;
  return b.Need(k == Sizes{m.batch, m.fresh, q[2]} &&
                    v == Sizes{m.batch, m.fresh, m.v_size * m.heads} && m.v_size > 0,
                "k and v have an unexpected shape");
}

absl::Status CheckMultiHeadPast(ContribBody& b, MultiHead& m) {
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Has(6) == b.Has(7), "only one of past_key and past_value is given"));
  if (!b.Has(6)) return absl::OkStatus();
  // Without both outputs ONNX Runtime's kernel ignores the past.
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Makes(1) && b.Makes(2), "past is given, but present is not an output"));
  ANEMONE_RETURN_IF_ERROR(b.Need(m.layout != MultiHead::Layout::kHeads,
                                 "past together with k and v by head is not supported"));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes k, b.DimsOf(6, {4}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes v, b.DimsOf(7, {4}));
  m.past = k[2];
  return b.Need(k == Sizes{m.batch, m.heads, m.past, m.size} &&
                    v == Sizes{m.batch, m.heads, m.past, m.v_size},
                "past has an unexpected shape");
}

absl::StatusOr<MultiHead> CheckMultiHead(ContribBody& b) {
  MultiHead m;
  ANEMONE_ASSIGN_OR_RETURN(m.type, b.FloatTypeOf(0));
  m.heads = b.Int("num_heads", 0);
  ANEMONE_RETURN_IF_ERROR(b.Need(m.heads > 0, "num_heads: want at least 1"));
  ANEMONE_RETURN_IF_ERROR(CheckLayout(b, m));
  ANEMONE_RETURN_IF_ERROR(b.Need(m.size > 0, "the head size is 0"));
  ANEMONE_RETURN_IF_ERROR(CheckMultiHeadPast(b, m));
  ANEMONE_RETURN_IF_ERROR(b.Need(!b.Has(8) && !b.Has(9),
                                 "past_sequence_length and cache_indirection are not supported"));
  ANEMONE_RETURN_IF_ERROR(b.Need(!b.Makes(3), "the attention scores are an output"));
  if (b.Has(3)) {
    ANEMONE_ASSIGN_OR_RETURN(const Sizes bias, b.DimsOf(3, {1}));
    ANEMONE_RETURN_IF_ERROR(b.Need(bias[0] == m.heads * (2 * m.size + m.v_size),
                                   "the size of the bias does not match q, k and v"));
  }
  m.scale = ScaleOr(b.Float("scale", 0), m.size);
  m.mask = {.input = 4,
            .batch = m.batch,
            .queries = m.queries,
            .past = m.past,
            .keys = m.past + m.fresh,
            .causal = b.Int("unidirectional", 0) == 1,
            .fill = b.Float("mask_filter_value", -10000),
            .type = m.type};
  // ONNX Runtime does not apply the causal mask to the last query. That changes results only if
  // the numbers of keys and queries differ.
  ANEMONE_RETURN_IF_ERROR(
      b.Need(!m.mask.causal || m.queries == m.fresh,
             "unidirectional with different numbers of queries and keys is not supported"));
  ANEMONE_RETURN_IF_ERROR(CheckMask(b, /*is_attention=*/false, m.mask));
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  if (b.Has(5)) {
    ANEMONE_RETURN_IF_ERROR(CheckAdded(b, 5, m.batch, m.heads, m.queries, m.mask.keys));
  }
  return m;
}

// One of q, k and v from a packed tensor: element `number` of axis 3. The result is
// batch x sequence x heads x size.
ValueId Picked(ContribBody& b, ValueId packed, int64_t number) {
  return b.Gather(packed, 3, b.Constant(Tensor::Int64s({}, {number})));
}

// Emits q, k and v split into heads.
void EmitHeads(ContribBody& b, const MultiHead& m, AttentionForm& form) {
  using Layout = MultiHead::Layout;
  ValueId parts[3] = {b.input(0), b.input(1), b.input(2)};
  const int64_t widths[3] = {m.heads * m.size, m.heads * m.size, m.heads * m.v_size};
  const int64_t lengths[3] = {m.queries, m.fresh, m.fresh};
  std::vector<ValueId> biases(3, kNone);
  if (b.Has(3)) biases = b.Split(b.input(3), 0, {widths[0], widths[1], widths[2]});
  for (int i = 0; i < 3; ++i) {
    const Sizes flat = {m.batch, lengths[i], widths[i]};
    if (i > 0 && m.layout == Layout::kHeads) continue;
    const bool packed = m.layout == Layout::kPackedQkv || (i > 0 && m.layout == Layout::kPackedKv);
    if (packed) {
      const int first = m.layout == Layout::kPackedKv ? 1 : 0;
      parts[i] = b.Reshape(Picked(b, b.input(first), i - first), flat);
    }
    parts[i] = ToHeads(b, b.Plus(parts[i], biases[i]), flat, m.heads);
  }
  form.q = parts[0];
  form.k = parts[1];
  form.v = parts[2];
}

}  // namespace

absl::Status ExpandAttention(ContribBody& b) {
  ANEMONE_RETURN_IF_ERROR(b.Need(!b.Has(6), "past_sequence_length is not supported"));
  ANEMONE_ASSIGN_OR_RETURN(const PackedAttention p, CheckPacked(b, kAttention, 0));
  return EmitPacked(b, kAttention, p, b.input(0), b.input(1));
}

// The product of the integers minus their zero points is exact and scaled afterwards. This equals
// the product of the dequantized values.
absl::Status ExpandQAttention(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(const PackedAttention p, CheckPacked(b, kQuantized, 3));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes weights, b.DimsOf(1, {2}));
  for (size_t i : {size_t{3}, size_t{4}, size_t{6}, size_t{7}}) {
    if (!b.Has(i)) continue;
    ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(i, {0, 1}));
    const bool per_column = i == 4 || i == 7;
    ANEMONE_RETURN_IF_ERROR(
        b.Need(dims.empty() || dims[0] == 1 || (per_column && dims[0] == weights[1]),
               "a scale or zero point has an unexpected shape"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const Tensor* known, b.Known(1));
  ANEMONE_RETURN_IF_ERROR(b.Need(known != nullptr, "the weights are not constant"));
  ValueId x = kNone;
  {
    const ContribBody::Aside aside(b, "input");
    std::vector<ValueId> inputs = {b.input(0), b.Reshape(b.input(3), {})};
    if (b.Has(6)) inputs.push_back(b.Reshape(b.input(6), {}));
    x = b.Emit("DequantizeLinear", std::move(inputs));
  }
  ValueId w = b.Widened(b.input(1), p.type);
  if (b.Has(7)) w = b.Emit("Sub", {w, b.Widened(b.input(7), p.type)});
  w = b.Emit("Mul", {w, b.input(4)});
  return EmitPacked(b, kQuantized, p, x, w);
}

absl::Status ExpandMultiHeadAttention(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(const MultiHead m, CheckMultiHead(b));
  AttentionForm form{.type = m.type};
  EmitHeads(b, m, form);
  if (b.Has(6)) {
    form.k = b.Concat({b.input(6), form.k}, 2);
    form.v = b.Concat({b.input(7), form.v}, 2);
  }
  ANEMONE_RETURN_IF_ERROR(b.Give(1, form.k));
  ANEMONE_RETURN_IF_ERROR(b.Give(2, form.v));
  form.k_dims = {m.batch, m.heads, m.mask.keys, m.size};
  form.v_dims = {m.batch, m.heads, m.mask.keys, m.v_size};
  form.scale = m.scale;
  form.masks = {b.input(5), EmitMask(b, m.mask)};
  const ValueId y = Attended(b, form);
  return b.Give(0, FromHeads(b, y, {m.batch, m.queries, m.heads * m.v_size}));
}

}  // namespace anemone
