// math/gemm/coded_weights.h: how constant weights are compressed, as a file has them.
#ifndef ANEMONE_MATH_GEMM_CODED_WEIGHTS_H_
#define ANEMONE_MATH_GEMM_CODED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "anemone/scale_grid.h"

namespace anemone::math {

enum class WeightForm : uint8_t {
  kDense,
  kAffine,   // codes with a scale and a zero point for each run of depth of a row
  kPalette,  // codes into one table
  kSparse,   // a mask and the values of its bits
};

// Borrows all of it.
struct CodedWeights {
  WeightForm form = WeightForm::kDense;
  int bits = 8;           // of a code; 4-bit codes lie low nibble first
  bool is_signed = true;  // codes
  const std::byte* codes = nullptr;
  ScaleGrid grid;                         // kAffine
  absl::Span<const float> scales;         // kAffine
  absl::Span<const int16_t> zero_points;  // kAffine; empty: all 0
  absl::Span<const float> table;          // kPalette
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_CODED_WEIGHTS_H_
