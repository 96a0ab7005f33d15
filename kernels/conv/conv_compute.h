// kernels/conv/conv_compute.h: the arithmetic of the unit kind Conv. conv.cc puts these functions
// into its UnitRow.
#ifndef ANEMONE_KERNELS_CONV_CONV_COMPUTE_H_
#define ANEMONE_KERNELS_CONV_CONV_COMPUTE_H_

#include "kernels/conv/conv.h"

namespace anemone {

// UnitRow's prepare, compute_then, exact and takes_epilogue.
absl::StatusOr<Prepared> PrepareConv(const ConvParams& p, Bottoms in,
                                     absl::Span<const Tensor> weights);
void ComputeConv(const ConvParams& p, const void* prepared, absl::Span<const ConstView> in,
                 View out, const math::Epilogue& epilogue);
void ExactConv(const ConvParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
               View out);
bool ConvTakesEpilogue(const ConvParams& p, const math::Numerics& n);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CONV_CONV_COMPUTE_H_
