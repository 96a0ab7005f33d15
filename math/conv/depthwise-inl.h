// math/conv/depthwise-inl.h: depthwise convolution with small square kernels, which reads the input
// without staging it (tap_columns-inl.h). Internal.
#if defined(ANEMONE_MATH_CONV_DEPTHWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_DEPTHWISE_INL_H_
#undef ANEMONE_MATH_CONV_DEPTHWISE_INL_H_
#else
#define ANEMONE_MATH_CONV_DEPTHWISE_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "math/conv/conv_state.h"
#include "math/conv/tap_columns-inl.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// One channel.
struct DepthwiseChannel {
  const float* weights;  // one per tap
  float bias;
  const Half* x;
  Half* y;
};

// The weights as vectors. A few stay in registers, more are read where they are used.
template <int kTaps, class D>
class TapWeights {
 public:
  explicit TapWeights(const float* weights) : weights_(weights) {
    if constexpr (kInRegisters) {
      for (int t = 0; t < kTaps; ++t) vectors_[t] = hn::Set(D(), weights[t]);
    }
  }
  HWY_INLINE hn::Vec<D> operator[](int tap) const {
    if constexpr (kInRegisters) return vectors_[tap];
    return hn::Set(D(), weights_[tap]);
  }

 private:
  static constexpr bool kInRegisters = kTaps <= 9;
  const float* weights_;
  hn::Vec<D> vectors_[kInRegisters ? kTaps : 1];
};

// Output rows [first, last] of any channel.
template <int kTaps, int kStride, int kColumnStride, class D>
class DepthwiseRows {
 public:
  DepthwiseRows(const ConvGeometry& g, const Readable& input, int64_t first, int64_t last)
      : g_(g), input_(input), first_(first), last_(last), phases_(g.dilation_h) {
    const int64_t vectors = CeilDiv(g.out_w, kWidth);
    columns_ = ThreadScratch<Columns>(ScratchUse::kTaps, vectors);
    for (int64_t v = 0; v < vectors; ++v) columns_[v] = Columns(g, v * kWidth);
    phase_rows_ = CeilDiv(last - first + 1, phases_) * kStride + kTaps;
    rows_ = ThreadScratch<int64_t>(ScratchUse::kRow, phases_ * phase_rows_);
    for (int64_t i = 0; i < phases_ * phase_rows_; ++i) {
      const int64_t phase = i / phase_rows_;
      const int64_t row = first * kStride - g.pad_top + phase + i % phase_rows_ * phases_;
      rows_[i] = row >= 0 && row < g.in_h ? row * g.in_w : kPadding;
    }
  }

  void Compute(const DepthwiseChannel& channel) const {
    const int64_t vectors = CeilDiv(g_.out_w, kWidth);
    for (int64_t v = 0; v < vectors; ++v) {
      if ((v + 2) * kWidth <= g_.out_w && columns_[v].all_inside() &&
          columns_[v + 1].all_inside()) {
        ComputeVectors<2, true>(channel, v++);
      } else {
        ComputeVectors<1, false>(channel, v);
      }
    }
  }

 private:
  using Columns = TapColumns<kTaps, kColumnStride, D>;
  using Weights = TapWeights<kTaps * kTaps, D>;
  static constexpr int64_t kWidth = hn::MaxLanes(D());
  static constexpr int64_t kPadding = -1;

  // Computes kVectors vectors of each row, from vector v on. With kInside no column is padding and
  // all vectors are full.
  template <int kVectors, bool kInside>
  HWY_NOINLINE void ComputeVectors(const DepthwiseChannel& channel, int64_t v) const {
    Columns columns[kVectors];  // copies, so that registers can hold them
    for (int i = 0; i < kVectors; ++i) columns[i] = columns_[v + i];
    const Weights weights(channel.weights);
    const auto bias = hn::Set(D(), channel.bias);
    const int64_t count = HWY_MIN(g_.out_w - v * kWidth, kWidth);
    const int64_t y_step = phases_ * g_.out_w;
    for (int64_t phase = 0; phase < phases_; ++phase) {
      int64_t height = (last_ - first_ - phase + phases_) / phases_;
      const int64_t* rows = rows_ + phase * phase_rows_;
      Half* y = channel.y + (first_ + phase) * g_.out_w + v * kWidth;
      const auto tiles = [&](auto size) HWY_ATTR {
        for (; height >= size; height -= size, rows += size * kStride, y += size * y_step) {
          Tile<size, kVectors, kInside>(input_, channel.x, rows, columns, weights, bias, y, y_step,
                                        count);
        }
      };
      tiles(std::integral_constant<int, 7>());
      tiles(std::integral_constant<int, 4>());
      tiles(std::integral_constant<int, 2>());
      tiles(std::integral_constant<int, 1>());
    }
  }

  // Computes kRows rows of kVectors vectors at y, `y_step` apart. Sums are in the order of taps,
  // without the taps in rows of padding, which would add zeros.
  template <int kRows, int kVectors, bool kInside>
  static HWY_INLINE void Tile(const Readable& input, const Half* x, const int64_t* rows,
                              const Columns* columns, const Weights& weights, hn::Vec<D> bias,
                              Half* y, int64_t y_step, int64_t count) {
    const D d;
    hn::Vec<D> sum[kRows][kVectors];
    HWY_UNROLL(7)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    }
    HWY_UNROLL(19)
    for (int i = 0; i < (kRows - 1) * kStride + kTaps; ++i) {
      if (rows[i] == kPadding) continue;
      hn::Vec<D> read[kVectors][kTaps];
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) {
        columns[v].template LoadTaps<kInside>(input, x + rows[i], read[v]);
      }
      HWY_UNROLL(7)
      for (int j = 0; j < kTaps; ++j) {
        HWY_UNROLL(7)
        for (int r = 0; r < kRows; ++r) {
          const int tap = i - r * kStride;
          if (tap < 0 || tap >= kTaps) continue;
          const hn::Vec<D> w = weights[tap * kTaps + j];
          HWY_UNROLL(2)
          for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(w, read[v][j], sum[r][v]);
        }
      }
    }
    HWY_UNROLL(7)
    for (int r = 0; r < kRows; ++r, y += y_step) {
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) {
        StoreFirst(d, hn::Add(sum[r][v], bias), y + v * kWidth, kInside ? kWidth : count);
      }
    }
  }

  const ConvGeometry& g_;
  const Readable input_;  // all channels
  const int64_t first_, last_;
  // If kernels are dilated, rows are computed by row modulo dilation, so that the rows of a tile
  // read the same input rows.
  const int64_t phases_;
  int64_t phase_rows_;  // input rows that a phase reads
  int64_t* rows_;       // their offsets in a plane, or kPadding; in thread scratch
  Columns* columns_;    // one for each vector of a row; in thread scratch
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
