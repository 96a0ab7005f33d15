// Tests that the bits of exact mode are the same for every instruction set of this machine, any
// number of threads and any position in a batch. Also compares the vector code with a scalar
// implementation of numerics_notes.md.
#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "hwy/targets.h"
#include "math/exact/exact_contract.h"
#include "math/exact/exact_elementwise.h"
#include "math/exact/exact_mac.h"
#include "tests/math/exact/exact_computations.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

constexpr int64_t kBatch = 3;

class ExactTest : public testing::TestWithParam<Computation> {};
INSTANTIATE_TEST_SUITE_P(All, ExactTest, testing::ValuesIn(Computations()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ExactTest, BitsAreThoseOfEveryInstructionSet) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (const char* family : kExactFamilies) {
    for (bool has_infinities : {false, true}) {
      const Halfs x = InputOf(GetParam(), kBatch, has_infinities);
      const Halfs want = ResultOf(GetParam(), NumericsOf(family), kBatch, x);
      for (int64_t target : targets) {
        hwy::SetSupportedTargetsForTest(target);
        const Halfs got = ResultOf(GetParam(), NumericsOf(family), kBatch, x);
        hwy::SetSupportedTargetsForTest(0);
        EXPECT_EQ(got, want) << family << " on " << hwy::TargetName(target);
      }
    }
  }
}

TEST_P(ExactTest, BitsAreThoseOfAnyNumberOfThreads) {
  const Halfs x = InputOf(GetParam(), kBatch, /*has_infinities=*/false);
  Halfs results[2];
  for (int threads : {1, 2}) {
    tbb::task_arena arena(threads);
    arena.execute(
        [&] { results[threads - 1] = ResultOf(GetParam(), NumericsOf("A13"), kBatch, x); });
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(ExactTest, AnImageAloneIsThatOfTheBatch) {  // det-batch
  const Computation& c = GetParam();
  const Halfs x = InputOf(c, kBatch, /*has_infinities=*/true);
  const Halfs all = ResultOf(c, NumericsOf("A13"), kBatch, x);
  for (int64_t i = 0; i < kBatch; ++i) {
    const Halfs alone =
        ResultOf(c, NumericsOf("A13"), 1, absl::MakeConstSpan(x).subspan(i * c.size, c.size));
    const auto part = absl::MakeConstSpan(all).subspan(i * c.out_size, c.out_size);
    EXPECT_EQ(alone, Halfs(part.begin(), part.end())) << "image " << i;
  }
}

// A literal implementation of numerics_notes.md section 2.
double WrittenSum(const std::vector<float>& a, const std::vector<float>& b) {
  const auto aligned = [](double x, double larger) {
    if (larger == 0) return x;
    const double q = std::ldexp(1.0, std::ilogb(larger) - 11);
    return std::nearbyint(x / q) * q;
  };
  float acc = 0;
  for (size_t first = 0; first < a.size(); first += 4) {
    double p = 0;
    for (size_t k = first; k < std::min(first + 4, a.size()); ++k) {
      const double x = static_cast<double>(a[k]) * b[k];
      const double larger = std::max(std::abs(p), std::abs(x));
      p = aligned(p, larger) + aligned(x, larger);
    }
    acc = static_cast<float>(acc + p);
    if (std::abs(acc) > 32768) acc = std::copysign(INFINITY, acc);
  }
  return acc;
}

TEST(ExactMac, VectorsComputeAsWritten) {
  for (float scale : {1e-3f, 1.0f, 30.0f, 90.0f}) {
    for (int64_t depth : {1, 3, 4, 5, 31, 200}) {
      constexpr int64_t kRows = 11;
      std::vector<float> a(kRows * depth), b(depth * kMacColumns), sums(kRows * kMacColumns);
      const Halfs left = RandomHalfs(a.size(), scale, 1), right = RandomHalfs(b.size(), scale, 2);
      for (size_t i = 0; i < a.size(); ++i) a[i] = ToFloat(left[i]);
      for (size_t i = 0; i < b.size(); ++i) b[i] = ToFloat(right[i]);
      MacSums(NumericsOf("A16"), {.rows = kRows, .depth = depth}, a, b, absl::MakeSpan(sums));
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t j = 0; j < kMacColumns; ++j) {
          std::vector<float> row(a.begin() + i * depth, a.begin() + (i + 1) * depth), column;
          for (int64_t k = 0; k < depth; ++k) column.push_back(b[k * kMacColumns + j]);
          EXPECT_EQ(sums[i * kMacColumns + j], WrittenSum(row, column));
        }
      }
    }
  }
}

// The scalar code, which implements all options, must give the same as the vector code, also of
// operands that are not finite. It is used for a bound after each term, which here has no effect.
TEST(ExactMac, ScalarFormIsThatOfTheVectors) {
  constexpr int64_t kRows = 11, kDepth = 37;
  for (const MacTile tile : {MacTile::kAlign12, MacTile::kNone}) {
    for (const float special : {0.0f, INFINITY, -INFINITY, NAN}) {
      const Halfs left = RandomHalfs(kRows * kDepth, 20, 1);
      const Halfs right = RandomHalfs(kDepth * kMacColumns, 20, 2, std::isinf(special));
      std::vector<float> a(left.size()), b(right.size());
      for (size_t i = 0; i < a.size(); ++i) a[i] = i % 29 == 0 ? special : ToFloat(left[i]);
      for (size_t i = 0; i < b.size(); ++i) b[i] = ToFloat(right[i]);
      Numerics n = NumericsOf("A13");
      n.mac_tile = tile;
      const MacShape shape{.rows = kRows, .depth = kDepth, .is_bounded = false};
      std::vector<float> vectors(kRows * kMacColumns), scalars(vectors.size());
      ForEachSimdTarget([&] {
        MacSums(n, shape, a, b, absl::MakeSpan(vectors));
        Numerics by_term = n;
        by_term.mac_interior = MacInterior::kPerTerm;
        MacSums(by_term, shape, a, b, absl::MakeSpan(scalars));
        EXPECT_EQ(vectors, scalars) << special;
      });
    }
  }
}

// A partial sum above 2^15 becomes infinite and stays so; one that only comes near does not. Tests
// that the estimate which skips this check is never too low.
TEST(ExactMac, SumsAreHeldAgainstTheCeiling) {
  for (const char* family : kExactFamilies) {
    for (const float top : {31000.0f, 31208.0f, 32000.0f, 32768.0f, 32800.0f, 40000.0f}) {
      std::vector<float> a(8, 1.0f), b(8 * kMacColumns, 0.0f), sums(kMacColumns);
      for (int64_t j = 0; j < kMacColumns; ++j) {
        b[j] = top;
        b[4 * kMacColumns + j] = -top;  // in the next tile
      }
      MacSums(NumericsOf(family), {.depth = 8}, a, b, absl::MakeSpan(sums));
      const float want = top > 32768.0f ? INFINITY : 0.0f;
      for (float sum : sums) EXPECT_EQ(sum, want) << family << ' ' << top;
    }
  }
}

// A layer with more weights than are widened at a time must equal two layers with half of the
// channels each.
TEST(ExactContract, LargeLayersAreComputedPartByPart) {
  constexpr int64_t kDepth = 1030, kChannels = 1030;
  const Halfs x = RandomHalfs(kDepth, 3, 1), w = RandomHalfs(kDepth * kChannels, 3, 2);
  std::vector<float> offset(kChannels);
  for (int64_t o = 0; o < kChannels; ++o) offset[o] = static_cast<float>(o % 7);
  ConvShape shape{.in_channels = kDepth, .out_channels = kChannels};
  Halfs whole(kChannels), parts(kChannels);
  const Numerics& n = NumericsOf("A13");
  ExactConv(n, shape, x, w, {.gain = {}, .offset = offset}, absl::MakeSpan(whole));
  shape.out_channels = kChannels / 2;
  for (int64_t first : {int64_t{0}, kChannels / 2}) {
    ExactConv(n, shape, x, absl::MakeConstSpan(w).subspan(first * kDepth, kChannels / 2 * kDepth),
              {.gain = {}, .offset = absl::MakeConstSpan(offset).subspan(first, kChannels / 2)},
              absl::MakeSpan(parts).subspan(first, kChannels / 2));
  }
  EXPECT_EQ(whole, parts);
}

// Images of one position are computed along channels, the positions of an image along positions.
TEST(ExactContract, OnePositionIsComputedAsOneOfMany) {
  constexpr int64_t kPositions = 5, kChannels = 21;
  for (const char* family : kExactFamilies) {
    for (int64_t depth : {1, 3, 8, 37}) {
      Halfs x = RandomHalfs(depth * kPositions, 300, 1), w = RandomHalfs(depth * kChannels, 300, 2);
      x[0] = ToHalf(INFINITY);
      std::vector<float> gain(kChannels), offset(kChannels);
      for (int64_t o = 0; o < kChannels; ++o) {
        gain[o] = o % 3 == 0 ? 1.0f : 0.75f;
        offset[o] = static_cast<float>(o % 7);
      }
      const ContractTerms terms = {.gain = gain, .offset = offset};
      const Numerics& n = NumericsOf(family);
      Halfs row(kPositions * kChannels), images(row.size()), by_channel(x.size());
      for (int64_t i = 0; i < kPositions; ++i) {
        for (int64_t c = 0; c < depth; ++c) by_channel[c * kPositions + i] = x[i * depth + c];
      }
      ForEachSimdTarget([&] {
        ExactConv(n, {.in_channels = depth, .in_w = kPositions, .out_channels = kChannels},
                  by_channel, w, terms, absl::MakeSpan(row));
        ExactConv(n, {.batch = kPositions, .in_channels = depth, .out_channels = kChannels}, x, w,
                  terms, absl::MakeSpan(images));
        for (int64_t i = 0; i < kPositions; ++i) {
          for (int64_t o = 0; o < kChannels; ++o) {
            ASSERT_EQ(images[i * kChannels + o], row[o * kPositions + i])
                << family << ' ' << depth << ' ' << i << ' ' << o;
          }
        }
      });
    }
  }
}

// A few positions are computed along channels, many along positions.
TEST(ExactContract, FewPositionsAreComputedAsAmongMany) {
  constexpr int64_t kIn = 7, kHeight = 3, kWidth = 40, kFew = 4, kChannels = 21;
  constexpr int64_t kLines = kBatch * kIn * kHeight;
  const Window window = {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1};
  const ConvShape wide{.batch = kBatch,
                       .in_channels = kIn,
                       .in_h = kHeight,
                       .in_w = kWidth,
                       .out_channels = kChannels,
                       .window = window};
  ConvShape narrow = wide;
  narrow.in_w = kFew;
  const int64_t lines = kBatch * kChannels * kHeight;
  const Halfs x = RandomHalfs(kLines * kWidth, 30, 1, /*has_infinities=*/true);
  const Halfs w = RandomHalfs(kChannels * kIn * 9, 30, 2);
  const std::vector<float> gain(kChannels, 0.75f), offset(kChannels, 3.0f);
  const ContractTerms terms = {.gain = gain, .offset = offset};
  for (MacLaneOrder order : {MacLaneOrder::kCiFastest, MacLaneOrder::kKernelFastest}) {
    Numerics n = NumericsOf("A13");
    n.mac_lane_order = order;
    Halfs many(lines * wide.out_w()), few(lines * narrow.out_w()), part(kLines * kFew);
    ForEachSimdTarget([&] {
      ExactConv(n, wide, x, w, terms, absl::MakeSpan(many));
      for (int64_t first = 0; first + kFew <= kWidth; ++first) {
        for (int64_t i = 0; i < kLines; ++i) {
          std::copy_n(x.begin() + i * kWidth + first, kFew, part.begin() + i * kFew);
        }
        ExactConv(n, narrow, part, w, terms, absl::MakeSpan(few));
        for (size_t i = 0; i < few.size(); ++i) {
          const int64_t line = static_cast<int64_t>(i) / narrow.out_w();
          ASSERT_EQ(few[i],
                    many[line * wide.out_w() + first + static_cast<int64_t>(i) % narrow.out_w()])
              << first << ' ' << i;
        }
      }
    });
  }
}

// As exact_half-inl.h says, computing in fp32 gives the same as one rounding, for both tie rules.
TEST(ExactElementwise, RoundsOnceAsInDouble) {
  for (const char* family : kExactFamilies) {
    const Numerics& n = NumericsOf(family);
    constexpr int64_t kCount = 1 << 16;
    Halfs a(kCount), b(kCount), y(kCount);
    std::mt19937 random(3);
    for (int64_t i = 0; i < kCount; ++i) {
      a[i].bits = static_cast<uint16_t>(i);
      b[i].bits = static_cast<uint16_t>(random());
      if (i % 3 == 0) b[i].bits = static_cast<uint16_t>((i & 0xfc00) ^ (random() & 0x8fff));
      if (IsNan(a[i])) a[i] = kHalfOne;
      if (IsNan(b[i])) b[i] = kHalfOne;
    }
    const Extents extents = {1, 1, 1, 1, kCount};
    for (auto [op, function] :
         {std::pair(
              BinaryOp::kAdd, +[](double x, double z) { return x + z; }),
          std::pair(
              BinaryOp::kSub, +[](double x, double z) { return x - z; }),
          std::pair(
              BinaryOp::kMul, +[](double x, double z) { return x * z; }),
          std::pair(
              BinaryOp::kDiv, +[](double x, double z) { return x / (z == 0 ? 0.0 : z); })}) {
      ExactBinary(n, op, a, extents, b, extents, absl::MakeSpan(y), extents);
      for (int64_t i = 0; i < kCount; ++i) {
        const Half want = Stored(function(ToDouble(a[i]), ToDouble(b[i])), n);
        ASSERT_EQ(y[i], want) << family << " " << static_cast<int>(op) << ": " << ToFloat(a[i])
                              << ", " << ToFloat(b[i]) << ": got " << ToFloat(y[i]) << ", want "
                              << ToFloat(want);
      }
    }
  }
}

}  // namespace
}  // namespace anemone::math
