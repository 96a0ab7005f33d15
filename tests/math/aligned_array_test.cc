// Arrays of weights are zeroed, lie side by side in areas, and give their memory back.
#include "math/core/aligned_array.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace anemone::math {
namespace {

constexpr int64_t kMega = int64_t{1} << 20;

using Bytes = AlignedArray<std::byte>;

// After this one, a process has more weights than a few: the next blocks are in areas.
Bytes FewBytes() { return Bytes(4 * kMega); }

bool IsZero(const Bytes& array) {
  return std::all_of(array.data(), array.data() + array.size(),
                     [](std::byte b) { return b == std::byte{0}; });
}

void Fill(Bytes& array, int value) {
  std::fill_n(array.data(), array.size(), static_cast<std::byte>(value));
}

enum class Page { kUnmapped, kNotTouched, kTouched };

Page PageAt(std::byte* place) {
  const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char touched = 0;
  if (mincore(place - reinterpret_cast<uintptr_t>(place) % size, size, &touched) != 0) {
    EXPECT_EQ(errno, ENOMEM);
    return Page::kUnmapped;
  }
  return (touched & 1) != 0 ? Page::kTouched : Page::kNotTouched;
}

TEST(AlignedArray, IsZeroedAndAligned) {
  for (int round = 0; round < 2; ++round) {
    std::vector<Bytes> held;
    for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{100}, kMega / 64 - 1, kMega / 64,
                               kMega, 3 * kMega, 2 * kMega, kMega / 8 + 1, 20 * kMega, 5 * kMega}) {
      held.emplace_back(size);
      EXPECT_EQ(held.back().size(), size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(held.back().data()) % 128, 0) << size;
      EXPECT_TRUE(IsZero(held.back())) << size;
      Fill(held.back(), 0x55);  // must not be found in the second round
    }
  }
}

TEST(AlignedArray, BlocksOfAnAreaLieSideBySide) {
  const Bytes few = FewBytes();
  const Bytes first(kMega), second(kMega / 2), third(kMega);
  EXPECT_EQ(second.data() - first.data(), kMega + 128);
  EXPECT_EQ(third.data() - second.data(), kMega / 2 + 128);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % (2 * kMega), 0);
}

TEST(AlignedArray, FewWeightsHaveNoArea) {
  const Bytes array(kMega / 2);
  EXPECT_NE(reinterpret_cast<uintptr_t>(array.data()) % (2 * kMega), 0);
}

TEST(AlignedArray, WhatAnAreaHasLeftIsUsed) {
  const Bytes few = FewBytes();
  const Bytes first(40 * kMega), second(40 * kMega);  // an area is at least 64 MB
  const Bytes third(kMega);
  EXPECT_EQ(third.data() - first.data(), 40 * kMega + 128);
}

TEST(AlignedArray, AnAreaGoesWithItsLastBlock) {
  const Bytes few = FewBytes();
  Bytes first(kMega), second(kMega);
  Fill(first, 1);
  Fill(second, 2);
  std::byte* const in_first = first.data() + kMega / 2;
  std::byte* const in_second = second.data() + kMega / 2;
  EXPECT_EQ(PageAt(in_first), Page::kTouched);
  first = Bytes();
  EXPECT_EQ(PageAt(in_first), Page::kNotTouched);
  EXPECT_EQ(PageAt(in_second), Page::kTouched);
  EXPECT_EQ(*in_second, std::byte{2});
  second = Bytes();
  EXPECT_EQ(PageAt(in_first), Page::kUnmapped);
  EXPECT_EQ(PageAt(in_second), Page::kUnmapped);
}

TEST(AlignedArray, MovesWithItsMemory) {
  const Bytes few = FewBytes();
  Bytes first(kMega);
  Fill(first, 3);
  const std::byte* const data = first.data();
  Bytes second = std::move(first);
  EXPECT_EQ(second.data(), data);
  second = Bytes(kMega);
  EXPECT_TRUE(IsZero(second));
  EXPECT_NE(second.data(), data);
}

TEST(AlignedArray, ThreadsHaveTheirOwnBlocks) {
  const auto work = [](int thread) {
    std::vector<Bytes> held(8);
    for (int i = 0; i < 200; ++i) {
      Bytes& array = held[(i * 7 + thread) % held.size()];
      const auto is_own = [&](std::byte b) { return b == static_cast<std::byte>(thread + 1); };
      EXPECT_TRUE(std::all_of(array.data(), array.data() + array.size(), is_own));
      array = Bytes(kMega / 64 * (1 + (i * 5 + thread) % 40));
      EXPECT_TRUE(IsZero(array));
      Fill(array, thread + 1);
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace anemone::math
