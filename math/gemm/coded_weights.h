// math/gemm/coded_weights.h: a view of compressed constant weights, as stored in a file.
#ifndef ANEMONE_MATH_GEMM_CODED_WEIGHTS_H_
#define ANEMONE_MATH_GEMM_CODED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "anemone/scale_grid.h"

namespace anemone::math {

enum class WeightForm : uint8_t {
  kDense,
  kAffine,   // codes with scales and zero points
  kPalette,  // codes that are indices into one table
  kSparse,   // a mask, and the values of its set bits
};

// All pointers are borrowed.
struct CodedWeights {
  WeightForm form = WeightForm::kDense;
  int bits = 8;           // of a code; 4-bit codes are packed low nibble first
  bool is_signed = true;  // codes
  const std::byte* codes = nullptr;
  ScaleGrid grid;                         // kAffine
  absl::Span<const float> scales;         // kAffine
  absl::Span<const int16_t> zero_points;  // kAffine; empty: all 0
  absl::Span<const float> table;          // kPalette
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_CODED_WEIGHTS_H_
