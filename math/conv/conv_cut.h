// math/conv/conv_cut.h: how convolutions that multiply panels or bytes are divided into tasks.
// Internal.
#ifndef ANEMONE_MATH_CONV_CONV_CUT_H_
#define ANEMONE_MATH_CONV_CONV_CUT_H_

#include <cstdint>

#include "math/conv/conv_state.h"

namespace anemone::math {

// How each image and group is divided into tasks. A task computes some of the channels at a run of
// positions, which is a part of the plane (in whole `step`s) or a part of one row.
struct ConvCut {
  int64_t by_channels, by_positions;
  int64_t step;
  int64_t per_row;  // parts per row; 0: the whole plane is divided
  int64_t cost;     // of a task, in elements (parallel.h)

  int64_t tasks() const { return by_channels * by_positions; }
};

// Whether a convolution reads its staged input in place; otherwise it unfolds it.
bool ReadsStage(const ConvGeometry& g);

// The division of a convolution that reads its stage, its input (pointwise()), its unfolded input,
// or bytes.
ConvCut CutStaged(const ConvGeometry& g);
ConvCut CutPointwise(const ConvGeometry& g);
ConvCut CutUnfolded(const ConvGeometry& g);
ConvCut CutBytes(const ConvGeometry& g);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_CONV_CUT_H_
