// tests/math/conv/conv_testing.h: what tests of the algorithms of convolutions share.
#ifndef ANEMONE_TESTS_MATH_CONV_CONV_TESTING_H_
#define ANEMONE_TESTS_MATH_CONV_CONV_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "math/conv/conv.h"
#include "math/conv/conv_state.h"
#include "tests/math/math_testing.h"

namespace anemone::math {

inline Window Square(int64_t kernel, int64_t stride, int64_t pad, int64_t dilation = 1) {
  return {kernel, kernel, stride, stride, dilation, dilation, pad, pad, pad, pad};
}

// Of a ConvShape or a ConvTransposeShape, whose weights are as many.
template <class Shape>
std::vector<Half> ConvInput(const Shape& s) {
  return Numbers(s.batch * s.in_channels * s.in_h * s.in_w, 1);
}
template <class Shape>
std::vector<Half> ConvWeightsOf(const Shape& s) {
  const int64_t taps = s.window.kernel_h * s.window.kernel_w;
  return Numbers(s.out_channels * (s.in_channels / s.groups) * taps, 2);
}
template <class Shape>
int64_t OutputsOf(const Shape& s) {
  return s.batch * s.out_channels * s.out_h() * s.out_w();
}

// The convolution in double, with strides of 1.
inline std::vector<double> PlainConv(const ConvShape& s, const std::vector<Half>& x,
                                     const std::vector<Half>& w, const std::vector<float>& bias) {
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  const int64_t taps = s.window.kernel_h * s.window.kernel_w, across = s.window.kernel_w;
  std::vector<double> y;
  for (int64_t plane = 0; plane < s.batch * s.out_channels; ++plane) {
    const int64_t n = plane / s.out_channels, o = plane % s.out_channels;
    for (int64_t position = 0; position < s.out_h() * s.out_w(); ++position) {
      double sum = bias[o];
      for (int64_t k = 0; k < group_in * taps; ++k) {
        const int64_t down = k % taps / across * s.window.dilation_h;
        const int64_t row = position / s.out_w() + down - s.window.pad_top;
        const int64_t right = k % across * s.window.dilation_w;
        const int64_t column = position % s.out_w() + right - s.window.pad_left;
        if (row < 0 || row >= s.in_h || column < 0 || column >= s.in_w) continue;
        const int64_t channel = n * s.in_channels + o / group_out * group_in + k / taps;
        sum += ToDouble(x[(channel * s.in_h + row) * s.in_w + column]) *
               ToDouble(w[o * group_in * taps + k]);
      }
      y.push_back(sum);
    }
  }
  return y;
}

// The convolution is of this kind, and on every target within `slack` of PlainConv(), also with a
// Relu.
inline void ExpectCloseToPlainConv(const ConvShape& s, ConvKind kind, double slack) {
  const std::vector<Half> x = ConvInput(s), w = ConvWeightsOf(s);
  const std::vector<float> bias = Floats(s.out_channels, 3);
  const std::vector<double> want = PlainConv(s, x, w, bias);
  std::vector<double> want_relu = want;
  for (double& value : want_relu) value = std::fmax(value, 0);
  ForEachSimdTarget([&] {
    const PackedConv packed = PackConv(s, w, bias);
    ASSERT_EQ(packed.state().weights->kind, kind);
    std::vector<Half> y(want.size());
    Conv(packed, x, absl::MakeSpan(y));
    ExpectClose(y, want, slack);
    WithRelu(y, [&](const Epilogue& relu) { Conv(packed, x, absl::MakeSpan(y), relu); });
    ExpectClose(y, want_relu, slack);
  });
}

}  // namespace anemone::math

#endif  // ANEMONE_TESTS_MATH_CONV_CONV_TESTING_H_
