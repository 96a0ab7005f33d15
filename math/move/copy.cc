#include "math/move/copy.h"

#include <algorithm>
#include <cassert>

#include "math/core/epilogue.h"
#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/move/copy_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/move/copy.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/move/copy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Copies rows [begin, end) of the nest (from, to), or, if it has only one row, the elements [begin,
// end) of that row.
void CopyPlanes(const LoopNest<2>& nest, const Half* from, Half* to, int64_t begin, int64_t end) {
  const int64_t from_step = nest.row_stride(0), to_step = nest.row_stride(1);
  if (nest.rows() == 1) {
    return CopyRow(from + begin * from_step, from_step, to + begin * to_step, to_step, end - begin);
  }
  nest.ForPlanes(begin, end, [&](const std::array<int64_t, 2>& at, int64_t rows) {
    CopyPlane(from + at[0], {nest.plane_stride(0), from_step}, to + at[1],
              {nest.plane_stride(1), to_step}, rows, nest.row_size());
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(CopyPlanes);

namespace {

// The index in [0, size) of the element that is copied to `position`, which may be outside.
int64_t PadSource(PadMode mode, int64_t position, int64_t size) {
  switch (mode) {
    case PadMode::kConstant:
      return position;
    case PadMode::kEdge:
      return std::clamp<int64_t>(position, 0, size - 1);
    case PadMode::kReflect: {
      if (size == 1) return 0;
      const int64_t period = 2 * (size - 1);
      const int64_t phase = ((position % period) + period) % period;
      return phase < size ? phase : period - phase;
    }
    case PadMode::kWrap:
      return ((position % size) + size) % size;
  }
  return 0;
}

// Pads with a constant. Negative pads remove elements.
void PadWithConstant(const Extents& in_extents, const Extents& before, const Extents& out_extents,
                     Half value, const Half* in, Half* out) {
  // Inner axes without pads are part of a row.
  int last = kAxisW;
  int64_t inner = 1;
  for (; last > 0 && before[last] == 0 && in_extents[last] == out_extents[last]; --last) {
    inner *= out_extents[last];
  }
  const int64_t width = out_extents[last] * inner, from_width = in_extents[last] * inner;
  const int64_t left = std::clamp<int64_t>(before[last] * inner, 0, width);
  const int64_t skipped = std::max<int64_t>(-before[last] * inner, 0);
  const int64_t kept = std::clamp<int64_t>(from_width - skipped, 0, width - left);
  const int64_t height = last > 0 ? out_extents[last - 1] : 1;  // rows of a plane
  const int64_t from_height = last > 0 ? in_extents[last - 1] : 1;
  const int64_t top = last > 0 ? before[last - 1] : 0;
  int64_t planes = 1;
  for (int i = 0; i < last - 1; ++i) planes *= out_extents[i];
  if (planes * height * width == 0) return;
  // Some rows are filled and then copied to, while they are in the first-level cache.
  const int64_t together = std::max<int64_t>(kNearElements / width, 1);
  ParallelForItems(planes * height, width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin, rows; row < end; row += rows) {
      const int64_t y = row % height;
      rows = std::min({end - row, height - y, together});
      FillHalfs(out + row * width, rows * width, value);
      int64_t rest = row / height, source = 0, stride = from_height;
      bool inside = true;
      for (int i = last - 2; i >= 0; --i) {
        const int64_t position = rest % out_extents[i] - before[i];
        inside = inside && position >= 0 && position < in_extents[i];
        source += position * stride;
        stride *= in_extents[i];
        rest /= out_extents[i];
      }
      if (!inside) continue;
      const int64_t stop = std::min(y + rows, top + from_height);
      for (int64_t i = std::max(y, top); i < stop; ++i) {
        CopyBytes(in + (source + i - top) * from_width + skipped,
                  out + (row + i - y) * width + left, kept * static_cast<int64_t>(sizeof(Half)));
      }
    }
  });
}

// Pads in the other modes. Writes each output row once.
void PadByIndex(const Extents& in_extents, const Extents& before, const Extents& out_extents,
                PadMode mode, const Half* in, Half* out) {
  const int64_t rows = Count(out_extents) / out_extents[kAxisW];
  const Strides in_strides = DenseStrides(in_extents);
  const int64_t width = out_extents[kAxisW];
  ParallelForItems(rows, width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Half* from = in;
      int64_t rest = row;
      for (int i = kAxisH; i >= 0; --i) {
        const int64_t position = rest % out_extents[i] - before[i];
        from += PadSource(mode, position, in_extents[i]) * in_strides[i];
        rest /= out_extents[i];
      }
      Half* to = out + row * width;
      for (int64_t j = 0; j < width; ++j) {
        to[j] = from[PadSource(mode, j - before[kAxisW], in_extents[kAxisW])];
      }
    }
  });
}

}  // namespace

void CopyBlock(const Extents& extents, const Half* from, const Strides& from_strides, Half* to,
               const Strides& to_strides) {
  if (Count(extents) == 0) return;
  const LoopNest<2> nest(extents, {from_strides, to_strides});
  const auto copy = [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(CopyPlanes)(nest, from, to, begin, end);
  };
  if (nest.rows() == 1) return ParallelFor(nest.row_size(), kElementGrain, copy);
  ParallelForItems(nest.rows(), nest.row_size(), copy);
}

void Slice(const Extents& in_extents, const Extents& starts, const Extents& steps,
           const Extents& out_extents, absl::Span<const Half> in, absl::Span<Half> out) {
  assert(static_cast<int64_t>(out.size()) == Count(out_extents));
  Strides strides = DenseStrides(in_extents);
  const Half* from = in.data();
  for (int i = 0; i < kRank; ++i) {
    from += starts[i] * strides[i];
    strides[i] *= steps[i];
  }
  CopyBlock(out_extents, from, strides, out.data(), DenseStrides(out_extents));
}

void Insert(const Extents& in_extents, int axis, int64_t offset, const Extents& out_extents,
            absl::Span<const Half> in, absl::Span<Half> out) {
  assert(offset + in_extents[axis] <= out_extents[axis]);
  const Strides strides = DenseStrides(out_extents);
  CopyBlock(in_extents, in.data(), DenseStrides(in_extents), out.data() + offset * strides[axis],
            strides);
}

void Broadcast(const Extents& in_extents, const Extents& out_extents, absl::Span<const Half> in,
               absl::Span<Half> out) {
  assert(static_cast<int64_t>(out.size()) == Count(out_extents));
  CopyBlock(out_extents, in.data(), RepeatingStrides(in_extents), out.data(),
            DenseStrides(out_extents));
}

void Tile(const Extents& in_extents, const Extents& repeats, absl::Span<const Half> in,
          absl::Span<Half> out) {
  Extents out_extents;
  for (int i = 0; i < kRank; ++i) out_extents[i] = in_extents[i] * repeats[i];
  assert(static_cast<int64_t>(out.size()) == Count(out_extents));
  PadByIndex(in_extents, {}, out_extents, PadMode::kWrap, in.data(), out.data());
}

void Pad(const Extents& in_extents, const Extents& before, const Extents& after, PadMode mode,
         Half value, absl::Span<const Half> in, absl::Span<Half> out) {
  Extents out_extents;
  for (int i = 0; i < kRank; ++i) out_extents[i] = in_extents[i] + before[i] + after[i];
  assert(static_cast<int64_t>(out.size()) == Count(out_extents));
  if (mode != PadMode::kConstant) {
    return PadByIndex(in_extents, before, out_extents, mode, in.data(), out.data());
  }
  PadWithConstant(in_extents, before, out_extents, value, in.data(), out.data());
}

void Fill(Half value, absl::Span<Half> out) {
  ParallelFor(out.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    FillHalfs(out.data() + begin, end - begin, value);
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
