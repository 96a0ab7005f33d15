#include "math/reduce/softmax.h"

#include <cassert>

#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/move/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/reduce/softmax.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"
#include "math/reduce/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

void SoftmaxRows(const Half* x, Half* y, int64_t rows, int64_t count) {
  const DF df;
  float* row = ThreadScratch<float>(ScratchUse::kRow, count);
  for (int64_t i = 0; i < rows; ++i, x += count, y += count) {
    WidenRun(x, row, count);
    const VF sum = hn::Set(
        df, ExpRow(row, count, [](VF v, VF max) HWY_ATTR { return ShiftedExpHalf(v, max); }));
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) {
      StoreHalf(hn::Div(hn::LoadU(df, row + j), sum), y + j);
    }
    if (j < count) {
      StoreHalfN(hn::Div(LoadFloatN(row + j, count - j), sum), y + j, count - j);
    }
  }
}

// Handles columns [0, width) of a (count x stride) plane, a vector of columns at a time. Sums are
// in the order of rows.
void SoftmaxColumns(const Half* x, Half* y, int64_t count, int64_t stride, int64_t width) {
  const DF df;
  for (int64_t j = 0; j < width; j += kLanes) {
    const int64_t lanes = HWY_MIN(width - j, kLanes);
    const auto load = [&](const Half* from) HWY_ATTR {
      return lanes == kLanes ? LoadHalf(from) : LoadHalfN(from, lanes);
    };
    const auto store = [&](VF value, Half* to) HWY_ATTR {
      if (lanes == kLanes) return StoreHalf(value, to);
      StoreHalfN(value, to, lanes);
    };
    VF max = hn::Set(df, -hwy::HighestValue<float>() * 2.0f);
    for (int64_t i = 0; i < count; ++i) {
      const VF value = load(x + i * stride + j);
      max = hn::IfThenElse(hn::Gt(value, max), value, max);
    }
    VF sum = hn::Zero(df);
    for (int64_t i = 0; i < count; ++i) {
      const VF e = ShiftedExpHalf(load(x + i * stride + j), max);
      sum = hn::Add(sum, e);
      store(e, y + i * stride + j);
    }
    for (int64_t i = 0; i < count; ++i) {
      store(hn::Div(load(y + i * stride + j), sum), y + i * stride + j);
    }
  }
}

// Short rows become columns of a small matrix, so that vectors are full and nothing is summed
// across lanes.
void SoftmaxShortRows(const Half* x, Half* y, int64_t rows, int64_t count) {
  constexpr int64_t kTogether = 128;
  Half* columns = ThreadScratch<Half>(ScratchUse::kTile, count * kTogether);
  for (int64_t i = 0; i < rows; i += kTogether) {
    const int64_t width = HWY_MIN(kTogether, rows - i);
    SeparateRuns(x + i * count, count, width, columns, kTogether);
    SoftmaxColumns(columns, columns, count, kTogether, width);
    InterleaveRuns(columns, kTogether, count, width, y + i * count);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(SoftmaxColumns);
HWY_EXPORT(SoftmaxShortRows);

void Softmax(const Extents& extents, AxisSet axes, absl::Span<const Half> x, absl::Span<Half> y) {
  assert(x.size() == y.size() && static_cast<int64_t>(x.size()) == Count(extents));
  AxisRun run;
  if (!FindAxisRun(extents, axes, &run)) {
    const std::array<int, kRank> permutation = AxesLast(axes);
    const Extents moved = Permuted(extents, permutation);
    AxisSet moved_axes;
    for (int i = 0; i < kRank; ++i) {
      if (axes.Has(permutation[i])) moved_axes.Add(i);
    }
    const CallScratch<Half> rows(static_cast<int64_t>(x.size()));
    Transpose(extents, permutation, x, rows.span());
    Softmax(moved, moved_axes, rows.span(), rows.span());
    return Transpose(moved, Inverse(permutation), rows.span(), y);
  }
  if (run.inner == 1) {
    constexpr int64_t kShort = 64;
    return ParallelForItems(run.outer, run.count * 4, [&](int64_t begin, int64_t end) {
      const Half* from = x.data() + begin * run.count;
      Half* to = y.data() + begin * run.count;
      if (run.count <= kShort && run.outer > 1) {
        HWY_DYNAMIC_DISPATCH(SoftmaxShortRows)(from, to, end - begin, run.count);
      } else {
        HWY_DYNAMIC_DISPATCH(SoftmaxRows)(from, to, end - begin, run.count);
      }
    });
  }
  constexpr int64_t kStrip = 64;
  const int64_t strips = (run.inner + kStrip - 1) / kStrip;
  ParallelForItems(run.outer * strips, run.count * kStrip * 4, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % strips * kStrip;
      const int64_t at = item / strips * run.count * run.inner + column;
      HWY_DYNAMIC_DISPATCH(SoftmaxColumns)
      (x.data() + at, y.data() + at, run.count, run.inner, std::min(kStrip, run.inner - column));
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
