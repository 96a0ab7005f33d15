// Tests the functions that only move data: copy.h, transpose.h, gather.h.
#include "math/move/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "math/move/gather.h"
#include "math/move/transpose.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

using Index = std::array<int64_t, kRank>;

// Calls body(index, position) for every index below `extents`, in row-major order.
template <class Body>
void ForEachIndex(const Extents& extents, const Body& body) {
  const int64_t count = Count(extents);
  for (int64_t position = 0; position < count; ++position) {
    Index index;
    int64_t rest = position;
    for (int i = kRank - 1; i >= 0; --i) {
      index[i] = rest % extents[i];
      rest /= extents[i];
    }
    body(index, position);
  }
}

int64_t At(const Extents& extents, const Index& index) {
  const Strides strides = DenseStrides(extents);
  int64_t position = 0;
  for (int i = 0; i < kRank; ++i) position += index[i] * strides[i];
  return position;
}

TEST(Transpose, AllPermutations) {
  const Extents extents = {2, 3, 4, 5, 6};
  const std::vector<Half> in = Numbers(Count(extents), 1, Contents::kSpecial);
  std::array<int, kRank> permutation = {0, 1, 2, 3, 4};
  do {
    Extents out_extents;
    for (int i = 0; i < kRank; ++i) out_extents[i] = extents[permutation[i]];
    std::vector<Half> out(in.size());
    Transpose(extents, permutation, in, absl::MakeSpan(out));
    ForEachIndex(out_extents, [&](const Index& index, int64_t position) {
      Index source;
      for (int i = 0; i < kRank; ++i) source[permutation[i]] = index[i];
      ASSERT_EQ(out[position], in[At(extents, source)]) << position;
    });
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST(Transpose, PlanesOfEdgeSizes) {
  ForEachSimdTarget([] {
    for (int64_t rows : {1, 7, 8, 9, 26, 70}) {
      for (int64_t columns : {1, 7, 8, 9, 26, 63, 64, 65, 130}) {
        const std::vector<Half> in = Numbers(2 * rows * columns, 1, Contents::kSpecial);
        std::vector<Half> out(in.size() + 1, Half{0x1234});
        Transpose({2, 1, 1, rows, columns}, {0, 1, 2, 4, 3}, in,
                  absl::MakeSpan(out).subspan(0, in.size()));
        for (int64_t n = 0; n < 2; ++n) {
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              ASSERT_EQ(out[(n * columns + j) * rows + i], in[(n * rows + i) * columns + j]);
            }
          }
        }
        EXPECT_EQ(out.back().bits, 0x1234);
      }
    }
  });
}

// Planes of one axis or several, wide and narrow, in whole tiles and not.
TEST(Transpose, AllPermutationsOfAnySizes) {
  for (const Extents& extents : {Extents{3, 2, 70, 4, 9},
                                 {1, 5, 2, 66, 67},
                                 {1, 2, 21, 3, 65},
                                 {2, 1, 300, 5, 2},
                                 {1, 7, 1, 4, 3}}) {
    const std::vector<Half> in = Numbers(Count(extents), 1, Contents::kSpecial);
    const Strides strides = DenseStrides(extents);
    std::array<int, kRank> permutation = {0, 1, 2, 3, 4};
    do {
      Extents out_extents;
      for (int i = 0; i < kRank; ++i) out_extents[i] = extents[permutation[i]];
      std::vector<Half> want(in.size());
      ForEachIndex(out_extents, [&](const Index& index, int64_t position) {
        int64_t from = 0;
        for (int i = 0; i < kRank; ++i) from += index[i] * strides[permutation[i]];
        want[position] = in[from];
      });
      ForEachSimdTarget([&] {
        std::vector<Half> out(in.size() + 1, Half{0x1234});
        Transpose(extents, permutation, in, absl::MakeSpan(out).subspan(0, in.size()));
        ASSERT_EQ(out.back().bits, 0x1234);
        out.pop_back();
        ASSERT_EQ(out, want);
      });
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
}

TEST(Transpose, ThreadsDoNotShow) {
  const Extents extents = {1, 3, 4, 100, 130};
  const std::vector<Half> in = Numbers(Count(extents));
  ExpectThreadsDoNotShow(Count(extents), [&](absl::Span<Half> out) {
    Transpose(extents, {1, 0, 4, 3, 2}, in, out);
  });
}

TEST(Copy, SliceWithStepsForwardAndBack) {
  const Extents in_extents = {2, 1, 5, 6, 9}, starts = {1, 0, 4, 0, 1}, steps = {1, 1, -2, 3, 2};
  const Extents out_extents = {1, 1, 3, 2, 4};
  const std::vector<Half> in = Numbers(Count(in_extents), 1, Contents::kSpecial);
  std::vector<Half> out(Count(out_extents));
  Slice(in_extents, starts, steps, out_extents, in, absl::MakeSpan(out));
  ForEachIndex(out_extents, [&](const Index& index, int64_t position) {
    Index source;
    for (int i = 0; i < kRank; ++i) source[i] = starts[i] + index[i] * steps[i];
    ASSERT_EQ(out[position], in[At(in_extents, source)]);
  });
}

TEST(Copy, InsertOneAfterTheOtherIsConcat) {
  for (int axis = 0; axis < kRank; ++axis) {
    Extents a_extents = {2, 1, 3, 4, 5}, b_extents = a_extents, out_extents = a_extents;
    b_extents[axis] = 2;
    out_extents[axis] += 2;
    const std::vector<Half> a = Numbers(Count(a_extents), 1), b = Numbers(Count(b_extents), 2);
    std::vector<Half> out(Count(out_extents));
    Insert(a_extents, axis, 0, out_extents, a, absl::MakeSpan(out));
    Insert(b_extents, axis, a_extents[axis], out_extents, b, absl::MakeSpan(out));
    ForEachIndex(out_extents, [&](Index index, int64_t position) {
      const bool first = index[axis] < a_extents[axis];
      if (!first) index[axis] -= a_extents[axis];
      ASSERT_EQ(out[position], first ? a[At(a_extents, index)] : b[At(b_extents, index)]);
    });
  }
}

TEST(Copy, BroadcastAndTile) {
  const Extents in_extents = {1, 1, 3, 1, 4}, out_extents = {2, 1, 3, 5, 4};
  const std::vector<Half> in = Numbers(Count(in_extents));
  std::vector<Half> out(Count(out_extents));
  Broadcast(in_extents, out_extents, in, absl::MakeSpan(out));
  ForEachIndex(out_extents, [&](const Index& index, int64_t position) {
    ASSERT_EQ(out[position], in[index[2] * 4 + index[4]]);
  });
  const Extents repeats = {2, 1, 2, 3, 2}, tiled_extents = {2, 1, 6, 3, 8};
  std::vector<Half> tiled(Count(tiled_extents));
  Tile(in_extents, repeats, in, absl::MakeSpan(tiled));
  ForEachIndex(tiled_extents, [&](const Index& index, int64_t position) {
    ASSERT_EQ(tiled[position], in[index[2] % 3 * 4 + index[4] % 4]);
  });
}

TEST(Copy, EveryBroadcast) {
  for (const Extents& extents : {Extents{2, 3, 4, 5, 6}, {1, 5, 70, 3, 2}, {1, 2, 3, 50, 1}}) {
    for (int mask = 0; mask < 32; ++mask) {
      Extents in_extents = extents;
      for (int i = 0; i < kRank; ++i) {
        if (mask >> i & 1) in_extents[i] = 1;
      }
      const std::vector<Half> in = Numbers(Count(in_extents), 1, Contents::kSpecial);
      ForEachSimdTarget([&] {
        std::vector<Half> out(Count(extents));
        Broadcast(in_extents, extents, in, absl::MakeSpan(out));
        ForEachIndex(extents, [&](Index index, int64_t position) {
          for (int i = 0; i < kRank; ++i) {
            if (in_extents[i] == 1) index[i] = 0;
          }
          ASSERT_EQ(out[position], in[At(in_extents, index)]) << mask;
        });
      });
    }
  }
}

// The index of the element that ONNX's Pad copies; -1 for the constant.
int64_t PadSource(PadMode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  switch (mode) {
    case PadMode::kConstant:
      return -1;
    case PadMode::kEdge:
      return at < 0 ? 0 : size - 1;
    case PadMode::kReflect:
      return at < 0 ? -at : 2 * (size - 1) - at;
    case PadMode::kWrap:
      return at < 0 ? at + size : at - size;
  }
  return -1;
}

TEST(Copy, PadEveryMode) {
  const Extents extents = {1, 2, 3, 4, 5}, before = {0, 1, 2, 0, 3}, after = {1, 0, 1, 3, 2};
  const std::vector<Half> in = Numbers(Count(extents));
  Extents out_extents;
  for (int i = 0; i < kRank; ++i) out_extents[i] = extents[i] + before[i] + after[i];
  for (PadMode mode : {PadMode::kConstant, PadMode::kEdge, PadMode::kReflect, PadMode::kWrap}) {
    Extents b = before, a = after, o = out_extents;
    if (mode == PadMode::kReflect) a[0] = 0, o[0] = 1;  // an extent of 1 cannot be mirrored
    std::vector<Half> out(Count(o));
    Pad(extents, b, a, mode, kHalfOne, in, absl::MakeSpan(out));
    ForEachIndex(o, [&](const Index& index, int64_t position) {
      Index source;
      bool constant = false;
      for (int i = 0; i < kRank; ++i) {
        source[i] = PadSource(mode, index[i] - b[i], extents[i]);
        constant = constant || source[i] < 0;
      }
      ASSERT_EQ(out[position], constant ? kHalfOne : in[At(extents, source)]);
    });
  }
}

// Along one axis or all, also cutting off, for rows of a few elements and of many.
TEST(Copy, PadWithConstantAnyAxes) {
  for (const Extents& extents : {Extents{2, 3, 4, 5, 6}, {1, 2, 9, 3, 300}, {40, 1, 2, 2, 2}}) {
    const std::vector<Half> in = Numbers(Count(extents), 1, Contents::kSpecial);
    for (int mask = 0; mask < 32; ++mask) {
      for (int sign : {1, -1}) {
        Extents before{}, after{}, out_extents = extents;
        for (int i = 0; i < kRank; ++i) {
          if ((mask >> i & 1) == 0) continue;
          before[i] = extents[i] > 1 ? sign : 1;
          after[i] = 2;
          out_extents[i] += before[i] + after[i];
        }
        std::vector<Half> out(Count(out_extents));
        Pad(extents, before, after, PadMode::kConstant, kHalfOne, in, absl::MakeSpan(out));
        ForEachIndex(out_extents, [&](Index index, int64_t position) {
          bool inside = true;
          for (int i = 0; i < kRank; ++i) {
            index[i] -= before[i];
            inside = inside && index[i] >= 0 && index[i] < extents[i];
          }
          ASSERT_EQ(out[position], inside ? in[At(extents, index)] : kHalfOne) << mask;
        });
      }
    }
  }
}

TEST(Copy, NegativePadsCutOff) {
  const std::vector<Half> in = Numbers(6);
  std::vector<Half> out(4);
  Pad({1, 1, 1, 1, 6}, {0, 0, 0, 0, -3}, {0, 0, 0, 0, 1}, PadMode::kConstant, kHalfOne, in,
      absl::MakeSpan(out));
  ExpectSame(out, {in[3], in[4], in[5], kHalfOne});
}

// Some runs become one that takes an element of each in turn, as a PixelShuffle writes it, and
// back.
TEST(Copy, ShortRowsAreInterleavedAndSeparated) {
  ForEachSimdTarget([] {
    for (int64_t runs : {2, 3, 4, 5, 31}) {
      for (int64_t size : {2, 7, 8, 13, 72}) {
        const Extents extents = {1, 1, 2, size, runs};
        const int64_t apart = size + 3, block = runs * size, far = runs * apart;
        const Strides separate = {0, 0, far, 1, apart}, together = {0, 0, block, runs, 1};
        const std::vector<Half> in = Numbers(2 * far, 1, Contents::kSpecial);
        std::vector<Half> turns(2 * block + 1, kHalfOne), back = in;
        CopyBlock(extents, in.data(), separate, turns.data(), together);
        ForEachIndex(extents, [&](const Index& at, int64_t position) {
          ASSERT_EQ(turns[position], in[at[2] * far + at[4] * apart + at[3]])
              << runs << " " << size;
        });
        EXPECT_EQ(turns.back(), kHalfOne);
        for (int64_t i = 0; i < block; ++i) back[i / size * apart + i % size] = kHalfZero;
        CopyBlock(extents, turns.data(), together, back.data(), separate);
        ExpectSame(back, in);
      }
    }
  });
}

TEST(Copy, EverySecondElementUpToTheLast) {
  ForEachSimdTarget([] {
    for (int64_t count : {1, 2, 9, 17, 33, 67, 131}) {
      const std::vector<Half> in = Numbers(2 * count - 1, 1, Contents::kSpecial);
      std::vector<Half> out(count + 1, kHalfOne);
      CopyBlock({1, 1, 1, 1, count}, in.data(), {0, 0, 0, 0, 2}, out.data(), {0, 0, 0, 0, 1});
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(out[i], in[2 * i]) << count;
      EXPECT_EQ(out.back(), kHalfOne);
    }
  });
}

TEST(Copy, BlockOfNoElementsWritesNothing) {
  Half from = kHalfOne, to = kHalfZero;
  CopyBlock({1, 1, 0, 4, 4}, &from, {}, &to, {16, 16, 16, 4, 1});
  EXPECT_EQ(to, kHalfZero);
}

TEST(Gather, AlongEachAxis) {
  const Extents extents = {2, 3, 4, 5, 6};
  const std::vector<Half> x = Numbers(Count(extents), 1, Contents::kSpecial);
  for (int axis = 0; axis < kRank; ++axis) {
    const std::vector<int64_t> indices = {1, 0, 1, extents[axis] - 1};
    Extents out_extents = extents;
    out_extents[axis] = indices.size();
    std::vector<Half> y(Count(out_extents));
    Gather(extents, axis, indices, x, absl::MakeSpan(y));
    ForEachIndex(out_extents, [&](Index index, int64_t position) {
      index[axis] = indices[index[axis]];
      ASSERT_EQ(y[position], x[At(extents, index)]);
    });
  }
}

}  // namespace
}  // namespace anemone::math
