// math/exact/exact_contract.h: convolutions, matrix products and attention in `exact` mode, with
// the multiply-accumulate array of exact_mac.h. Shapes and layouts are those of conv.h,
// conv_transpose.h, gemm.h and sdpa.h. Weights are not packed.
//
//   ExactConv(numerics, shape, x, w, {.offset = bias}, y);
//
// How the sources' rules are applied (numerics.json):
// - mac-lane-order: the order of lanes is not published. The options are input channel fastest,
//   then kernel column, then kernel row; or taps fastest.
// - mac-transpose: a transposed convolution is a convolution over the input with zeros between its
//   elements (`single`). `factored` behaves as `single`, because its factors are not published.
// - mac-winograd: `direct`. `textbook` behaves as `direct`: Winograd's rounding is in the hardware.
// - mac-matmul-lowering: a 1x1 convolution and a matrix product use the same routine.
#ifndef ANEMONE_MATH_EXACT_EXACT_CONTRACT_H_
#define ANEMONE_MATH_EXACT_EXACT_CONTRACT_H_

#include "absl/types/span.h"
#include "math/attention/sdpa.h"
#include "math/conv/conv.h"
#include "math/conv/conv_transpose.h"
#include "math/exact/exact_mac.h"
#include "math/gemm/gemm.h"

namespace anemone::math {

// Applied to each output channel after the sum: scales and addends. Each span is empty or has one
// value per output channel.
struct ContractTerms {
  absl::Span<const float> gain, offset;

  // The terms of channel `first` for all elements (step 0), or of channels `first`, `first` + 1,
  // ... (step 1).
  MacTerms At(int64_t first, int64_t step) const {
    return {gain.empty() ? nullptr : gain.data() + first,
            offset.empty() ? nullptr : offset.data() + first, step};
  }
};

void ExactConv(const Numerics& n, const ConvShape& shape, absl::Span<const Half> x,
               absl::Span<const Half> w, const ContractTerms& terms, absl::Span<Half> y);
void ExactConvTranspose(const Numerics& n, const ConvTransposeShape& shape,
                        absl::Span<const Half> x, absl::Span<const Half> w,
                        const ContractTerms& terms, absl::Span<Half> y);

// `terms` has one value per column of B.
void ExactGemm(const Numerics& n, const GemmShape& shape, absl::Span<const Half> a,
               const MatrixLayout& a_layout, absl::Span<const Half> b, const MatrixLayout& b_layout,
               const ContractTerms& terms, absl::Span<Half> c, const MatrixLayout& c_layout);

// Like Sdpa() of sdpa.h, with a rounding after the scores, the scale, the mask and the softmax
// (sm-sdpa). With the option scale-q, the queries are scaled instead of the scores.
void ExactSdpa(const Numerics& n, const SdpaShape& shape, float scale, absl::Span<const Half> q,
               absl::Span<const Half> k, absl::Span<const Half> v, const SdpaMask& mask,
               absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_CONTRACT_H_
