#include "engine/dims.h"

#include <gtest/gtest.h>

namespace anemone {
namespace {

TEST(Dims, EveryRankHasItsPlaces) {
  EXPECT_EQ(PlaceShape({}), (Dims{{1, 1, 1, 1, 1}}));
  EXPECT_EQ(PlaceShape({7}), (Dims{{1, 1, 1, 1, 7}}));
  EXPECT_EQ(PlaceShape({2, 7}), (Dims{{1, 1, 1, 2, 7}}));
  EXPECT_EQ(PlaceShape({2, 3, 7}), (Dims{{2, 1, 3, 1, 7}}));
  EXPECT_EQ(PlaceShape({2, 3, 5, 7}), (Dims{{2, 1, 3, 5, 7}}));
  EXPECT_EQ(PlaceShape({2, 3, 4, 5, 7}), (Dims{{2, 4, 3, 5, 7}}));  // ONNX has N, C, D, H, W
}

TEST(Dims, PrintsDepthOnlyWhereThereIsSome) {
  EXPECT_EQ(DimsToString(MakeDims(1, 64, 56, 56)), "1x64x56x56");
  EXPECT_EQ(DimsToString(Dims{{1, 2, 3, 4, 5}}), "1x2x3x4x5");
}

}  // namespace
}  // namespace anemone
