// 1x1 convolutions whose weights are mostly zeros, as the matrices that interpolate along an axis
// (kernels/shared/axis_matrix.h). Only the other weights are multiplied. Zeros change a sum only if
// they meet an infinity or NaN: blocks with such values compute all products.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/sparse.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

bool AllFinite(const Half* x, int64_t count) {
  const DH dh;
  const VH exponent = hn::Set(dh, kHalfInfinity.bits);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if (!hn::AllFalse(dh, hn::Eq(hn::And(LoadBits(x + i), exponent), exponent))) return false;
  }
  const VH rest = LoadBitsN(x + i, count - i);
  return hn::AllFalse(dh, hn::Eq(hn::And(rest, exponent), exponent));
}

// The sum of an output channel at kVectors vectors of positions, in the order of input channels.
// `x` is at the first position of the first channel. If `all` is true, also products with zeros.
template <int kVectors>
HWY_INLINE void SparseTile(const ConvGeometry& g, const SparseTap* tap, const SparseTap* end,
                           bool all, const Half* x, VF (&sum)[kVectors]) {
  const DF df;
  const int64_t plane = g.positions();
  HWY_UNROLL(4)
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(df);
  const auto add = [&](int64_t channel, float weight) HWY_ATTR {
    const VF w = hn::Set(df, weight);
    const Half* from = x + channel * plane;
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::MulAdd(w, LoadHalf(from + v * kLanes), sum[v]);
    }
  };
  if (!all) {
    for (; tap != end; ++tap) add(tap->channel, tap->weight);
    return;
  }
  for (int64_t channel = 0; channel < g.group_in; ++channel) {
    const bool is_tap = tap != end && tap->channel == channel;
    add(channel, is_tap ? tap->weight : 0.0f);
    if (is_tap) ++tap;
  }
}

// All output channels at `count` positions from `first` on, at least a vector.
void ComputeSparse(const PackedConv::State& state, const Half* x, Half* y, int64_t first,
                   int64_t count, const Epilogue& epilogue) {
  const DF df;
  const ConvGeometry& g = state.geometry;
  const SparseRows& rows = state.weights->sparse;
  bool all = false;
  for (int64_t c = 0; c < g.group_in && !all; ++c) {
    all = !AllFinite(x + c * g.positions() + first, count);
  }
  for (int64_t o = 0; o < g.group_out; ++o) {
    const SparseTap* const begin = rows.taps.data() + rows.begins[o];
    const SparseTap* const end = rows.taps.data() + rows.begins[o + 1];
    const VF bias = hn::Set(df, state.bias[o]);
    Half* const to = y + o * g.positions() + first;
    const auto tile = [&]<int kVectors>(int64_t i) HWY_ATTR {
      VF sum[kVectors];
      SparseTile<kVectors>(g, begin, end, all, x + first + i, sum);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        StoreHalf(hn::Add(sum[v], bias), to + i + v * kLanes);
      }
    };
    int64_t i = 0;
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) tile.template operator()<4>(i);
    for (; i + kLanes <= count; i += kLanes) tile.template operator()<1>(i);
    // The last vector begins earlier, and computes some positions again.
    if (i < count) tile.template operator()<1>(count - kLanes);
    epilogue.FinishRuns(to, 1, count, count);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeSparse);

namespace {

// At least this many weights for each that is not zero.
constexpr int64_t kSparse = 6;

}  // namespace

SparseRows PackSparse(const ConvGeometry& g, HalfReader weights) {
  SparseRows rows;
  if (g.groups > 1 || !g.pointwise() || !g.dense_output() || g.positions() < kMostLanes) return {};
  std::vector<Half> row(g.group_in);
  for (int64_t o = 0; o < g.group_out; ++o) {
    rows.begins.push_back(static_cast<int64_t>(rows.taps.size()));
    weights(o * g.group_in, absl::MakeSpan(row));
    for (int64_t c = 0; c < g.group_in; ++c) {
      const float weight = ToFloat(row[c]);
      if (weight != 0.0f) rows.taps.push_back({static_cast<int32_t>(c), weight});
    }
    if (static_cast<int64_t>(rows.taps.size()) * kSparse > (o + 1) * g.group_in) return {};
  }
  rows.begins.push_back(static_cast<int64_t>(rows.taps.size()));
  return rows;
}

void RunSparse(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  // The input of a block stays in the second-level cache.
  constexpr int64_t kBlock = 16 * kMostLanes;
  const int64_t least = std::max<int64_t>(g.positions() / kBlock, 1);
  const int64_t blocks =
      std::min(RoundUp(least, PartsForThreads(g.batch)), g.positions() / kMostLanes);
  const auto taps = static_cast<int64_t>(state.weights->sparse.taps.size());
  const int64_t cost = (taps + g.group_out + g.group_in) * g.positions() / blocks / 16;
  ParallelForItems(g.batch * blocks, cost, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Part part(g.positions(), kMostLanes, task % blocks, blocks);
      HWY_DYNAMIC_DISPATCH(ComputeSparse)
      (state, x + task / blocks * g.group_in * g.positions(),
       y + task / blocks * g.group_out * g.positions(), part.first, part.size(), epilogue);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
