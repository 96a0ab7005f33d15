#include "engine/constant_id.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "anemone/compressed.h"
#include "base/mapped_file.h"

namespace anemone {
namespace {

Tensor Floats(int64_t count, float value) {
  return Tensor::Floats({count}, std::vector<float>(count, value));
}

TEST(ConstantId, EqualElementsHaveOneId) {
  const Tensor one = Floats(1000, 1.5f);
  EXPECT_TRUE(IdOf(one).is_known());
  EXPECT_EQ(IdOf(one), IdOf(Floats(1000, 1.5f)));
  EXPECT_EQ(IdOf(one), IdOf(one.Reshaped({10, 100})));
  EXPECT_NE(IdOf(one), IdOf(Floats(1000, 2.5f)));
  EXPECT_NE(IdOf(one), IdOf(Floats(1001, 1.5f)));
  const Tensor integers = Tensor::View(DataType::kInt32, {1000}, one.bytes(), one.owner());
  EXPECT_NE(IdOf(one), IdOf(integers)) << "the same bytes of another type";
}

TEST(ConstantId, MemoryThatIsUsedAgainHasANewId) {
  math::ConstantId before;
  for (int i = 0; i < 100; ++i) {
    const math::ConstantId id = IdOf(Floats(1000, static_cast<float>(i)));
    EXPECT_NE(id, before);
    before = id;
  }
}

TEST(ConstantId, AFileIsIdentifiedByPlace) {
  const std::string path = testing::TempDir() + "/constant_id_test";
  std::ofstream(path) << std::string(1 << 20, 'x');  // a small file is read, not mapped
  {
    auto file = MappedFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto part = [&](size_t first, size_t bytes) {
      return IdOf(Tensor::View(DataType::kUInt8, {static_cast<int64_t>(bytes)},
                               (*file)->bytes().subspan(first, bytes), *file));
    };
    EXPECT_EQ(part(0, 4096), part(0, 4096));
    EXPECT_NE(part(0, 4096), part(4096, 4096)) << "the bytes were read";
    EXPECT_NE(part(0, 4096), part(0, 2048));
  }
  std::remove(path.c_str());
}

TEST(ConstantId, CompressedOnesByCodesAndScales) {
  const auto coded = [](int8_t code, float scale) {
    const Tensor codes =
        Tensor::Of<int8_t>(DataType::kInt8, {4, 512}, std::vector<int8_t>(2048, code));
    const Tensor scales = Tensor::Floats({4}, {scale, scale, scale, scale});
    auto made = Compressed::Affine(codes, scales, {},
                                   *ScaleGrid::Of(codes.dims(), scales.dims(), /*axis=*/0, 0));
    EXPECT_TRUE(made.ok()) << made.status();
    return IdOf(Tensor::Of({4, 512}, *made));
  };
  EXPECT_TRUE(coded(3, 0.5f).is_known());
  EXPECT_EQ(coded(3, 0.5f), coded(3, 0.5f));
  EXPECT_NE(coded(3, 0.5f), coded(4, 0.5f));
  EXPECT_NE(coded(3, 0.5f), coded(3, 0.25f));
}

TEST(ConstantId, WhatDoesNotPayIsNotKnown) {
  EXPECT_FALSE(IdOf(Floats(8, 1)).is_known());
  EXPECT_FALSE(IdOf(Tensor::Strings({1}, {"a"})).is_known());
  static const std::vector<float> kUnowned(1000);
  EXPECT_FALSE(
      IdOf(Tensor::View(DataType::kFloat, {1000},
                        {reinterpret_cast<const std::byte*>(kUnowned.data()), 4000}, nullptr))
          .is_known());
}

}  // namespace
}  // namespace anemone
