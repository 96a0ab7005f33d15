#include "base/memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "anemone/tensor.h"
#include "base/guarded.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// Makes a tensor of `bytes` bytes, which the caller may keep.
absl::StatusOr<Tensor> MakeBytes(int64_t bytes) {
  return Guarded("make a tensor", [&]() -> absl::StatusOr<Tensor> {
    return Tensor::Zeros(DataType::kUInt8, {bytes});
  });
}

TEST(MemoryLimit, WithoutALimitNothingCounts) {
  const MemoryLimit none(0);
  EXPECT_TRUE(MakeBytes(kMiB).ok());
  EXPECT_EQ(TakeMemory(kMiB).use_count(), 0);
}

TEST(MemoryLimit, TheErrorNamesThePlaceTheSizesAndTheOption) {
  const MemoryLimit limit(3 * kMiB);
  const WorkPlace around([] { return std::string("graph 'g'"); });
  const auto kept = MakeBytes(2 * kMiB);
  ASSERT_TRUE(kept.ok());
  const WorkPlace place([] { return std::string("node 'pad' (Pad)"); });
  EXPECT_THAT(MakeBytes(2 * kMiB),
              StatusIs(StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("node 'pad' (Pad): planning needs 2.0 MiB more memory, "
                                       "beside 2.0 MiB; the memory limit is 3.0 MiB"),
                             HasSubstr("--memory-limit"))));
}

TEST(MemoryLimit, WhatIsFreedIsLeftAgain) {
  const MemoryLimit limit(3 * kMiB);
  std::optional<Tensor> first = *MakeBytes(2 * kMiB);
  const Tensor view = first->Reshaped({2, kMiB});
  first.reset();
  EXPECT_FALSE(MakeBytes(2 * kMiB).ok());  // the view keeps the bytes
  first = view;
  std::optional<Tensor> second = view;
  EXPECT_TRUE(MakeBytes(kMiB).ok());
}

TEST(MemoryLimit, SmallThingsCountWhereThereAreMany) {
  const MemoryLimit limit(1024, "a run");
  EXPECT_EQ(TakeMemory(1000).use_count(), 0);
  const auto kept = TakeAnyMemory(1000);
  EXPECT_THAT(Guarded("take memory",
                      []() -> absl::Status {
                        (void)TakeAnyMemory(1000);
                        return absl::OkStatus();
                      }),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("a run needs 1000 B more")));
}

TEST(MemoryLimit, AnotherThreadMayTakeItAlong) {
  const MemoryLimit limit(kMiB);
  bool is_limited = false;
  const auto work = WithMemoryLimit([&] { is_limited = !MakeBytes(2 * kMiB).ok(); });
  std::thread(work).join();
  EXPECT_TRUE(is_limited);
  std::thread([&] { is_limited = MemoryLimit::Current() != nullptr; }).join();
  EXPECT_FALSE(is_limited);
}

TEST(MemoryLimit, ATensorMayOutliveTheLimit) {
  std::optional<Tensor> tensor;
  {
    const MemoryLimit limit(2 * kMiB);
    tensor = *MakeBytes(kMiB);
  }
  EXPECT_TRUE(MakeBytes(4 * kMiB).ok());
  tensor.reset();
}

TEST(MemoryLimit, SmallThingsAndFillsAreFree) {
  const MemoryLimit limit(1);
  EXPECT_TRUE(MakeBytes(4000).ok());
  const float one = 1;
  const Tensor fill = Tensor::Fill(DataType::kFloat, {1 << 20, 1 << 20},
                                   {reinterpret_cast<const std::byte*>(&one), sizeof(one)});
  EXPECT_EQ(fill.elements(), int64_t{1} << 40);
  EXPECT_FALSE(MakeBytes(kMiB).ok());
}

TEST(MemoryLimit, OnlyTheOuterOneCountsAndNoneWhileItPauses) {
  const MemoryLimit outer(2 * kMiB);
  {
    const MemoryLimit inner(1);
    EXPECT_TRUE(MakeBytes(kMiB).ok());
  }
  EXPECT_FALSE(MakeBytes(4 * kMiB).ok());
  const MemoryLimit::Pause pause;
  EXPECT_TRUE(MakeBytes(4 * kMiB).ok());
}

TEST(MemoryLimit, BelongsToAThread) {
  const MemoryLimit limit(1);
  std::thread([] { EXPECT_TRUE(MakeBytes(kMiB).ok()); }).join();
}

}  // namespace
}  // namespace anemone
