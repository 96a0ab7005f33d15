// math/reduce/normalize.h: layer, instance, group, RMS and L2 normalization.
//
//   // layer norm over the last axis, gamma and beta of 768 values
//   Normalize({1, 1, 1, 128, 768}, AxisSet({kAxisW}), {.epsilon = 1e-5f},
//             {gamma, {1, 1, 1, 1, 768}}, {beta, {1, 1, 1, 1, 768}}, x, y);
//   // group norm with G groups: view (N, C, H, W) as extents {N, G, C / G, H, W}, axes C, H, W,
//   // gamma and beta with extents {1, G, C / G, 1, 1}
//
// Mean and variance are computed in fp32, in two passes, because the one-pass formula loses
// precision. Then y = Half(Half(Half((x - mean) / sqrt(variance + epsilon)) * gamma) + beta): gamma
// and beta are applied as separate units would apply them (numerics.json nrm-layer, mac-epilogue).
// epsilon is rounded to Half first (nrm-eps). If variance + epsilon is 0, the quotient is 0. The
// order of additions is that of reduce.h.
#ifndef ANEMONE_MATH_REDUCE_NORMALIZE_H_
#define ANEMONE_MATH_REDUCE_NORMALIZE_H_

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

struct NormalizeOptions {
  float epsilon = 1e-5f;
  bool subtract_mean = true;  // false: RMS norm, with the mean square instead of the variance
};

// A factor or offset (gamma or beta), repeated along axes where its extent is 1. Empty `values`
// mean that there is none.
struct NormalizeTerm {
  absl::Span<const float> values;
  Extents extents = {1, 1, 1, 1, 1};
};

// `x` and `y` may be the same array.
void Normalize(const Extents& extents, AxisSet axes, const NormalizeOptions& options,
               const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
               absl::Span<Half> y);

// y = x / sqrt(sum of squares over `axes` + epsilon), or 0 if that root is 0.
void L2Normalize(const Extents& extents, AxisSet axes, float epsilon, absl::Span<const Half> x,
                 absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_NORMALIZE_H_
