#include "math/move/copy.h"

#include <algorithm>
#include <cassert>

#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/move/copy_bytes.h"

namespace anemone::math {
namespace {

void CopyRow(const Half* from, int64_t from_step, Half* to, int64_t to_step, int64_t count) {
  if (to_step == 1 && from_step == 1) {
    CopyBytes(from, to, count * static_cast<int64_t>(sizeof(Half)));
  } else if (to_step == 1 && from_step == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  }
}

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

// Copies the inside of a constant pad, without elements that negative pads remove.
void CopyInside(const Extents& in_extents, const Extents& before, const Extents& out_extents,
                const Half* in, Half* out) {
  const Strides in_strides = DenseStrides(in_extents);
  const Strides out_strides = DenseStrides(out_extents);
  Extents inside;
  for (int i = 0; i < kRank; ++i) {
    const int64_t first = std::max<int64_t>(0, -before[i]);
    inside[i] = std::min(in_extents[i], out_extents[i] - before[i]) - first;
    if (inside[i] <= 0) return;
    in += first * in_strides[i];
    out += (first + before[i]) * out_strides[i];
  }
  CopyBlock(inside, in, in_strides, out, out_strides);
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
  const int64_t from_step = nest.row_stride(0), to_step = nest.row_stride(1);
  if (nest.rows() == 1) {
    return ParallelFor(nest.row_size(), kElementGrain, [&](int64_t begin, int64_t end) {
      CopyRow(from + begin * from_step, from_step, to + begin * to_step, to_step, end - begin);
    });
  }
  ParallelForItems(nest.rows(), nest.row_size(), [&](int64_t begin, int64_t end) {
    nest.ForRows(begin, end, [&](const std::array<int64_t, 2>& at) {
      CopyRow(from + at[0], from_step, to + at[1], to_step, nest.row_size());
    });
  });
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
  Fill(value, out);
  CopyInside(in_extents, before, out_extents, in.data(), out.data());
}

void Fill(Half value, absl::Span<Half> out) {
  ParallelFor(out.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    std::fill(out.begin() + begin, out.begin() + end, value);
  });
}

}  // namespace anemone::math
