#include "base/known_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace anemone {
namespace {

// The elements of a file that is mapped for this tensor.
Tensor MappedFloats(const std::string& path, const std::vector<float>& floats) {
  ::unlink(path.c_str());
  std::ofstream(path).write(reinterpret_cast<const char*>(floats.data()),
                            static_cast<std::streamsize>(floats.size() * sizeof(float)));
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return {};
  const auto count = static_cast<int64_t>(floats.size());
  return Tensor::View(DataType::kFloat, {count}, (*file)->bytes(), *file);
}

TEST(KnownLimits, OfAFileAreKeptWhileItIsMapped) {
  const std::string path = testing::TempDir() + "/known_limits_test";
  const std::vector<float> floats(100000, 1.5f);
  const Tensor first = MappedFloats(path, floats);
  EXPECT_FALSE(KnownLimits(first).has_value());
  KeepLimits(first, {.low = 1, .high = 2, .has_nan = true});
  ASSERT_TRUE(KnownLimits(first).has_value());
  EXPECT_EQ(KnownLimits(first)->low, 1);
  EXPECT_EQ(KnownLimits(first)->high, 2);
  EXPECT_TRUE(KnownLimits(first)->has_nan);
  const Tensor view = Tensor::View(DataType::kFloat, {1000, 100}, first.bytes(), first.owner());
  EXPECT_TRUE(KnownLimits(view).has_value());
  // A part of it is another constant, and so is a type of other elements at its place.
  EXPECT_FALSE(KnownLimits(Tensor::View(DataType::kFloat, {50000}, first.bytes().subspan(0, 200000),
                                        first.owner()))
                   .has_value());
  EXPECT_FALSE(KnownLimits(Tensor::View(DataType::kInt32, {100000}, first.bytes(), first.owner()))
                   .has_value());
  ::unlink(path.c_str());
}

TEST(KnownLimits, OfAnotherFileAtTheSamePlaceAreNotTaken) {
  const std::string path = testing::TempDir() + "/known_limits_test_2";
  for (int i = 0; i < 10; ++i) {
    const Tensor mapped = MappedFloats(path, std::vector<float>(50000, static_cast<float>(i)));
    EXPECT_FALSE(KnownLimits(mapped).has_value()) << i;
    KeepLimits(mapped, {});
    EXPECT_TRUE(KnownLimits(mapped).has_value()) << i;
  }
  ::unlink(path.c_str());
}

TEST(KnownLimits, OfAConstantCopyAreReadOnce) {
  Tensor given = Tensor::Floats({50000}, std::vector<float>(50000, 1.0f));
  const Tensor copy = ConstantCopy(given);
  EXPECT_EQ(copy.dims(), given.dims());
  EXPECT_NE(copy.bytes().data(), given.bytes().data());
  EXPECT_FALSE(KnownLimits(copy).has_value());
  EXPECT_EQ(KnownOrReadLimits(copy).high, 1);
  EXPECT_EQ(KnownLimits(copy.Reshaped({500, 100}))->high, 1);
  // Its memory may be of another tensor later.
  for (int i = 0; i < 10; ++i) {
    const Tensor next =
        ConstantCopy(Tensor::Floats({50000}, std::vector<float>(50000, static_cast<float>(i))));
    EXPECT_EQ(KnownOrReadLimits(next).high, i);
  }
  EXPECT_EQ(ConstantCopy(Tensor::Floats({2}, {3, 4})).data<float>()[1], 4);
}

TEST(KnownLimits, OfOtherMemoryAreNotKept) {
  const Tensor own = Tensor::Floats({50000}, std::vector<float>(50000, 1.0f));
  KeepLimits(own, {});  // its owner may write it again
  EXPECT_FALSE(KnownLimits(own).has_value());
  const float one = 1;
  const Tensor fill = Tensor::Fill(DataType::kFloat, {50000}, std::as_bytes(std::span(&one, 1)));
  KeepLimits(fill, {});
  EXPECT_FALSE(KnownLimits(fill).has_value());
}

}  // namespace
}  // namespace anemone
