// math/gemm/weight_panels.h: constant weights in the order kernels read them, in the form they
// are stored in. Internal.
//
// A panel is [depth][width], width 4 or 48 (panels.h). Dense weights are Halfs. Compressed ones
// stay codes or a mask with values, and FillPanel (weight_panels-inl.h) widens a part of a panel
// into the float scratch just before it is multiplied. The floats are those of the folded fp16
// weight, to the bit (numerics.json cmp-order, cmp-stream), so no result depends on the form, but
// of convolutions that winograd.cc, strassen_conv.cc or strassen_gemm.cc takes if their weights are
// dense.
#ifndef ANEMONE_MATH_GEMM_WEIGHT_PANELS_H_
#define ANEMONE_MATH_GEMM_WEIGHT_PANELS_H_

#include <cstdint>
#include <vector>

#include "anemone/bit_mask.h"
#include "math/core/half.h"
#include "math/core/scratch.h"
#include "math/gemm/coded_weights.h"
#include "math/move/convert.h"

namespace anemone::math {

// Lines are what a panel has `width` of: output channels. Element k of line j is element
// j * line_step + k * term_step of the stored weight.
struct PanelLayout {
  int64_t width = 4;
  int64_t lines = 0, depth = 0;
  int64_t line_step = 0, term_step = 1;
};

struct WeightPanels {
  WeightForm form = WeightForm::kDense;
  int64_t width = 4, depth = 0;
  AlignedArray<Half> halves;  // kDense

  int bits = 8;
  AlignedArray<uint8_t> codes;  // signed ones of kAffine, as they are; 4 bits: low nibble first
  int64_t run = 0;              // kAffine: terms of depth that share scales
  std::vector<float> scales, zero_points;  // [panel][depth / run][width]; zero_points may be empty
  std::vector<float> table;                // kPalette: 256 or 16 values

  BitMask mask;  // kSparse: what is kept
  std::vector<Half> values;

  int64_t bytes() const;
};

// `groups` weights of `layout`, one after the other in `weights` and in the panels; each begins a
// panel. `coded` says how the same weights are stored, null: as `weights` gives them. A form that
// does not keep its scales along depth, or takes no less memory, becomes dense.
WeightPanels PackWeightPanels(const PanelLayout& layout, int64_t groups, HalfReader weights,
                              const CodedWeights* coded);

// Whether the largest magnitudes of lines, bits of Halfs without their signs, are finite and none
// more than `most_spread` times another.
bool AreEven(const uint16_t* magnitudes, int64_t lines, float most_spread);

// The same of dense weights, by bands of so many lines and passes of so many terms, 1 or 0:
// [group][pass][line / band]; 0 too for a band that is not whole.
std::vector<uint8_t> EvenLines(const WeightPanels& weights, int64_t groups, int64_t lines,
                               int64_t band, int64_t pass_terms, float most_spread);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_WEIGHT_PANELS_H_
