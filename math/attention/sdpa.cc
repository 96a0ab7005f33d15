#include "math/attention/sdpa.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "math/attention/attention_block.h"
#include "math/attention/hidden_keys.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/attention/sdpa.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/gemm/gemm-inl.h"
#include "math/reduce/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The destination of a tile of scores: rows of floats, `row_step` apart, written in whole vectors.
// RegisterTile() uses it like a HalfTile.
struct ScoreTile {
  float* to = nullptr;
  int64_t row_step = 0;
  const Half* mask = nullptr;  // or null
  int64_t mask_step = 0;
  float scale = 1.0f;
  int64_t rows = 0, columns = 0;

  ScoreTile From(int64_t row, int64_t column) const {
    return {to + row * row_step + column,
            row_step,
            mask == nullptr ? nullptr : mask + row * mask_step + column,
            mask_step,
            scale,
            rows - row,
            columns - column};
  }
  bool Holds(int64_t of_rows, int64_t of_columns) const {
    return of_rows <= rows && of_columns <= columns;
  }
  template <bool kWhole, int kRows, int kVectors>
  HWY_INLINE void Store(const VF (&sums)[kRows][kVectors]) const {
    const DF df;
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      if (!kWhole && r >= rows) return;
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        const int64_t column = v * kLanes;
        VF score = hn::Mul(RoundHalf(sums[r][v]), hn::Set(df, scale));
        if (mask != nullptr) {
          const Half* at = mask + r * mask_step + column;
          const int64_t rest = kWhole ? kLanes : columns - column;
          score = RoundHalf(hn::Add(score, rest >= kLanes ? LoadHalf(at) : LoadHalfN(at, rest)));
        }
        hn::StoreU(score, df, to + r * row_step + column);
      }
    }
  }
};

// The tile of all scores of a block; `row_step` covers whole panels.
HWY_INLINE ScoreTile ScoresOf(const AttentionBlock& block, float* scores, int64_t row_step) {
  return {scores, row_step, block.mask, block.mask_step, block.scale, block.queries, block.keys};
}

// Packs up to 8 rows of softmax weights as panels of A, each row multiplied by its factor.
HWY_INLINE void PackScores(const float* scores, int64_t row_step, const float* factors,
                           int64_t rows, int64_t depth, float* panels) {
  const DF df;
  for (int64_t p = 0; p < rows; p += kPanelRows, panels += kPanelRows * depth) {
    const float* from = scores + p * row_step;
    const float* factor = factors + p;
    const int64_t lines = HWY_MIN(rows - p, kPanelRows);
    for (int64_t k = 0; k < depth; k += kLanes) {
      const auto line = [&](int64_t i) HWY_ATTR {  // whole vectors: rows of scores are whole panels
        if (i >= lines) return hn::Zero(df);
        return hn::Mul(hn::LoadU(df, from + i * row_step + k), hn::Set(df, factor[i]));
      };
      StoreLines(line(0), line(1), line(2), line(3), depth - k, panels + k * kPanelRows);
    }
  }
}

// Computes the scores of a block of queries as a product with packed keys: `count` keys, whose
// scores begin at column `at`. Columns behind them, of a whole panel, are overwritten.
HWY_INLINE void MultiplyKeys(const AttentionBlock& block, const ScoreTile& scores, const Half* k,
                             int64_t k_step, int64_t count, int64_t at) {
  GemmOperands qk;
  qk.m = block.queries, qk.k = block.dim, qk.n = count;
  qk.a = block.q, qk.a_row = block.q_step, qk.a_column = 1;
  qk.b = k, qk.b_row = 1, qk.b_column = k_step;
  const int64_t step = ColumnsOf(block.dim);
  for (int64_t key = 0; key < count; key += step) {
    const int64_t keys = HWY_MIN(count - key, step);
    MultiplyPanels(
        block.queries, keys, block.dim, HWY_MIN(block.dim, kBlockDepth),
        [&](int64_t first, int64_t depth, float* b)
            HWY_ATTR { PackColumns(qk, first, depth, key, keys, b); },
        [&](int64_t row, int64_t rows, int64_t first, int64_t depth, float* a)
            HWY_ATTR { PackRows(qk, row, rows, first, depth, a); },
        [&](int64_t row, int64_t, int64_t column, int64_t)
            HWY_ATTR { return scores.From(row, at + key + column); },
        [](const float*, int64_t, int64_t, int64_t, int64_t) HWY_ATTR {},
        [](int64_t, int64_t, int64_t, int64_t) HWY_ATTR { return Ahead(); });
  }
}

HWY_INLINE void MultiplyValues(const AttentionBlock& block, const ScoreTile& scores,
                               const float* factors) {
  GemmOperands pv;
  pv.m = block.queries, pv.k = block.keys, pv.n = block.value_dim;
  pv.b_column = 1;
  pv.c = block.y, pv.c_row = block.y_step, pv.c_column = 1;
  MultiplyPanels(
      block.queries, block.value_dim, block.keys, HWY_MIN(block.keys, kBlockDepth),
      [&](int64_t first, int64_t depth, float* b) HWY_ATTR {
        // The blocks of a sum are those of values in one place: rows from both are brought
        // together.
        pv.b = block.v.Row(first);
        pv.b_row = first < block.v.rows ? block.v.step : block.v.more_step;
        if (first < block.v.rows && first + depth > block.v.rows) {
          Half* rows = ThreadScratch<Half>(ScratchUse::kRow, depth * block.value_dim);
          for (int64_t i = 0; i < depth; ++i) {
            std::memcpy(rows + i * block.value_dim, block.v.Row(first + i),
                        block.value_dim * sizeof(Half));
          }
          pv.b = rows, pv.b_row = block.value_dim;
        }
        PackColumns(pv, 0, depth, 0, block.value_dim, b);
      },
      [&](int64_t row, int64_t rows, int64_t first, int64_t depth, float* a) HWY_ATTR {
        PackScores(scores.to + row * scores.row_step + first, scores.row_step, factors + row, rows,
                   depth, a);
      },
      [&](int64_t row, int64_t rows, int64_t column, int64_t columns)
          HWY_ATTR { return PlaceTile(pv, row, rows, column, columns); },
      [](const float*, int64_t, int64_t, int64_t, int64_t) HWY_ATTR {},
      [](int64_t, int64_t, int64_t, int64_t) HWY_ATTR { return Ahead(); });
}

// Computes the scores of a single query, as in a step of a decoder. Keys and values are read once,
// in place, because packing them would cost more than the products.
HWY_INLINE void DotKeys(const AttentionBlock& block, const ScoreTile& scores) {
  const DF df;
  float* q = ThreadScratch<float>(ScratchUse::kRow, block.dim);
  float* sums = ThreadScratch<float>(ScratchUse::kTile, kPanelColumns);
  WidenRun(block.q, q, block.dim);
  for (int64_t key = 0; key < block.keys; key += kPanelColumns) {
    const int64_t keys = HWY_MIN(block.keys - key, kPanelColumns);
    for (int64_t i = 0; i < keys; ++i) {
      const Half* k = block.k.Row(key + i);
      sums[i] = FoldFixed(
          block.dim, 0.0f,
          [&](int64_t d) HWY_ATTR { return hn::Mul(hn::LoadU(df, q + d), LoadHalf(k + d)); },
          [&](int64_t d, int64_t rest)
              HWY_ATTR { return hn::Mul(LoadFloatN(q + d, rest), LoadHalfN(k + d, rest)); },
          [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
    }
    for (int64_t i = 0; i < keys; i += kLanes) {
      const VF sum[1][1] = {{hn::LoadU(df, sums + i)}};
      scores.From(0, key + i).Store<false>(sum);
    }
  }
}

// Computes kVectors vectors of y from element d on, or `rest` elements of one vector, with the sums
// in registers.
template <int kVectors>
HWY_INLINE void SumColumns(const AttentionBlock& block, const float* scores, float factor,
                           int64_t d, int64_t rest = kLanes) {
  const DF df;
  VF sum[kVectors];
  HWY_UNROLL(4)
  for (int i = 0; i < kVectors; ++i) sum[i] = hn::Zero(df);
  for (int64_t key = 0; key < block.keys; ++key) {
    const VF weight = hn::Set(df, scores[key] * factor);
    const Half* v = block.v.Row(key) + d;
    HWY_UNROLL(4)
    for (int i = 0; i < kVectors; ++i) {
      const VF value = rest == kLanes ? LoadHalf(v + i * kLanes) : LoadHalfN(v, rest);
      sum[i] = hn::MulAdd(weight, value, sum[i]);
    }
  }
  if (rest < kLanes) return StoreHalfN(sum[0], block.y + d, rest);
  HWY_UNROLL(4)
  for (int i = 0; i < kVectors; ++i) StoreHalf(sum[i], block.y + d + i * kLanes);
}

HWY_INLINE void SumValues(const AttentionBlock& block, const float* scores, float factor) {
  int64_t d = 0;
  for (; d + 4 * kLanes <= block.value_dim; d += 4 * kLanes) {
    SumColumns<4>(block, scores, factor, d);
  }
  for (; d < block.value_dim; d += kLanes) {
    SumColumns<1>(block, scores, factor, d, HWY_MIN(block.value_dim - d, kLanes));
  }
}

void ComputeAttention(const AttentionBlock& block) {
  // The last panel of each of the two parts may be wider than its keys.
  const int64_t row_step = RoundUp(block.keys, kPanelColumns) + kPanelColumns;
  float* memory = ThreadScratch<float>(ScratchUse::kScores, block.queries * (row_step + 1));
  const ScoreTile scores = ScoresOf(block, memory, row_step);
  float* factors = memory + block.queries * row_step;
  const bool one = block.only_one;
  if (one) {
    DotKeys(block, scores);
  } else {
    MultiplyKeys(block, scores, block.k.first, block.k.step, block.k.rows, 0);
    ScoreTile more = scores;
    if (more.mask != nullptr) more.mask += block.mask_more - block.k.rows;
    MultiplyKeys(block, more, block.k.more, block.k.more_step, block.keys - block.k.rows,
                 block.k.rows);
  }
  for (int64_t i = 0; i < block.queries; ++i) {
    const float sum = ExpRow(scores.to + i * row_step, block.keys,
                             [](VF x, VF max) HWY_ATTR { return ExpNonPositive(Shifted(x, max)); });
    factors[i] = 1.0f / sum;
  }
  one ? SumValues(block, scores.to, factors[0]) : MultiplyValues(block, scores, factors);
}

float LargestSquares(const Half* rows, int64_t count, int64_t step, int64_t dim) {
  float most = 0, all = 0;
  for (int64_t row = 0; row < count; ++row, rows += step) {
    const float sum = FoldFixed(
        dim, 0.0f,
        [&](int64_t d) HWY_ATTR {
          const VF x = LoadHalf(rows + d);
          return hn::Mul(x, x);
        },
        [&](int64_t d, int64_t rest) HWY_ATTR {
          const VF x = LoadHalfN(rows + d, rest);
          return hn::Mul(x, x);
        },
        [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
    most = HWY_MAX(most, sum);
    all += sum;
  }
  return std::isfinite(all) ? most : HUGE_VALF;  // also if a NaN is not the maximum
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeAttention);
HWY_EXPORT(LargestSquares);

float LargestSquares(const Half* rows, int64_t count, int64_t step, int64_t dim) {
  return HWY_DYNAMIC_DISPATCH(LargestSquares)(rows, count, step, dim);
}

namespace {

// Divides the queries into tasks whose scores take at most half a megabyte. Each task packs keys
// and values.
Cut CutQueries(const SdpaShape& shape) {
  constexpr int64_t kScoreFloats = 131072, kMostQueries = 256;
  const int64_t most = std::clamp(kScoreFloats / shape.keys, kTileRows, kMostQueries);
  return CutBlocks({shape.queries, 1}, {most, 1}, {kTileRows, 1}, {.b_rows = 4, .a_columns = 0},
                   shape.batch * shape.heads, ThreadCount());
}

HeadRows RowsOf(const SdpaParts& parts, int64_t batch, int64_t head) {
  const SdpaRows &a = parts.first, &b = parts.more;
  HeadRows rows = {.rows = a.rows, .step = a.row_step, .more_step = b.row_step};
  rows.first = a.data + batch * a.batch_step + head * a.head_step;
  if (b.rows > 0) rows.more = b.data + batch * b.batch_step + head * b.head_step;
  return rows;
}

}  // namespace

void Sdpa(const SdpaShape& shape, float scale, absl::Span<const Half> q, absl::Span<const Half> k,
          absl::Span<const Half> v, const SdpaMask& mask, absl::Span<Half> y) {
  const SdpaShape& s = shape;
  assert(static_cast<int64_t>(k.size()) == s.batch * s.keys * s.heads * s.dim);
  assert(static_cast<int64_t>(v.size()) == s.batch * s.keys * s.heads * s.value_dim);
  const auto whole = [&](absl::Span<const Half> x, int64_t dim) {
    const int64_t row = s.heads * dim;
    return SdpaParts{.first = {x.data(), s.keys, row, dim, s.keys * row}, .more = {}};
  };
  Sdpa(shape, scale, q, whole(k, s.dim), whole(v, s.value_dim), mask, y);
}

void Sdpa(const SdpaShape& shape, float scale, absl::Span<const Half> q, const SdpaParts& k,
          const SdpaParts& v, const SdpaMask& mask, absl::Span<Half> y) {
  const SdpaShape& s = shape;
  assert(static_cast<int64_t>(q.size()) == s.batch * s.queries * s.heads * s.dim);
  assert(k.first.rows + k.more.rows == s.keys && v.first.rows + v.more.rows == s.keys);
  assert(static_cast<int64_t>(y.size()) == s.batch * s.queries * s.heads * s.value_dim);
  const int64_t mask_head = mask.heads == 1 ? 0 : s.keys;
  const int64_t mask_query = mask.queries == 1 ? 0 : mask.heads * s.keys;
  const int64_t mask_batch = mask.batch == 1 ? 0 : mask.queries * mask.heads * s.keys;
  const KeyRange hidden = HiddenKeys(shape, scale, q, k, v, mask);
  const SdpaParts keys = WithoutRows(k, hidden), values = WithoutRows(v, hidden);
  const Cut cut = CutQueries(shape);
  const int64_t blocks = cut.blocks();
  const int64_t cost = cut.largest().rows * s.keys * (s.dim + s.value_dim) / 16;
  ParallelForItems(s.batch * s.heads * blocks, cost, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Part queries = cut.Rows(task % blocks);
      const int64_t first = queries.first;
      const int64_t head = task / blocks % s.heads;
      const int64_t batch = task / blocks / s.heads;
      AttentionBlock block;
      block.queries = queries.size();
      block.keys = s.keys - hidden.size(), block.dim = s.dim, block.value_dim = s.value_dim;
      block.only_one = s.queries == 1;
      block.q_step = s.heads * s.dim;
      block.y_step = s.heads * s.value_dim;
      block.q = q.data() + (batch * s.queries + first) * block.q_step + head * s.dim;
      block.k = RowsOf(keys, batch, head);
      block.v = RowsOf(values, batch, head);
      block.y = y.data() + (batch * s.queries + first) * block.y_step + head * s.value_dim;
      block.mask = mask.values.empty() ? nullptr
                                       : mask.values.data() + batch * mask_batch +
                                             first * mask_query + head * mask_head;
      block.mask_step = mask_query;
      block.mask_more = keys.first.rows + hidden.size();
      block.scale = scale;
      HWY_DYNAMIC_DISPATCH(ComputeAttention)(block);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
