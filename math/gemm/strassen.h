// math/gemm/strassen.h: the sizes of blocks of strassen-inl.h, and what they may be made of.
// Internal.
#ifndef ANEMONE_MATH_GEMM_STRASSEN_H_
#define ANEMONE_MATH_GEMM_STRASSEN_H_

#include <cstdint>

#include "math/gemm/panels.h"

namespace anemone::math {

inline constexpr int64_t kGroupRows = 2 * kTileRows;
inline constexpr int64_t kPairColumns = 2 * kPanelColumns;
// Columns of a last pair for which seven products pay.
inline constexpr int64_t kLeastPair = kPanelColumns + 32;

// Terms of a pass: a multiple of 8, as `depth` is.
inline int64_t StrassenTerms(int64_t depth) { return RoundUp(EvenPart(depth, kBlockDepth), 8); }

// How many times the largest magnitude of a line of a block may be another's. Of lines whose
// numbers are alike the product of both, 2^9, times a few 2^-24 is the most that an error grows to,
// beside 2^-11 of the rounding. Weights of networks lie mostly within 2^5, positions of their
// activations within 2^3.
inline constexpr float kMostWeightSpread = 32;
inline constexpr float kMostInputSpread = 16;

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_STRASSEN_H_
