// math/exact/exact_contract.h: convolutions and matrix products in `exact` mode, on the array of
// exact_mac.h. Shapes and layouts are those of conv.h, conv_transpose.h and gemm.h; weights are
// plain, not packed.
//
//   ExactConv(numerics, shape, x, w, {.offset = bias}, y);
//
// The order of lanes is not published (numerics.json mac-lane-order): input channel fastest, then
// kernel column, then kernel row, or taps first. A transposed convolution is one over the input
// with zeros between its elements (mac-transpose: single; the factor list of `factored` is in no
// table, so that option is as single). Winograd's rounding is inside the hardware (mac-winograd:
// direct; `textbook` is as direct). A convolution of 1x1 and a product are one routine
// (mac-matmul-lowering).
#ifndef ANEMONE_MATH_EXACT_EXACT_CONTRACT_H_
#define ANEMONE_MATH_EXACT_EXACT_CONTRACT_H_

#include "absl/types/span.h"
#include "math/attention/sdpa.h"
#include "math/conv/conv.h"
#include "math/conv/conv_transpose.h"
#include "math/exact/exact_mac.h"
#include "math/gemm/gemm.h"

namespace anemone::math {

// What is done to each output channel behind the sum: scales and addends, empty or one for each.
struct ContractTerms {
  absl::Span<const float> gain, offset;

  // Of channel `first` for all (step 0), or of those from it on (step 1).
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

// Output channels are the columns of B.
void ExactGemm(const Numerics& n, const GemmShape& shape, absl::Span<const Half> a,
               const MatrixLayout& a_layout, absl::Span<const Half> b, const MatrixLayout& b_layout,
               const ContractTerms& terms, absl::Span<Half> c, const MatrixLayout& c_layout);

// As Sdpa() of sdpa.h: scores, scale, mask and softmax each rounded (sm-sdpa; the option scale-q
// scales the queries instead).
void ExactSdpa(const Numerics& n, const SdpaShape& shape, float scale, absl::Span<const Half> q,
               absl::Span<const Half> k, absl::Span<const Half> v, const SdpaMask& mask,
               absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_CONTRACT_H_
