#include "math/reduce/normalize.h"

#include <algorithm>
#include <cassert>

#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/move/transpose.h"
#include "math/reduce/normalized_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/reduce/normalize.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Widens rows that follow each other, subtracts from each its mean if `subtract_mean`, and sets
// sums[i] to the sum of squares of the result. Each step is done for all rows before the next one,
// because a sum takes longer to arrive than to add.
HWY_INLINE void CenterRows(const Half* x, int64_t rows, int64_t count, bool subtract_mean,
                           float* values, float* sums) {
  const DF df;
  WidenRun(x, values, rows * count);
  for (int64_t r = 0; subtract_mean && r < rows; ++r) {
    const float sum = SumFixed(values + r * count, count, [](VF v) HWY_ATTR { return v; });
    sums[r] = sum / static_cast<float>(count);
  }
  for (int64_t r = 0; r < rows; ++r) {
    float* row = values + r * count;
    if (subtract_mean) {
      const VF mean = hn::Set(df, sums[r]);
      int64_t i = 0;
      for (; i + kLanes <= count; i += kLanes) {
        hn::StoreU(hn::Sub(hn::LoadU(df, row + i), mean), df, row + i);
      }
      if (i < count) StoreFloatN(hn::Sub(LoadFloatN(row + i, count - i), mean), row + i, count - i);
    }
    sums[r] = SumFixed(row, count, [](VF v) HWY_ATTR { return hn::Mul(v, v); });
  }
}

// x * factor * gamma + beta, with the first two steps rounded to Half.
HWY_INLINE VF ScaledVector(VF x, VF factor, VF gamma, VF beta) {
  return hn::Add(RoundHalf(hn::Mul(RoundHalf(hn::Mul(x, factor)), gamma)), beta);
}

// `rest` values of a term from element i on, at most a vector. The step is 1, or 0 to repeat the
// first value.
HWY_INLINE VF TermAt(const float* term, int64_t step, int64_t i, int64_t rest) {
  return step == 0 ? hn::Set(DF(), *term) : LoadFloatUpTo(term + i, rest);
}

// y = row * scale * gamma + beta, with each step rounded to Half.
HWY_INLINE void ScaleRow(const float* row, int64_t count, float scale, const float* gamma,
                         int64_t gamma_step, const float* beta, int64_t beta_step, Half* y) {
  const VF factor = hn::Set(DF(), scale);
  const auto scaled = [&](VF x, int64_t i, int64_t rest) HWY_ATTR {
    return ScaledVector(x, factor, TermAt(gamma, gamma_step, i, rest),
                        TermAt(beta, beta_step, i, rest));
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    StoreHalf(scaled(hn::LoadU(DF(), row + i), i, kLanes), y + i);
  }
  if (i < count) {
    StoreHalfN(scaled(LoadFloatN(row + i, count - i), i, count - i), y + i, count - i);
  }
}

// Rows of at most one vector, which stays in a register.
HWY_INLINE void NormalizeShortRows(const NormalizedRows& n) {
  const DF df;
  const int64_t count = n.count;
  const auto has = hn::FirstN(df, static_cast<size_t>(count));
  for (int64_t r = 0; r < n.rows; ++r) {
    const Half* const from = n.x + r * count;
    VF x = count == kLanes ? LoadHalf(from) : LoadHalfN(from, count);
    if (n.subtract_mean) {
      const VF mean = hn::Set(df, SumLanes(x) / static_cast<float>(count));
      x = hn::IfThenElseZero(has, hn::Sub(x, mean));
    }
    const VF factor = hn::Set(df, n.scale.Of(SumLanes(hn::Mul(x, x))));
    x = ScaledVector(x, factor, TermAt(n.gamma + r * n.gamma_row, n.terms->row_stride(1), 0, count),
                     TermAt(n.beta + r * n.beta_row, n.terms->row_stride(2), 0, count));
    Half* const to = n.y + r * count;
    count == kLanes ? StoreHalf(x, to) : StoreHalfN(x, to, count);
  }
}

// `values` has space for RowsTogether() rows.
void NormalizeEachRow(const NormalizedRows& n, float* values) {
  if (n.count <= kLanes && n.terms->rows() == 1) return NormalizeShortRows(n);
  const LoopNest<3>& terms = *n.terms;
  float scales[kMostTogether];
  for (int64_t first = 0, rows; first < n.rows; first += rows) {
    rows = std::min(n.rows - first, RowsTogether(n.count));
    CenterRows(n.x + first * n.count, rows, n.count, n.subtract_mean, values, scales);
    for (int64_t r = 0; r < rows; ++r) scales[r] = n.scale.Of(scales[r]);
    for (int64_t r = 0; r < rows; ++r) {
      const float* const row = values + r * n.count;
      const float* const gamma = n.gamma + (first + r) * n.gamma_row;
      const float* const beta = n.beta + (first + r) * n.beta_row;
      Half* const y = n.y + (first + r) * n.count;
      terms.ForRows(0, terms.rows(), [&](const std::array<int64_t, 3>& at) HWY_ATTR {
        ScaleRow(row + at[0], terms.row_size(), scales[r], gamma + at[1], terms.row_stride(1),
                 beta + at[2], terms.row_stride(2), y + at[0]);
      });
    }
  }
}

// The columns that are normalized together. Their rows are kept with this step.
constexpr int64_t kColumns = 32;

// For each of kColumns columns, the sum over `count` rows of map(element), in the order of
// SumFixed().
template <class Map>
void SumColumns(const float* rows, int64_t count, const Map& map, float* sums) {
  const DF df;
  HWY_ALIGN float partial[kPartialSums][kColumns];
  for (int64_t p = 0; p < kPartialSums; ++p) {
    for (int64_t i = 0; i < kColumns; i += kLanes) {
      VF sum = hn::Zero(df);
      for (int64_t k = p; k < count; k += kPartialSums) {
        sum = hn::Add(sum, map(hn::LoadU(df, rows + k * kColumns + i)));
      }
      hn::StoreU(sum, df, partial[p] + i);
    }
  }
  for (int64_t half = kPartialSums / 2; half > 0; half /= 2) {
    for (int64_t p = 0; p < half; ++p) {
      for (int64_t i = 0; i < kColumns; i += kLanes) {
        const VF upper = hn::LoadU(df, partial[p + half] + i);
        hn::StoreU(hn::Add(hn::LoadU(df, partial[p] + i), upper), df, partial[p] + i);
      }
    }
  }
  std::copy_n(partial[0], kColumns, sums);
}

// CenterRows() for `columns` columns of a matrix whose rows are `step` apart. `rows` gets count *
// kColumns floats, `sums` kColumns sums of squares.
void CenterColumns(const Half* x, int64_t step, int64_t count, int64_t columns, bool subtract_mean,
                   float* rows, float* sums) {
  const DF df;
  for (int64_t k = 0; k < count; ++k) {
    float* row = rows + k * kColumns;
    WidenRun(x + k * step, row, columns);
    std::fill(row + columns, row + kColumns, 0.0f);
  }
  if (subtract_mean) {
    SumColumns(
        rows, count, [](VF v) HWY_ATTR { return v; }, sums);
    for (int64_t i = 0; i < kColumns; ++i) sums[i] /= static_cast<float>(count);
    for (int64_t k = 0; k < count; ++k) {
      for (int64_t i = 0; i < kColumns; i += kLanes) {
        float* at = rows + k * kColumns + i;
        hn::StoreU(hn::Sub(hn::LoadU(df, at), hn::LoadU(df, sums + i)), df, at);
      }
    }
  }
  SumColumns(
      rows, count, [](VF v) HWY_ATTR { return hn::Mul(v, v); }, sums);
}

// ScaleRow() for the columns of CenterColumns(): element k of gamma and beta is for row k.
void ScaleColumns(const float* rows, int64_t count, int64_t columns, const float* scales,
                  const float* gamma, int64_t gamma_step, const float* beta, int64_t beta_step,
                  Half* y, int64_t step) {
  const DF df;
  for (int64_t k = 0; k < count; ++k) {
    const VF g = hn::Set(df, gamma[k * gamma_step]), b = hn::Set(df, beta[k * beta_step]);
    for (int64_t i = 0; i < columns; i += kLanes) {
      const VF value =
          ScaledVector(hn::LoadU(df, rows + k * kColumns + i), hn::LoadU(df, scales + i), g, b);
      Half* to = y + k * step + i;
      if (i + kLanes <= columns) {
        StoreHalf(value, to);
      } else {
        StoreHalfN(value, to, columns - i);
      }
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(CenterColumns);
HWY_EXPORT(NormalizeEachRow);
HWY_EXPORT(ScaleColumns);

namespace {

// From this number of neighbors on, columns are normalized where they are, unless their rows would
// take more than a megabyte.
constexpr int64_t kFewColumns = 8, kMostRows = 8192;

NormalizeTerm OrConstant(const NormalizeTerm& term, const float* constant) {
  return term.values.empty() ? NormalizeTerm{absl::MakeSpan(constant, 1), {1, 1, 1, 1, 1}} : term;
}

// The step of a term along the axes, which are normalized: 0 if it is one number, 1 if it has a
// value for each element; -1 if it varies along other axes.
int64_t StepOf(const NormalizeTerm& term, AxisSet axes, int64_t count) {
  if (term.values.size() == 1) return 0;
  for (int i = 0; i < kRank; ++i) {
    if (!axes.Has(i) && term.extents[i] != 1) return -1;
  }
  return static_cast<int64_t>(term.values.size()) == count ? 1 : -1;
}

// Normalizes rows. `axes` must be the innermost axes; a row has their elements for one index of the
// other axes.
void NormalizeRows(const Extents& extents, AxisSet axes, bool subtract_mean, RowScale scale,
                   const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                   absl::Span<Half> y) {
  Extents row_extents, outer_extents;
  for (int i = 0; i < kRank; ++i) {
    row_extents[i] = axes.Has(i) ? extents[i] : 1;
    outer_extents[i] = axes.Has(i) ? 1 : extents[i];
  }
  const Strides gamma_strides = RepeatingStrides(gamma.extents);
  const Strides beta_strides = RepeatingStrides(beta.extents);
  const int64_t count = Count(row_extents);
  const LoopNest<3> terms(row_extents, {DenseStrides(row_extents), gamma_strides, beta_strides});
  const LoopNest<2> outer(outer_extents, {gamma_strides, beta_strides});
  const int64_t together = outer.row_size();  // rows whose terms are evenly spaced
  ParallelForItems(Count(outer_extents), count * 4, [&](int64_t begin, int64_t end) {
    float* values = ThreadScratch<float>(ScratchUse::kRow, count * RowsTogether(count));
    NormalizedRows n = {.count = count,
                        .subtract_mean = subtract_mean,
                        .scale = scale,
                        .gamma_row = outer.row_stride(0),
                        .beta_row = outer.row_stride(1),
                        .terms = &terms};
    for (int64_t first = begin; first < end; first += n.rows) {
      const int64_t inside = first % together;
      n.rows = std::min(end - first, together - inside);
      n.x = x.data() + first * count;
      n.y = y.data() + first * count;
      outer.ForRows(first / together, first / together + 1, [&](const std::array<int64_t, 2>& at) {
        n.gamma = gamma.values.data() + at[0] + inside * n.gamma_row;
        n.beta = beta.values.data() + at[1] + inside * n.beta_row;
        HWY_DYNAMIC_DISPATCH(NormalizeEachRow)(n, values);
      });
    }
  });
}

// Normalizes columns, `run.inner` of them next to each other, as NormalizeRows() does rows: with
// the same bits. The terms must have steps.
void NormalizeColumns(const AxisRun& run, AxisSet axes, bool subtract_mean, RowScale scale,
                      const NormalizeTerm& gamma, const NormalizeTerm& beta,
                      absl::Span<const Half> x, absl::Span<Half> y) {
  constexpr int64_t kTogether = HWY_NAMESPACE::kColumns;
  const int64_t gamma_step = StepOf(gamma, axes, run.count);
  const int64_t beta_step = StepOf(beta, axes, run.count);
  const int64_t blocks = (run.inner + kTogether - 1) / kTogether;
  ParallelForItems(run.outer * blocks, run.count * kTogether * 4, [&](int64_t begin, int64_t end) {
    float* rows = ThreadScratch<float>(ScratchUse::kRow, run.count * kTogether);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block % blocks * kTogether;
      const int64_t columns = std::min(kTogether, run.inner - first);
      const int64_t at = block / blocks * run.count * run.inner + first;
      float sums[kTogether];
      HWY_DYNAMIC_DISPATCH(CenterColumns)
      (x.data() + at, run.inner, run.count, columns, subtract_mean, rows, sums);
      for (float& sum : sums) sum = scale.Of(sum);
      HWY_DYNAMIC_DISPATCH(ScaleColumns)
      (rows, run.count, columns, sums, gamma.values.data(), gamma_step, beta.values.data(),
       beta_step, y.data() + at, run.inner);
    }
  });
}

void MoveValues(const NormalizeTerm& term, const std::array<int, kRank>& permutation,
                absl::Span<float> moved) {
  const Extents extents = Permuted(term.extents, permutation);
  const Strides strides = DenseStrides(term.extents);
  for (int64_t at = 0; at < static_cast<int64_t>(moved.size()); ++at) {
    int64_t from = 0, rest = at;
    for (int i = kRank - 1; i >= 0; --i) {
      from += rest % extents[i] * strides[permutation[i]];
      rest /= extents[i];
    }
    moved[at] = term.values[from];
  }
}

void NormalizeAny(const Extents& extents, AxisSet axes, bool subtract_mean, RowScale scale,
                  const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                  absl::Span<Half> y) {
  assert(x.size() == y.size() && static_cast<int64_t>(x.size()) == Count(extents));
  AxisRun run;
  if (FindAxisRun(extents, axes, &run) && run.inner == 1) {
    return NormalizeRows(extents, axes, subtract_mean, scale, gamma, beta, x, y);
  }
  const bool has_columns = FindAxisRun(extents, axes, &run) && run.inner >= kFewColumns &&
                           run.count <= kMostRows && StepOf(gamma, axes, run.count) >= 0 &&
                           StepOf(beta, axes, run.count) >= 0;
  if (has_columns) return NormalizeColumns(run, axes, subtract_mean, scale, gamma, beta, x, y);
  // Transposes to make rows contiguous, and back.
  const std::array<int, kRank> permutation = AxesLast(axes);
  const Extents moved_extents = Permuted(extents, permutation);
  AxisSet moved_axes;
  for (int i = 0; i < kRank; ++i) {
    if (axes.Has(permutation[i])) moved_axes.Add(i);
  }
  const CallScratch<Half> moved(static_cast<int64_t>(x.size()));
  const CallScratch<float> gammas(static_cast<int64_t>(gamma.values.size()));
  const CallScratch<float> betas(static_cast<int64_t>(beta.values.size()));
  Transpose(extents, permutation, x, moved.span());
  MoveValues(gamma, permutation, gammas.span());
  MoveValues(beta, permutation, betas.span());
  NormalizeRows(moved_extents, moved_axes, subtract_mean, scale,
                {gammas.span(), Permuted(gamma.extents, permutation)},
                {betas.span(), Permuted(beta.extents, permutation)}, moved.span(), moved.span());
  Transpose(moved_extents, Inverse(permutation), moved.span(), y);
}

int64_t RowSize(const Extents& extents, AxisSet axes) {
  return Count(extents) / Count(Reduced(extents, axes));
}

}  // namespace

void Normalize(const Extents& extents, AxisSet axes, const NormalizeOptions& options,
               const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
               absl::Span<Half> y) {
  const float one = 1.0f, zero = 0.0f;
  const float count = static_cast<float>(RowSize(extents, axes));
  NormalizeAny(extents, axes, options.subtract_mean, {count, RoundToHalf(options.epsilon)},
               OrConstant(gamma, &one), OrConstant(beta, &zero), x, y);
}

void L2Normalize(const Extents& extents, AxisSet axes, float epsilon, absl::Span<const Half> x,
                 absl::Span<Half> y) {
  const float one = 1.0f, zero = 0.0f;
  NormalizeAny(extents, axes, false, {.epsilon = RoundToHalf(epsilon)}, OrConstant({}, &one),
               OrConstant({}, &zero), x, y);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
