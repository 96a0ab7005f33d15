#include "engine/surface.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace anemone {
namespace {

TEST(Surface, RowsStartAtMultiplesOf64Bytes) {
  const auto padded = [](const Dims& dims, Format format) {
    return LayoutOf(dims, format, Route::kNetplist);
  };
  SurfaceLayout layout = padded(MakeDims(2, 3, 5, 7), Format::kFloat16);
  EXPECT_EQ(layout.strides[3], 32);  // 7 halves are 14 bytes, padded to 64
  EXPECT_EQ(layout.strides[2], 32 * 5);
  EXPECT_EQ(layout.bytes(), 2 * 3 * 5 * 64);
  EXPECT_FALSE(layout.is_dense());
  EXPECT_TRUE(padded(MakeDims(2, 3, 5, 32), Format::kFloat16).is_dense());
  EXPECT_TRUE(padded(MakeDims(1, 1, 1, 7), Format::kFloat16).is_dense());
  EXPECT_EQ(padded(MakeDims(1, 1, 2, 65), Format::kUInt8).strides[3], 128);
}

// One token, which Orion found too small to be evaluated (orion.json 4). In rows of 64 bytes it
// would have 49,152 bytes and be large enough.
TEST(Surface, IsPackedOnTheConversionRoute) {
  const SurfaceLayout token = LayoutOf(MakeDims(1, 768, 1, 1), Format::kFloat16, Route::kMil);
  EXPECT_EQ(token.bytes(), 768 * 2);
  EXPECT_EQ(LayoutOf(MakeDims(1, 768, 1, 1), Format::kFloat16, Route::kNetplist).bytes(), 49152);
  const SurfaceLayout layout = LayoutOf(MakeDims(2, 3, 5, 7), Format::kFloat16, Route::kMil);
  EXPECT_EQ(layout.strides[3], 7);
  EXPECT_EQ(layout.strides[0], 3 * 5 * 7);
  EXPECT_TRUE(layout.is_dense());
  EXPECT_EQ(LayoutOf(MakeDims(1, 1, 2, 65), Format::kUInt8, Route::kMil).strides[3], 65);
}

TEST(Surface, IsAsLargeAsAskedForAndZeroed) {
  auto surface = Surface::Allocate(100);
  ASSERT_TRUE(surface.ok()) << surface.status();
  EXPECT_EQ(surface->bytes(), 100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(surface->data()) % kSurfaceRowAlignment, 0);
  for (int64_t i = 0; i < surface->bytes(); ++i) ASSERT_EQ(surface->data()[i], std::byte{0});
}

TEST(Surface, MovesItsMemory) {
  auto surface = Surface::Allocate(4096);
  ASSERT_TRUE(surface.ok()) << surface.status();
  std::byte* data = surface->data();
  Surface moved = *std::move(surface);
  EXPECT_EQ(moved.data(), data);
}

}  // namespace
}  // namespace anemone
