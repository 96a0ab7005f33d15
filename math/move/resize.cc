#include "math/move/resize.h"

#include <algorithm>
#include <cassert>

#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/move/copy_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/move/resize.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"
#include "math/core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Repeats each of `count` elements `times` times.
void RepeatElements(const Half* from, int64_t count, int64_t times, Half* to) {
  InterleaveRuns(from, 0, times, count, to);
}

// Resamples one input row at every output column.
void SampleColumns(const Half* from, int64_t in_w, const AxisTaps& columns, float* to) {
  float* row = ThreadScratch<float>(ScratchUse::kRow, in_w);
  WidenRun(from, row, in_w);
  const int32_t* index = columns.indices.data();
  const float* weight = columns.weights.data();
  for (int64_t j = 0; j < columns.size(); ++j) {
    float sum = 0.0f;
    for (int64_t t = 0; t < columns.taps; ++t) sum += *weight++ * row[*index++];
    to[j] = sum;
  }
}

// Computes the weighted sum of `taps` resampled rows.
void BlendRows(const float* const* rows, const float* weights, int64_t taps, int64_t count,
               Half* to) {
  const DF df;
  for (int64_t j = 0; j < count; j += kLanes) {
    const int64_t rest = count - j;
    VF sum = hn::Zero(df);
    for (int64_t t = 0; t < taps; ++t) {
      sum = hn::Add(sum, hn::Mul(hn::Set(df, weights[t]), LoadFloatUpTo(rows[t] + j, rest)));
    }
    if (rest >= kLanes) {
      StoreHalf(sum, to + j);
    } else {
      StoreHalfN(sum, to + j, rest);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(RepeatElements);
HWY_EXPORT(SampleColumns);
HWY_EXPORT(BlendRows);

namespace {

// If `indices` repeats each of 0, 1, ..., size - 1 the same number of times, in order, returns that
// number; else 0.
int64_t Repeats(absl::Span<const int32_t> indices, int64_t size) {
  const auto count = static_cast<int64_t>(indices.size());
  if (size == 0 || count % size != 0) return 0;
  const int64_t times = count / size;
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] != i / times) return 0;
  }
  return times;
}

}  // namespace

void ResizeNearest(const ResizeShape& shape, absl::Span<const int32_t> rows,
                   absl::Span<const int32_t> columns, absl::Span<const Half> x, absl::Span<Half> y,
                   const Epilogue& epilogue) {
  const int64_t out_h = rows.size(), out_w = columns.size();
  const int64_t times = Repeats(columns, shape.in_w);
  assert(static_cast<int64_t>(y.size()) == shape.planes * out_h * out_w);
  // The columns of some input rows are repeated at once, also beyond the end of a plane.
  const int64_t together = std::max<int64_t>(kNearElements / std::max<int64_t>(out_w, 1), 1);
  const auto row_bytes = out_w * static_cast<int64_t>(sizeof(Half));
  ParallelForItems(shape.planes, out_h * out_w, [&](int64_t begin, int64_t end) {
    Half* wide = ThreadScratch<Half>(ScratchUse::kTile, together * out_w);
    int64_t held = 0, held_end = 0;  // the rows in `wide`
    for (int64_t plane = begin; plane < end; ++plane) {
      Half* to = y.data() + plane * out_h * out_w;
      for (int64_t i = 0; i < out_h; ++i, to += out_w) {
        const int64_t row = plane * shape.in_h + rows[i];
        const Half* from = x.data() + row * shape.in_w;
        if (times > 0) {
          if (row < held || row >= held_end) {
            held = row;
            held_end = std::min(row + together, end * shape.in_h);
            HWY_DYNAMIC_DISPATCH(RepeatElements)
            (from, (held_end - held) * shape.in_w, times, wide);
          }
          CopyBytes(wide + (row - held) * out_w, to, row_bytes);
        } else if (i > 0 && rows[i] == rows[i - 1]) {
          CopyBytes(to - out_w, to, row_bytes);
        } else {
          for (int64_t j = 0; j < out_w; ++j) to[j] = from[columns[j]];
        }
      }
      epilogue.FinishRuns(y.data() + plane * out_h * out_w, 1, out_h * out_w, 0);
    }
  });
}

namespace {

// A cache of resampled rows of one plane, with as many slots as an output row has taps.
class SampledRows {
 public:
  SampledRows(int64_t taps, int64_t width)
      : width_(width), held_(taps), rows_(taps), values_(taps * width) {}

  void StartPlane(const Half* plane, int64_t in_w, const AxisTaps& columns) {
    plane_ = plane;
    in_w_ = in_w;
    columns_ = &columns;
    std::fill(held_.begin(), held_.end(), -1);
  }

  // Returns pointers to the rows with the given indices. Resamples those that are not cached.
  const float* const* Get(absl::Span<const int32_t> indices) {
    needed_ = indices;
    for (size_t t = 0; t < indices.size(); ++t) rows_[t] = Find(indices[t]);
    return rows_.data();
  }

 private:
  const float* Find(int32_t index) {
    int64_t slot = std::find(held_.begin(), held_.end(), index) - held_.begin();
    if (slot == held_.size()) {
      // There are as many slots as needed rows, so some slot holds a row that is not needed now.
      slot = 0;
      while (std::find(needed_.begin(), needed_.end(), held_[slot]) != needed_.end()) ++slot;
      held_[slot] = index;
      HWY_DYNAMIC_DISPATCH(SampleColumns)
      (plane_ + index * in_w_, in_w_, *columns_, values_.data() + slot * width_);
    }
    return values_.data() + slot * width_;
  }

  int64_t width_;
  CallScratch<int32_t> held_;
  CallScratch<const float*> rows_;
  CallScratch<float> values_;
  absl::Span<const int32_t> needed_;
  const Half* plane_ = nullptr;
  int64_t in_w_ = 0;
  const AxisTaps* columns_ = nullptr;
};

}  // namespace

void ResizeLinear(const ResizeShape& shape, const AxisTaps& rows, const AxisTaps& columns,
                  absl::Span<const Half> x, absl::Span<Half> y) {
  const int64_t out_h = rows.size(), out_w = columns.size();
  assert(static_cast<int64_t>(y.size()) == shape.planes * out_h * out_w);
  ParallelForItems(shape.planes, out_h * out_w * 4, [&](int64_t begin, int64_t end) {
    SampledRows sampled(rows.taps, out_w);
    for (int64_t plane = begin; plane < end; ++plane) {
      sampled.StartPlane(x.data() + plane * shape.in_h * shape.in_w, shape.in_w, columns);
      for (int64_t i = 0; i < out_h; ++i) {
        const float* const* taps =
            sampled.Get(absl::MakeSpan(rows.indices).subspan(i * rows.taps, rows.taps));
        HWY_DYNAMIC_DISPATCH(BlendRows)
        (taps, rows.weights.data() + i * rows.taps, rows.taps, out_w,
         y.data() + (plane * out_h + i) * out_w);
      }
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
