// math/gemm/weight_panels.h: constant weights in the order in which kernels read them, dense or
// compressed. Internal.
//
// A panel is [depth][width], with width 4 or 48 (panels.h). Dense weights are Halfs. Compressed
// weights stay codes, or a mask with values; FillPanel() (weight_panels-inl.h) expands a part of a
// panel to float scratch immediately before it is multiplied. The floats equal the fp16 weights bit
// for bit (numerics.json cmp-order, cmp-stream), so results do not depend on the form. There are
// two exceptions: convolutions that winograd.cc computes, and matrix products with affine codes
// (code_products.cc, byte_products.cc).
#ifndef ANEMONE_MATH_GEMM_WEIGHT_PANELS_H_
#define ANEMONE_MATH_GEMM_WEIGHT_PANELS_H_

#include <cstdint>
#include <vector>

#include "anemone/bit_mask.h"
#include "math/core/aligned_array.h"
#include "math/core/half.h"
#include "math/gemm/coded_weights.h"
#include "math/move/convert.h"

namespace anemone::math {

// The shape of a weight. A line is an output channel; a panel has `width` lines. Element k of line
// j is element j * line_step + k * term_step of the stored weight.
struct PanelLayout {
  int64_t width = 4;
  int64_t lines = 0, depth = 0;
  int64_t line_step = 0, term_step = 1;
};

struct WeightPanels {
  WeightForm form = WeightForm::kDense;
  int64_t width = 4, depth = 0;
  AlignedArray<Half> halves;  // kDense

  // kAffine and kPalette: unsigned codes. A word has those of 32 / bits consecutive terms of a
  // line, the first in its lowest bits: [panel][words()][width].
  int bits = 8;
  AlignedArray<uint32_t> codes;
  int64_t run = 0;                    // kAffine: consecutive terms that share scales
  AlignedArray<float> scales;         // [panel][depth / run][width]
  AlignedArray<uint8_t> zero_points;  // the same; or empty: all are zero_point
  int zero_point = 0;
  bool multiplies_codes = false;  // whether code_products.cc may be used
  // kAffine, 8 bits, one scale for each line, width 48: the sum of the codes of each line, for
  // byte_products.cc.
  AlignedArray<int32_t> code_sums;
  std::vector<float> table;  // kPalette: 256 or 16 values

  BitMask mask;              // kSparse: the elements that are stored
  std::vector<Half> values;  // kSparse

  int64_t words() const { return (depth * bits + 31) / 32; }  // of a line
  int64_t bytes() const;
};

// Packs `groups` weights of `layout`, which are stored one after the other; each begins a new
// panel. `coded` is the compressed form of the same weights, or null. The result is dense if the
// scales do not run along depth, or if compression would not save memory.
WeightPanels PackWeightPanels(const PanelLayout& layout, int64_t groups, HalfReader weights,
                              const CodedWeights* coded);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_WEIGHT_PANELS_H_
