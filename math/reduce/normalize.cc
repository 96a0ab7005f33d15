#include "math/reduce/normalize.h"

#include <cassert>
#include <cmath>

#include "absl/functional/function_ref.h"
#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/move/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/reduce/normalize.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Widens a row, subtracts its mean if `subtract_mean`, and returns the sum of squares of the
// result.
float CenterRow(const Half* x, int64_t count, bool subtract_mean, float* row) {
  const DF df;
  WidenRun(x, row, count);
  if (subtract_mean) {
    const float sum = SumFixed(row, count, [](VF v) HWY_ATTR { return v; });
    const VF mean = hn::Set(df, sum / static_cast<float>(count));
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      hn::StoreU(hn::Sub(hn::LoadU(df, row + i), mean), df, row + i);
    }
    if (i < count) StoreFloatN(hn::Sub(LoadFloatN(row + i, count - i), mean), row + i, count - i);
  }
  return SumFixed(row, count, [](VF v) HWY_ATTR { return hn::Mul(v, v); });
}

// y = row * scale * gamma + beta, with each step rounded to Half. gamma_step and beta_step are 1,
// or 0 to repeat the first value.
void ScaleRow(const float* row, int64_t count, float scale, const float* gamma, int64_t gamma_step,
              const float* beta, int64_t beta_step, Half* y) {
  const DF df;
  const VF factor = hn::Set(df, scale), one_gamma = hn::Set(df, *gamma),
           one_beta = hn::Set(df, *beta);
  const auto finish = [&](VF x, VF g, VF b) HWY_ATTR {
    return hn::Add(RoundHalf(hn::Mul(RoundHalf(hn::Mul(x, factor)), g)), b);
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VF g = gamma_step == 0 ? one_gamma : hn::LoadU(df, gamma + i);
    const VF b = beta_step == 0 ? one_beta : hn::LoadU(df, beta + i);
    StoreHalf(finish(hn::LoadU(df, row + i), g, b), y + i);
  }
  if (i < count) {
    const int64_t rest = count - i;
    const VF g = gamma_step == 0 ? one_gamma : LoadFloatN(gamma + i, rest);
    const VF b = beta_step == 0 ? one_beta : LoadFloatN(beta + i, rest);
    StoreHalfN(finish(LoadFloatN(row + i, rest), g, b), y + i, rest);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(CenterRow);
HWY_EXPORT(ScaleRow);

namespace {

// Returns the factor for a row from its sum of squares.
using ScaleRule = absl::FunctionRef<float(float sum_squares)>;

NormalizeTerm OrConstant(const NormalizeTerm& term, const float* constant) {
  return term.values.empty() ? NormalizeTerm{absl::MakeSpan(constant, 1), {1, 1, 1, 1, 1}} : term;
}

// Normalizes rows. `axes` must be the innermost axes; a row has their elements for one index of the
// other axes.
void NormalizeRows(const Extents& extents, AxisSet axes, bool subtract_mean, ScaleRule rule,
                   const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                   absl::Span<Half> y) {
  // `nest` iterates over a row of (row, gamma, beta); gamma_at and beta_at are the offsets of gamma
  // and beta for each row.
  Extents row_extents, outer_extents;
  for (int i = 0; i < kRank; ++i) {
    row_extents[i] = axes.Has(i) ? extents[i] : 1;
    outer_extents[i] = axes.Has(i) ? 1 : extents[i];
  }
  const Strides gamma_strides = RepeatingStrides(gamma.extents);
  const Strides beta_strides = RepeatingStrides(beta.extents);
  const int64_t count = Count(row_extents);
  const LoopNest<3> nest(row_extents, {DenseStrides(row_extents), gamma_strides, beta_strides});
  ParallelForItems(Count(outer_extents), count * 4, [&](int64_t begin, int64_t end) {
    float* row = ThreadScratch<float>(ScratchUse::kRow, count);
    for (int64_t outer = begin; outer < end; ++outer) {
      int64_t gamma_at = 0, beta_at = 0, rest = outer;
      for (int i = kRank - 1; i >= 0; --i) {
        gamma_at += rest % outer_extents[i] * gamma_strides[i];
        beta_at += rest % outer_extents[i] * beta_strides[i];
        rest /= outer_extents[i];
      }
      const float sum_squares =
          HWY_DYNAMIC_DISPATCH(CenterRow)(x.data() + outer * count, count, subtract_mean, row);
      const float scale = rule(sum_squares);
      nest.ForRows(0, nest.rows(), [&](const std::array<int64_t, 3>& at) {
        HWY_DYNAMIC_DISPATCH(ScaleRow)
        (row + at[0], nest.row_size(), scale, gamma.values.data() + gamma_at + at[1],
         nest.row_stride(1), beta.values.data() + beta_at + at[2], nest.row_stride(2),
         y.data() + outer * count + at[0]);
      });
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

void NormalizeAny(const Extents& extents, AxisSet axes, bool subtract_mean, ScaleRule rule,
                  const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                  absl::Span<Half> y) {
  assert(x.size() == y.size() && static_cast<int64_t>(x.size()) == Count(extents));
  AxisRun run;
  if (FindAxisRun(extents, axes, &run) && run.inner == 1) {
    return NormalizeRows(extents, axes, subtract_mean, rule, gamma, beta, x, y);
  }
  // Transposes to make rows contiguous, and back. This is faster than reading columns three times.
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
  NormalizeRows(moved_extents, moved_axes, subtract_mean, rule,
                {gammas.span(), Permuted(gamma.extents, permutation)},
                {betas.span(), Permuted(beta.extents, permutation)}, moved.span(), moved.span());
  Transpose(moved_extents, Inverse(permutation), moved.span(), y);
}

// 1 / sqrt(square), or 0 for 0, so that a row of zeros stays zero (0 * infinity is 0 on the
// engine).
float Inverse(float square) { return square == 0.0f ? 0.0f : 1.0f / std::sqrt(square); }

int64_t RowSize(const Extents& extents, AxisSet axes) {
  return Count(extents) / Count(Reduced(extents, axes));
}

}  // namespace

void Normalize(const Extents& extents, AxisSet axes, const NormalizeOptions& options,
               const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
               absl::Span<Half> y) {
  const float one = 1.0f, zero = 0.0f;
  const float count = static_cast<float>(RowSize(extents, axes));
  const float epsilon = RoundToHalf(options.epsilon);
  const auto rule = [&](float sum_squares) { return Inverse(sum_squares / count + epsilon); };
  NormalizeAny(extents, axes, options.subtract_mean, rule, OrConstant(gamma, &one),
               OrConstant(beta, &zero), x, y);
}

void L2Normalize(const Extents& extents, AxisSet axes, float epsilon, absl::Span<const Half> x,
                 absl::Span<Half> y) {
  const float one = 1.0f, zero = 0.0f;
  const float guard = RoundToHalf(epsilon);
  const auto rule = [&](float sum_squares) { return Inverse(sum_squares + guard); };
  NormalizeAny(extents, axes, false, rule, OrConstant({}, &one), OrConstant({}, &zero), x, y);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
