#include "math/reduce/reduce.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/move/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/reduce/reduce.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"
#include "math/core/sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// A reduction: maps each element, folds them, and finishes the result.
template <class Map, class Fold, class Finish>
struct Reduction {
  float neutral;
  Map map;
  Fold fold;
  Finish finish;  // on a vector of results
};
template <class Map, class Fold, class Finish>
Reduction(float, Map, Fold, Finish) -> Reduction<Map, Fold, Finish>;

template <class R>
HWY_INLINE void ReduceRow(const R& reduction, const Half* x, int64_t count, Half* y) {
  const DF df;
  const VF neutral = hn::Set(df, reduction.neutral);
  const float folded = FoldFixed(
      count, reduction.neutral, [&](int64_t i) HWY_ATTR { return reduction.map(LoadHalf(x + i)); },
      [&](int64_t i, int64_t rest) HWY_ATTR {
        return hn::IfThenElse(hn::FirstN(df, static_cast<size_t>(rest)),
                              reduction.map(LoadHalfN(x + i, rest)), neutral);
      },
      reduction.fold);
  *y = ToHalf(hn::GetLane(reduction.finish(hn::Set(df, folded))));
}

// Reduces columns [0, width) of a (count x stride) plane.
template <class R>
HWY_INLINE void ReduceColumns(const R& reduction, const Half* x, int64_t count, int64_t stride,
                              int64_t width, Half* y) {
  for (int64_t j = 0; j < width; j += kLanes) {
    const int64_t lanes = HWY_MIN(width - j, kLanes);
    VF folded = hn::Set(DF(), reduction.neutral);
    for (int64_t i = 0; i < count; ++i) {
      const Half* from = x + i * stride + j;
      const VF value = lanes == kLanes ? LoadHalf(from) : LoadHalfN(from, lanes);
      folded = reduction.fold(folded, reduction.map(value));
    }
    const VF result = reduction.finish(folded);
    if (lanes == kLanes) {
      StoreHalf(result, y + j);
    } else {
      StoreHalfN(result, y + j, lanes);
    }
  }
}

// Rows of at most so many elements become columns of a small matrix.
constexpr int64_t kShortRow = 16;
template <class R>
HWY_INLINE void ReduceShortRows(const R& reduction, const Half* x, int64_t count, int64_t rows,
                                Half* y) {
  constexpr int64_t kTogether = 128;
  HWY_ALIGN Half columns[kShortRow * kTogether];
  for (int64_t i = 0; i < rows; i += kTogether) {
    const int64_t width = HWY_MIN(kTogether, rows - i);
    SeparateRuns(x + i * count, count, width, columns, kTogether);
    ReduceColumns(reduction, columns, count, kTogether, width, y + i);
  }
}

// Reduces `pieces` rows if inner is 1, else `pieces` columns of one plane.
template <class R>
HWY_INLINE void ReducePieces(const R& reduction, const Half* x, int64_t count, int64_t inner,
                             int64_t pieces, Half* y) {
  if (inner != 1) return ReduceColumns(reduction, x, count, inner, pieces, y);
  if (count <= kShortRow) return ReduceShortRows(reduction, x, count, pieces, y);
  for (int64_t i = 0; i < pieces; ++i) ReduceRow(reduction, x + i * count, count, y + i);
}

void ReduceRun(ReduceOp op, const Half* x, int64_t count, int64_t inner, int64_t pieces, Half* y) {
  const auto run = [&](const auto& reduction)
                       HWY_ATTR { ReducePieces(reduction, x, count, inner, pieces, y); };
  const auto same = [](VF v) HWY_ATTR { return v; };
  const auto square = [](VF v) HWY_ATTR { return hn::Mul(v, v); };
  const auto add = [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); };
  const float infinity = hwy::HighestValue<float>() * 2.0f;
  switch (op) {
    case ReduceOp::kSum:
      return run(Reduction{0.0f, same, add, same});
    case ReduceOp::kMean: {
      const VF divisor = hn::Set(DF(), static_cast<float>(count));
      return run(
          Reduction{0.0f, same, add, [divisor](VF v) HWY_ATTR { return hn::Div(v, divisor); }});
    }
    case ReduceOp::kMax:
      return run(
          Reduction{-infinity, same, [](VF a, VF b) HWY_ATTR { return MaxNan(a, b); }, same});
    case ReduceOp::kMin:
      return run(Reduction{infinity, same, [](VF a, VF b) HWY_ATTR { return MinNan(a, b); }, same});
    case ReduceOp::kSumSquares:
      return run(Reduction{0.0f, square, add, same});
    case ReduceOp::kL1:
      return run(Reduction{0.0f, [](VF v) HWY_ATTR { return hn::Abs(v); }, add, same});
    case ReduceOp::kL2:
      return run(Reduction{0.0f, square, add, [](VF v) HWY_ATTR { return hn::Sqrt(v); }});
    case ReduceOp::kProduct:
      return run(Reduction{1.0f, same, [](VF a, VF b) HWY_ATTR { return hn::Mul(a, b); }, same});
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ReduceRun);

void Reduce(ReduceOp op, const Extents& extents, AxisSet axes, absl::Span<const Half> x,
            absl::Span<Half> y) {
  assert(static_cast<int64_t>(x.size()) == Count(extents));
  assert(static_cast<int64_t>(y.size()) == Count(Reduced(extents, axes)));
  AxisRun run;
  std::optional<CallScratch<Half>> moved;
  if (!FindAxisRun(extents, axes, &run)) {
    // The other axes keep their order, so the result needs no transpose.
    moved.emplace(static_cast<int64_t>(x.size()));
    Transpose(extents, AxesLast(axes), x, moved->span());
    x = moved->span();
    run = {static_cast<int64_t>(y.size()), static_cast<int64_t>(x.size() / y.size()), 1};
  }
  if (run.inner == 1) {
    return ParallelForItems(run.outer, run.count, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(ReduceRun)
      (op, x.data() + begin * run.count, run.count, 1, end - begin, y.data() + begin);
    });
  }
  constexpr int64_t kStrip = 64;
  const int64_t strips = (run.inner + kStrip - 1) / kStrip;
  ParallelForItems(run.outer * strips, run.count * kStrip, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % strips * kStrip;
      const int64_t outer = item / strips;
      HWY_DYNAMIC_DISPATCH(ReduceRun)
      (op, x.data() + outer * run.count * run.inner + column, run.count, run.inner,
       std::min(kStrip, run.inner - column), y.data() + outer * run.inner + column);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
