// math/gemm/strassen.h: the sizes of the blocks of strassen-inl.h, and the limits on their values.
// Internal.
#ifndef ANEMONE_MATH_GEMM_STRASSEN_H_
#define ANEMONE_MATH_GEMM_STRASSEN_H_

#include <cstdint>

#include "math/gemm/panels.h"

namespace anemone::math {

inline constexpr int64_t kGroupRows = 2 * kTileRows;
inline constexpr int64_t kPairColumns = 2 * kPanelColumns;
// The least number of columns of a last pair for which seven products are faster.
inline constexpr int64_t kLeastPair = kPanelColumns + 32;

// Terms of a pass: a multiple of 8. `depth` must be one too.
inline int64_t StrassenTerms(int64_t depth) { return RoundUp(EvenPart(depth, kBlockDepth), 8); }

// The largest allowed ratio between the largest magnitudes of two lines (rows or columns) of a
// block. If the numbers within each line are similar, the error is at most the product of both
// ratios, 2^9, times a few 2^-24, compared with 2^-11 for the rounding. In most networks the ratios
// are below 2^5 for weights and below 2^3 for positions of activations.
inline constexpr float kMostWeightSpread = 32;
inline constexpr float kMostInputSpread = 16;

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_STRASSEN_H_
