#include "engine/surface.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace anemone {
namespace {

TEST(Surface, RowsStartAtMultiplesOf64Bytes) {
  SurfaceLayout layout = LayoutOf(MakeDims(2, 3, 5, 7), Format::kFloat16);
  EXPECT_EQ(layout.strides[3], 32);  // 7 halves are 14 bytes, padded to 64
  EXPECT_EQ(layout.strides[2], 32 * 5);
  EXPECT_EQ(layout.bytes(), 2 * 3 * 5 * 64);
  EXPECT_FALSE(layout.is_dense());
  EXPECT_TRUE(LayoutOf(MakeDims(2, 3, 5, 32), Format::kFloat16).is_dense());
  EXPECT_TRUE(LayoutOf(MakeDims(1, 1, 1, 7), Format::kFloat16).is_dense());
  EXPECT_EQ(LayoutOf(MakeDims(1, 1, 2, 65), Format::kUInt8).strides[3], 128);
}

TEST(Surface, IsAtLeast48KiBAndZeroed) {
  auto surface = Surface::Allocate(100);
  ASSERT_TRUE(surface.ok()) << surface.status();
  EXPECT_EQ(surface->bytes(), 48 * 1024);
  for (int64_t i = 0; i < surface->bytes(); ++i) ASSERT_EQ(surface->data()[i], std::byte{0});
}

TEST(Surface, IsSharedThroughItsHandle) {
  auto surface = Surface::Allocate(4096);
  ASSERT_TRUE(surface.ok()) << surface.status();
  void* other = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, surface->handle(), 0);
  ASSERT_NE(other, MAP_FAILED);
  std::memcpy(surface->data(), "anemone", 8);
  EXPECT_STREQ(static_cast<const char*>(other), "anemone");
  munmap(other, 4096);
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
