// engine/math/exact_contract.h: convolutions and matrix products in `exact` mode, on the array of
// exact_mac.h. Shapes and layouts are those of conv.h, conv_transpose.h and gemm.h; weights are
// plain, not packed.
//
//   ExactConv(numerics, shape, x, w, bias, y);
//
// The order of lanes is not published (numerics.json mac-lane-order): input channel fastest, then
// kernel column, then kernel row, or taps first. A transposed convolution is one over the input
// with zeros between its elements (mac-transpose: single; the factor list of `factored` is in no
// table, so that option is as single). Winograd, chunks and spills (mac-winograd, mac-chunk,
// mac-large-k) are not modelled: nothing of them is published but their names.
#ifndef ENGINE_MATH_EXACT_CONTRACT_H_
#define ENGINE_MATH_EXACT_CONTRACT_H_

#include "absl/types/span.h"
#include "engine/math/conv.h"
#include "engine/math/conv_transpose.h"
#include "engine/math/exact_mac.h"
#include "engine/math/gemm.h"
#include "engine/math/sdpa.h"

namespace anemone::math {

// `bias` is empty or has a value for each output channel.
void ExactConv(const Numerics& n, const ConvShape& shape, absl::Span<const Half> x,
               absl::Span<const Half> w, absl::Span<const float> bias, absl::Span<Half> y);
void ExactConvTranspose(const Numerics& n, const ConvTransposeShape& shape,
                        absl::Span<const Half> x, absl::Span<const Half> w,
                        absl::Span<const float> bias, absl::Span<Half> y);

// `bias` is empty or has n values.
void ExactGemm(const Numerics& n, const GemmShape& shape, absl::Span<const Half> a,
               const MatrixLayout& a_layout, absl::Span<const Half> b, const MatrixLayout& b_layout,
               absl::Span<const float> bias, absl::Span<Half> c, const MatrixLayout& c_layout);

// As Sdpa() of sdpa.h: scores, scale, mask and softmax each rounded (sm-sdpa; the option scale-q
// scales the queries instead).
void ExactSdpa(const Numerics& n, const SdpaShape& shape, float scale, absl::Span<const Half> q,
               absl::Span<const Half> k, absl::Span<const Half> v, const SdpaMask& mask,
               absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ENGINE_MATH_EXACT_CONTRACT_H_
