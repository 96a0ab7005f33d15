// GroupQueryAttention of com.microsoft: causal, with a cache of keys and values.
//
// If all images have the same length, the cache is the past keys followed by the new keys.
// Otherwise seqlens_k, integers known at run time, gives the positions of each image's new keys and
// which keys a query attends to. In ONNX Runtime, output rows of a prompt's padding are undefined
// (its kernel reads scores that it has not written), so they may have any value here.
#include <algorithm>
#include <limits>
#include <optional>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "importer/contrib/attention.h"
#include "importer/contrib/builders.h"
#include "importer/edit.h"
#include "importer/elements.h"

namespace anemone {
namespace {

// Indices of inputs and outputs.
enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kAdded,
  kFirstUnknown
};
enum Output : size_t { kY, kPresentKey, kPresentValue, kScores };

// How the new keys and values are combined with the old ones.
enum class Cache {
  kFresh,   // no old ones
  kBehind,  // appended to the old ones
  kPlaced,  // stored at the positions that seqlens_k gives
  kGap,     // appended to the old ones, of which seqlens_k gives the number that is used
};

struct Grouped {
  DataType type = DataType::kFloat;
  int64_t batch = 0, queries = 0, heads = 0, groups = 0, size = 0;
  int64_t past = 0, present = 0;  // lengths of the cache, before and after
  Cache cache = Cache::kFresh;
  int64_t window = -1;  // the number of keys that a query attends to, with its own; -1: all
  bool rotary = false, interleaved = false;
  int64_t pairs = 0;
  float scale = 0, softcap = 0;

  int64_t keys() const { return cache == Cache::kFresh ? queries : present; }
};

absl::Status CheckQuery(ContribBody& b, Grouped& g) {
  ANEMONE_ASSIGN_OR_RETURN(g.type, b.FloatTypeOf(kQuery));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes q, b.DimsOf(kQuery, {3}));
  g.batch = q[0];
  g.queries = q[1];
  g.heads = b.Int("num_heads", 0);
  g.groups = b.Int("kv_num_heads", 0);
  ANEMONE_RETURN_IF_ERROR(b.Need(0 < g.groups && g.groups <= g.heads && g.heads % g.groups == 0,
                                 "num_heads is not a multiple of kv_num_heads"));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Has(kKey) == b.Has(kValue), "only one of key and value is given"));
  // Rejects huge values of num_heads before the arithmetic below.
  ANEMONE_RETURN_IF_ERROR(
      b.Need(g.heads <= q[2], "the hidden size is not a multiple of num_heads"));
  const int64_t parts = b.Has(kKey) ? g.heads : g.heads + 2 * g.groups;
  g.size = q[2] / parts;
  ANEMONE_RETURN_IF_ERROR(
      b.Need(g.size > 0 && q[2] % parts == 0, "the hidden size is not a multiple of num_heads"));
  for (size_t i : {kKey, kValue}) {
    if (!b.Has(i)) continue;
    ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(i, {3}));
    ANEMONE_RETURN_IF_ERROR(b.Need(dims == Sizes{g.batch, g.queries, g.groups * g.size},
                                   "key and value have an unexpected shape"));
  }
  return b.Need(g.queries > 0, "there are no queries");
}

// The length of the cache after the node: the larger of total_sequence_length and the old length.
// If total_sequence_length is not constant, the length is that of the declared output.
absl::StatusOr<int64_t> PresentOf(ContribBody& b, const Grouped& g, std::optional<int64_t> total) {
  if (total) return std::max(*total, g.past);
  const ValueId present = b.output(kPresentKey);
  if (present != kNone && b.value(present).shape.has_value()) {
    const Shape& shape = *b.value(present).shape;
    if (shape.size() == 4 && shape[2].known()) return shape[2].size;
  }
  return b.Keep("total_sequence_length, and so the length of the cache, is not known");
}

absl::Status CheckCache(ContribBody& b, Grouped& g) {
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Has(kPastKey) == b.Has(kPastValue), "only one of past_key and past_value is given"));
  // Without both outputs ONNX Runtime's kernel ignores the past.
  ANEMONE_RETURN_IF_ERROR(
      b.Need(!b.Has(kPastKey) || (b.Makes(kPresentKey) && b.Makes(kPresentValue)),
             "past is given, but present is not an output"));
  for (size_t i : {kPastKey, kPastValue}) {
    if (!b.Has(i)) continue;
    ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(i, {4}));
    if (i == kPastKey) g.past = dims[2];
    ANEMONE_RETURN_IF_ERROR(
        b.Need(dims == Sizes{g.batch, g.groups, g.past, g.size}, "past has an unexpected shape"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const Tensor* known, b.Known(kTotal));
  std::optional<int64_t> total;
  if (known != nullptr) {
    const auto values = IntsOf(*known, 1);
    ANEMONE_RETURN_IF_ERROR(b.Need(values.has_value() && values->size() == 1 && (*values)[0] > 0,
                                   "total_sequence_length is not one positive number"));
    total = values->front();
  }
  if (g.past == 0 || total == g.queries) {  // a prompt, which ignores an old cache
    g.present = std::max(g.queries, g.past);
    return b.Need(total.value_or(g.queries) == g.queries,
                  "total_sequence_length does not match the number of keys");
  }
  ANEMONE_ASSIGN_OR_RETURN(g.present, PresentOf(b, g, total));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(g.batch == 1 || g.queries == 1,
             "a batch of several sequences with more than one new token each is not supported"));
  // seqlens_k is total_sequence_length - 1 for the longest image; here it is the only image.
  const bool is_full = g.batch == 1 && g.present == g.past + g.queries;
  const Cache full = b.gap_in_caches() ? Cache::kGap : Cache::kBehind;
  g.cache = is_full ? full : Cache::kPlaced;
  return b.Need(g.present == g.past || g.present == g.past + g.queries,
                "the cache has an unsupported length");
}

absl::Status CheckTables(ContribBody& b, Grouped& g) {
  if (!g.rotary) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(const Sizes cos, b.DimsOf(kCos, {2}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes sin, b.DimsOf(kSin, {2}));
  g.pairs = cos[1];
  ANEMONE_RETURN_IF_ERROR(b.Need(cos == sin && 0 < g.pairs && g.pairs <= g.size / 2,
                                 "the cos and sin tables do not match the head size"));
  if (b.Has(kPositions)) {
    ANEMONE_ASSIGN_OR_RETURN(const Sizes positions, b.DimsOf(kPositions, {2}));
    return b.Need(positions == Sizes{g.batch, g.queries} &&
                      b.value(b.input(kPositions)).type == DataType::kInt64,
                  "position_ids has an unexpected shape or type");
  }
  // Rows of a gap have no position.
  return b.Need(g.cache == Cache::kGap || g.keys() <= cos[0],
                "the cos and sin tables are too short");
}

absl::StatusOr<Grouped> CheckGrouped(ContribBody& b) {
  Grouped g;
  ANEMONE_RETURN_IF_ERROR(CheckQuery(b, g));
  ANEMONE_RETURN_IF_ERROR(CheckCache(b, g));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes lengths, b.DimsOf(kLengths, {1}));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(lengths == Sizes{g.batch} && b.value(b.input(kLengths)).type == DataType::kInt32,
             "seqlens_k has an unexpected shape or type"));
  g.scale = ScaleOr(b.Float("scale", 0), g.size);
  g.softcap = b.Float("softcap", 0);
  g.window = b.Int("local_window_size", -1);
  g.rotary = b.Int("do_rotary", 0) == 1;
  g.interleaved = b.Int("rotary_interleaved", 0) == 1;
  ANEMONE_RETURN_IF_ERROR(CheckTables(b, g));
  ANEMONE_RETURN_IF_ERROR(b.Need(g.keys() <= kMostMasked / g.queries, "the mask is too large"));
  ANEMONE_RETURN_IF_ERROR(b.Need(g.window == -1 || (g.window > 0 && g.window <= kMostMasked),
                                 "local_window_size is out of range"));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Int("smooth_softmax", -1) != 1, "smooth_softmax is not supported"));
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Int("causal", 1) == 1, "causal = 0 is not supported"));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Int("sliding_window_cache", 0) == 0, "sliding_window_cache is not supported"));
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Int("qk_output", 0) == 0 && !b.Makes(kScores),
                                 "the attention scores are an output"));
  for (const char* quantized : {"k_quant_type", "v_quant_type"}) {
    ANEMONE_RETURN_IF_ERROR(
        b.Need(b.Text(quantized, "NONE") == "NONE", "a quantized cache is not supported"));
  }
  b.Float("qk_norm_epsilon", 0);  // has no effect without the weights below
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  for (size_t i = kFirstUnknown; i < b.node().inputs.size(); ++i) {
    ANEMONE_RETURN_IF_ERROR(
        b.Need(!b.Has(i), "head_sink, and scales or weights of the heads, are not supported"));
  }
  if (b.Has(kAdded)) {
    ANEMONE_RETURN_IF_ERROR(CheckAdded(b, kAdded, g.batch, g.heads, g.queries, g.keys()));
  }
  return g;
}

// The position of each query, batch x queries of int32, from seqlens_k. Call it within an Aside.
ValueId QueryPositions(ContribBody& b, const Grouped& g) {
  const ValueId last = b.Reshape(b.input(kLengths), {g.batch, 1});
  const int32_t first = static_cast<int32_t>(1 - g.queries);
  const ValueId back = b.Count(DataType::kInt32, g.queries, {1, g.queries});
  const ValueId shift = b.Constant(Tensor::Of<int32_t>(DataType::kInt32, {}, {first}));
  return b.Emit("Add", {b.Emit("Add", {last, shift}), back});
}

// Cosines and sines of the new positions.
Rotation RotationOf(ContribBody& b, const Grouped& g) {
  Rotation rotation{.interleaved = g.interleaved};
  const bool at_run_time = b.Has(kPositions) || g.cache == Cache::kPlaced || g.cache == Cache::kGap;
  if (!at_run_time) {
    const int64_t from = g.cache == Cache::kBehind ? g.past : 0;
    rotation.dims = {1, 1, g.queries, g.pairs};
    rotation.cos = b.Reshape(b.Slice(b.input(kCos), 0, from, from + g.queries), rotation.dims);
    rotation.sin = b.Reshape(b.Slice(b.input(kSin), 0, from, from + g.queries), rotation.dims);
    return WithSigns(b, rotation);
  }
  const ContribBody::Aside aside(b, "positions");
  ValueId at = kNone;
  int64_t images = g.batch;
  if (!b.Has(kPositions)) {
    at = QueryPositions(b, g);
  } else if (g.cache == Cache::kFresh) {  // a prompt continues from the first position
    const ValueId first = b.Slice(b.Slice(b.input(kPositions), 0, 0, 1), 1, 0, 1);
    at = b.Emit("Add", {first, b.Count(DataType::kInt64, g.queries, {1, g.queries})});
    images = 1;
  } else {
    at = b.input(kPositions);
  }
  rotation.dims = {images, 1, g.queries, g.pairs};
  rotation.cos = b.Reshape(b.Gather(b.input(kCos), 0, at), rotation.dims);
  rotation.sin = b.Reshape(b.Gather(b.input(kSin), 0, at), rotation.dims);
  return WithSigns(b, rotation);
}

// True where a query may attend to a new key, by the positions of both: 1 x 1 x queries x keys, of
// which the last `queries` are new.
Tensor SeenByPosition(const Grouped& g, int64_t keys) {
  const int64_t before = keys - g.queries;
  const int64_t window = g.window > 0 ? std::min(g.window, keys) : keys;
  Tensor seen = Tensor::Zeros(DataType::kBool, {1, 1, g.queries, keys});
  for (int64_t i = 0; i < seen.elements(); ++i) {
    const int64_t key = i % keys, query = before + i / keys;
    seen.mutable_data<bool>()[i] = key <= query && key > query - window;
  }
  return seen;
}

// Masks for Cache::kPlaced: `kept` and `fresh` are 1 where an old key is kept and where a new one
// is stored, else 0; `mask` is added to the scores.
struct Places {
  ValueId kept = kNone;   // batch x 1 x present x 1
  ValueId fresh = kNone;  // batch x 1 x present x queries
  ValueId mask = kNone;   // batch x 1 x queries x present
};

Places PlacesOf(ContribBody& b, const Grouped& g) {
  const ContribBody::Aside aside(b, "positions-of-keys");
  const auto type = static_cast<int64_t>(g.type);
  const ValueId at = QueryPositions(b, g);
  const ValueId rows = b.Count(DataType::kInt32, g.present, {1, 1, g.present, 1});
  const ValueId columns = b.Count(DataType::kInt32, g.present, {1, 1, 1, g.present});
  const ValueId by_column = b.Reshape(at, {g.batch, 1, 1, g.queries});
  const ValueId by_row = b.Reshape(at, {g.batch, 1, g.queries, 1});
  const ValueId first = b.Slice(by_column, 3, 0, 1);
  Places places;
  places.kept = b.Emit("Cast", {b.Emit("Less", {rows, first})}, {{"to", type}});
  places.fresh = b.Emit("Cast", {b.Emit("Equal", {rows, by_column})}, {{"to", type}});
  ValueId seen = b.Emit("LessOrEqual", {columns, by_row});
  if (g.window > 0 && g.window < g.present) {
    const auto window = static_cast<int32_t>(g.window);
    const ValueId width = b.Constant(Tensor::Of<int32_t>(DataType::kInt32, {}, {window}));
    seen = b.Emit("And", {seen, b.Emit("Greater", {columns, b.Emit("Sub", {by_row, width})})});
  }
  places.mask = b.Emit("Where", {seen, b.Scalar(g.type, 0), b.Scalar(g.type, LowestOf(g.type))});
  return places;
}

// The mask for Cache::kGap: of the old keys, those before the first query are used.
ValueId MaskWithGap(ContribBody& b, const Grouped& g) {
  const ContribBody::Aside aside(b, "positions-of-keys");
  const ValueId at = b.Reshape(QueryPositions(b, g), {1, 1, g.queries, 1});
  const ValueId columns = b.Count(DataType::kInt32, g.past, {1, 1, 1, g.past});
  ValueId old = b.Emit("Less", {columns, b.Slice(at, 2, 0, 1)});
  if (g.window > 0) {
    const auto window = static_cast<int32_t>(g.window);
    const ValueId width = b.Constant(Tensor::Of<int32_t>(DataType::kInt32, {}, {window}));
    old = b.Emit("And", {old, b.Emit("Greater", {columns, b.Emit("Sub", {at, width})})});
  } else if (g.queries > 1) {
    old = b.Emit("Expand", {old, b.Ints({1, 1, g.queries, g.past})});
  }
  const ValueId seen = b.Concat({old, b.Constant(SeenByPosition(g, g.queries))}, 3);
  // Not LowestOf(): this crosses to the engine, where that of float32 would be infinite.
  return b.Emit("Where", {seen, b.Scalar(g.type, 0), b.Scalar(g.type, fp16::kLowest)});
}

// The mask of keys for queries at known positions; kNone if every query attends to every key.
ValueId FixedMask(ContribBody& b, const Grouped& g) {
  if (g.queries == 1 && (g.window <= 0 || g.window >= g.keys())) return kNone;
  return b.Emit("Where", {b.Constant(SeenByPosition(g, g.keys())), b.Scalar(g.type, 0),
                          b.Scalar(g.type, LowestOf(g.type))});
}

// `value` padded with zeros to the new length of the cache.
ValueId Padded(ContribBody& b, const Grouped& g, ValueId value, int64_t length) {
  if (length == g.present) return value;
  const double zero = 0;
  const Tensor element = FromDoubles(g.type, {}, {zero});
  Tensor zeros =
      Tensor::Fill(g.type, {g.batch, g.groups, g.present - length, g.size}, element.bytes());
  return b.Concat({value, b.Constant(std::move(zeros))}, 2);
}

// The cache including the new keys (or values).
ValueId Cached(ContribBody& b, const Grouped& g, const Places& places, ValueId past,
               ValueId fresh) {
  switch (g.cache) {
    case Cache::kFresh:
      return fresh;
    case Cache::kBehind:
    case Cache::kGap:
      return b.Concat({past, fresh}, 2);
    case Cache::kPlaced:
      break;
  }
  const ValueId kept = b.Emit("Mul", {Padded(b, g, past, g.past), places.kept});
  // One new row is multiplied by its mask; for several rows, each row of `fresh` selects one.
  const char* op = g.queries == 1 ? "Mul" : "MatMul";
  return b.Emit("Add", {kept, b.Emit(op, {places.fresh, fresh})});
}

}  // namespace

absl::Status ExpandGroupQueryAttention(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(const Grouped g, CheckGrouped(b));
  const int64_t q_width = g.heads * g.size, kv_width = g.groups * g.size;
  std::vector<ValueId> parts = {b.input(kQuery), b.input(kKey), b.input(kValue)};
  if (!b.Has(kKey)) parts = b.Split(b.input(kQuery), 2, {q_width, kv_width, kv_width});
  AttentionForm form{.type = g.type, .repeats = g.heads / g.groups};
  form.q = ToHeads(b, parts[0], {g.batch, g.queries, q_width}, g.heads);
  form.k = ToHeads(b, parts[1], {g.batch, g.queries, kv_width}, g.groups);
  form.v = ToHeads(b, parts[2], {g.batch, g.queries, kv_width}, g.groups);
  if (g.rotary) {
    const Rotation rotation = RotationOf(b, g);
    form.q = Rotated(b, form.q, {g.batch, g.heads, g.queries, g.size}, rotation);
    form.k = Rotated(b, form.k, {g.batch, g.groups, g.queries, g.size}, rotation);
  }
  // The query heads of a group are the queries of one head, so that nothing is repeated. Masks of
  // one query fit to each of them.
  const bool joins = g.queries == 1 && form.repeats > 1 && !b.Has(kAdded);
  if (joins) {
    form.q = b.Reshape(form.q, {g.batch, g.groups, form.repeats, g.size});
    form.repeats = 1;
  }
  Places places;
  if (g.cache == Cache::kPlaced) places = PlacesOf(b, g);
  if (g.cache == Cache::kGap) places.mask = MaskWithGap(b, g);
  form.k = Cached(b, g, places, b.input(kPastKey), form.k);
  form.v = Cached(b, g, places, b.input(kPastValue), form.v);
  ANEMONE_RETURN_IF_ERROR(b.Give(kPresentKey, Padded(b, g, form.k, g.keys())));
  ANEMONE_RETURN_IF_ERROR(b.Give(kPresentValue, Padded(b, g, form.v, g.keys())));
  form.k_dims = form.v_dims = {g.batch, g.groups, g.keys(), g.size};
  form.scale = g.scale;
  form.softcap = g.softcap;
  form.masks = {b.input(kAdded), places.mask == kNone ? FixedMask(b, g) : places.mask};
  const ValueId y = Attended(b, form);
  const Sizes y_dims = {g.batch, g.queries, q_width};
  return b.Give(kY, joins ? b.Reshape(y, y_dims) : FromHeads(b, y, y_dims));
}

}  // namespace anemone
