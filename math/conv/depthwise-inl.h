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
  Limits limits;
};

// The weights as vectors. A few of one channel stay in registers, more are read where they are
// used.
template <int kTaps, bool kIsOne, class D>
class TapWeights {
 public:
  TapWeights() = default;
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
  static constexpr bool kInRegisters = kIsOne && kTaps <= 9;
  const float* weights_ = nullptr;
  hn::Vec<D> vectors_[kInRegisters ? kTaps : 1];
};

// Output rows [first, last] of any channel.
//
// Rows of the input are read one after the other. Each is added to all rows of outputs that read
// it, whose sums are in registers, for a few vectors of columns at once.
template <int kTaps, int kStride, int kColumnStride, class D>
class DepthwiseRows {
 public:
  DepthwiseRows(const ConvGeometry& g, const Readable& input, int64_t first, int64_t last)
      : g_(g), input_(input), first_(first), last_(last), phases_(g.dilation_h) {
    vectors_ = CeilDiv(g.out_w, kWidth);
    columns_ = ThreadScratch<Columns>(ScratchUse::kTaps, vectors_);
    for (int64_t v = 0; v < vectors_; ++v) columns_[v] = Columns(g, ColumnOf(v));
    phase_rows_ = (CeilDiv(last - first + 1, phases_) + kLive - 1) * kStride;
    rows_ = ThreadScratch<int64_t>(ScratchUse::kRow, phases_ * phase_rows_);
    for (int64_t phase = 0; phase < phases_; ++phase) {
      const int64_t end = (HeightOf(phase) - 1) * kStride + kTaps;
      for (int64_t i = 0; i < phase_rows_; ++i) {
        const int64_t row = first * kStride - g.pad_top + phase + i * phases_;
        const bool is_read = row >= 0 && row < g.in_h && i < end;
        rows_[phase * phase_rows_ + i] = is_read ? row * g.in_w : kUnread;
      }
    }
  }

  // Computes channels [begin, end).
  void Compute(const DepthwiseChannel* begin, const DepthwiseChannel* end) const {
    for (int64_t v = 0; v < vectors_;) {
      const int64_t count = EvenPart(vectors_ - v, kMostVectors);
      const bool together = WithOneOf<2, 3, 4>(count, [&](auto vectors) HWY_ATTR {
        if constexpr (vectors <= kMostVectors) {
          const int64_t last = v + vectors - 1;
          if (AreInside(v, last, 0, kLoads - 1)) {
            ForEach<vectors, 1, Together::kInside>(begin, end, v);
          } else if (AreInside(v, v, kEarly, kLoads - 1) &&
                     AreInside(v + 1, last - 1, 0, kLoads - 1) &&
                     AreInside(last, last, 0, kLate - 1)) {
            ForEach<vectors, 1, Together::kRow>(begin, end, v);
          } else {
            return false;
          }
          return true;
        }
        return false;
      });
      for (int64_t i = 0; i < count && !together; ++i) ForSeveral(begin, end, v + i);
      v += count;
    }
  }

 private:
  using Columns = TapColumns<kTaps, kColumnStride, D>;
  using DL = typename Columns::DL;
  static constexpr int64_t kWidth = hn::MaxLanes(D());
  static constexpr int64_t kUnread = -1;
  static constexpr int kLive = (kTaps + kStride - 1) / kStride;  // rows of outputs that read a row
  // As many as registers hold, with the columns of a load and a weight.
  static constexpr int kMostVectors = HWY_MIN((kVectorRegisters - 1) / (kLive + kColumnStride), 4);
  // With several vectors, only the first kEarly loads of the first vector and the loads from kLate
  // on of the last one may read padding.
  static constexpr int kLoads = Columns::kLoads, kEarly = (kLoads + 1) / 2, kLate = kLoads / 2;

  // The first column of a vector. The last vector ends with the row; its first columns may be
  // computed twice.
  int64_t ColumnOf(int64_t v) const { return HWY_MAX(HWY_MIN(v * kWidth, g_.out_w - kWidth), 0); }
  int64_t HeightOf(int64_t phase) const { return (last_ - first_ - phase + phases_) / phases_; }
  // Whether loads [first, last] of vectors [begin, end] read no padding.
  bool AreInside(int64_t begin, int64_t end, int first, int last) const {
    for (int64_t v = begin; v <= end; ++v) {
      if (!columns_[v].AreInside(g_.in_w, first, last)) return false;
    }
    return true;
  }

  // What is computed at once, because a single vector has too few sums that do not wait for each
  // other: vectors of a row, of which none reads padding, or the first and the last one may; or the
  // same vector of channels.
  enum class Together { kInside, kRow, kChannels };

  // Computes groups of kChannels channels. Returns the first of the channels that are left.
  template <int kVectors, int kChannels, Together kTogether>
  const DepthwiseChannel* ForEach(const DepthwiseChannel* begin, const DepthwiseChannel* end,
                                  int64_t v) const {
    for (; end - begin >= kChannels; begin += kChannels) {
      ComputeVectors<kVectors, kTogether>(begin, v);
    }
    return begin;
  }
  void ForSeveral(const DepthwiseChannel* begin, const DepthwiseChannel* end, int64_t v) const {
    begin = ForEach<kMostVectors, kMostVectors, Together::kChannels>(begin, end, v);
    if constexpr (kMostVectors > 2) {
      begin = ForEach<2, 2, Together::kChannels>(begin, end, v);
    }
    ForEach<1, 1, Together::kChannels>(begin, end, v);
  }

  // Computes kVectors vectors of each row, from vector v on.
  template <int kVectors, Together kTogether>
  HWY_NOINLINE void ComputeVectors(const DepthwiseChannel* channels, int64_t v) const {
    constexpr bool kIsRow = kTogether != Together::kChannels;
    const auto channel_of = [&](int i) -> const DepthwiseChannel& {
      return channels[kIsRow ? 0 : i];
    };
    using All = Vectors<kVectors, kTogether>;
    All vectors;
    vectors.step = columns_[v].step();
    HWY_UNROLL(4)
    for (int i = 0; i < kVectors; ++i) {
      const int64_t at = kIsRow ? v + i : v;
      vectors.x[i] = channel_of(i).x + columns_[at].left();
      vectors.y[i] = channel_of(i).y + first_ * g_.out_w + ColumnOf(at);
      vectors.bias[i] = channel_of(i).bias;
      if (i < All::kWeights) {
        vectors.weights[i] = typename All::Weights(channel_of(i).weights);
      }
      HWY_UNROLL(7)
      for (int k = 0; k < kLoads; ++k) {
        if (All::ReadsPadding(i, k)) vectors.inside[kIsRow ? i : 0][k] = columns_[at].inside(k);
      }
    }
    const int64_t count = HWY_MIN(g_.out_w, kWidth);
    for (int64_t phase = 0; phase < phases_; ++phase) {
      ComputeRows(vectors, channels->limits, rows_ + phase * phase_rows_, HeightOf(phase),
                  phase * g_.out_w, kIsRow ? kWidth : count);
    }
  }

  template <int kVectors, Together kTogether>
  struct Vectors {
    static constexpr bool kIsRow = kTogether != Together::kChannels;
    static constexpr int kColumns = kIsRow ? kVectors : 1, kWeights = kIsRow ? 1 : kVectors;
    using Weights = TapWeights<kTaps * kTaps, kIsRow, D>;
    const Half* x[kVectors];
    Half* y[kVectors];
    float bias[kVectors];
    int64_t step;  // from one load to the next
    hn::Mask<DL> inside[kColumns][kLoads];
    Weights weights[kWeights];

    static constexpr bool ReadsPadding(int v, int load) {
      if (kTogether == Together::kInside) return false;
      return !kIsRow || (v == 0 && load < kEarly) || (v == kVectors - 1 && load >= kLate);
    }
    HWY_INLINE hn::Vec<DL> Load(const Readable& input, int v, int64_t row, int i) const {
      const Half* from = x[v] + row + i * step;
      if (ReadsPadding(v, i)) return Columns::Load(input, from, inside[kIsRow ? v : 0][i]);
      return hn::LoadU(DL(), reinterpret_cast<const uint16_t*>(from));
    }
    HWY_INLINE hn::Vec<D> Weight(int v, int tap) const { return weights[kIsRow ? 0 : v][tap]; }
  };

  // Computes `height` rows at y + offset, phases_ rows apart. Sums are in the order of taps,
  // without the taps in rows of padding, which would add zeros.
  template <int kVectors, Together kTogether>
  HWY_INLINE void ComputeRows(const Vectors<kVectors, kTogether>& vectors, const Limits& limits,
                              const int64_t* rows, int64_t height, int64_t offset,
                              int64_t count) const {
    const D d;
    const auto lo = hn::Set(d, limits.lo), hi = hn::Set(d, limits.hi);
    hn::Vec<D> sum[kLive][kVectors];  // of the newest row, the one before it, ...
    HWY_UNROLL(7)
    for (int k = 0; k < kLive; ++k) {
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sum[k][v] = hn::Zero(d);
    }
    for (int64_t row = 1 - kLive; row < height; ++row, rows += kStride) {
      HWY_UNROLL(2)
      for (int part = 0; part < kStride; ++part) {
        if (rows[part] != kUnread) AddRow(vectors, rows[part], part, sum);
      }
      if (row >= 0) {
        HWY_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) {
          const auto total = hn::Add(sum[kLive - 1][v], hn::Set(d, vectors.bias[v]));
          StoreFirst(d, AtMost(hi, AtLeast(lo, total)), vectors.y[v] + offset, count);
        }
        offset += phases_ * g_.out_w;
      }
      HWY_UNROLL(7)
      for (int k = kLive - 1; k >= 0; --k) {
        HWY_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) sum[k][v] = k > 0 ? sum[k - 1][v] : hn::Zero(d);
      }
    }
  }

  // Adds a row of the input, which is row `part` of those that begin at the newest output's.
  template <int kVectors, Together kTogether>
  HWY_INLINE void AddRow(const Vectors<kVectors, kTogether>& vectors, int64_t row, int part,
                         hn::Vec<D> (&sum)[kLive][kVectors]) const {
    HWY_UNROLL(7)
    for (int i = 0; i < kLoads; ++i) {
      hn::Vec<DL> loads[kVectors];
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) loads[v] = vectors.Load(input_, v, row, i);
      HWY_UNROLL(2)
      for (int j = 0; j < kColumnStride; ++j) {
        const int column = i * kColumnStride + j;
        if (column >= kTaps) continue;
        hn::Vec<D> read[kVectors];
        HWY_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) read[v] = Columns::Widened(loads[v], j);
        HWY_UNROLL(7)
        for (int k = 0; k < kLive; ++k) {
          const int tap_row = part + k * kStride;
          if (tap_row >= kTaps) continue;
          HWY_UNROLL(4)
          for (int v = 0; v < kVectors; ++v) {
            sum[k][v] = hn::MulAdd(vectors.Weight(v, tap_row * kTaps + column), read[v], sum[k][v]);
          }
        }
      }
    }
  }

  const ConvGeometry& g_;
  const Readable input_;  // all channels
  const int64_t first_, last_;
  // If kernels are dilated, rows are computed by row modulo dilation, so that consecutive rows of
  // outputs read the same input rows.
  const int64_t phases_;
  int64_t vectors_;     // of a row
  int64_t phase_rows_;  // input rows that a phase reads
  int64_t* rows_;       // their offsets in a plane, or kUnread; in thread scratch
  Columns* columns_;    // one for each vector of a row; in thread scratch
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
