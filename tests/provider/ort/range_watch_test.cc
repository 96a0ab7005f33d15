#include "provider/ort/range_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace anemone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
const std::byte* BytesOf(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST(RangeWatch, CountsInfinitiesAndNans) {
  const std::vector<float> floats = {0, -1, 3.4e38f, kInf, -kInf, kNan, 1e-40f};
  EXPECT_EQ(CountNotFinite(DataType::kFloat, BytesOf(floats), 7), 3);
  const std::vector<uint16_t> halves = {0, 0x8000, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xffff};
  EXPECT_EQ(CountNotFinite(DataType::kFloat16, BytesOf(halves), 8), 4);
  const std::vector<uint16_t> brains = {0, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0};
  EXPECT_EQ(CountNotFinite(DataType::kBFloat16, BytesOf(brains), 6), 3);
  const std::vector<int64_t> integers = {-1, int64_t{0x7f800000}};
  EXPECT_EQ(CountNotFinite(DataType::kInt64, BytesOf(integers), 2), 0);
}

// As math::ToHalf() rounds: 65520 and more become infinity. Infinities were infinite before.
TEST(RangeWatch, CountsFiniteNumbersThatFp16RoundsToInfinity) {
  const std::vector<float> floats = {65504, 65519.99f, 65520, -65520, 1e30f, kInf, -kInf, kNan};
  EXPECT_EQ(CountClipped(DataType::kFloat, BytesOf(floats), 8), 3);
  const std::vector<uint16_t> brains = {0x477f, 0x4780, 0xc780, 0x7f7f, 0x7f80, 0xffc0};
  EXPECT_EQ(CountClipped(DataType::kBFloat16, BytesOf(brains), 6), 3);
  const std::vector<uint16_t> halves = {0x7bff, 0x7c00};
  EXPECT_EQ(CountClipped(DataType::kFloat16, BytesOf(halves), 2), 0);
}

TEST(RangeWatch, WarnsOnceOfInputsAndOnceOfOutputs) {
  std::vector<std::string> lines;
  RangeWatch watch([&](const std::string& line) { lines.push_back(line); });
  const std::vector<float> fine = {1, 2}, bad = {1, kInf}, large = {1, 1e6f};
  const auto tensor = [](const std::vector<float>& values) {
    return Tensor::View(DataType::kFloat, {2}, {BytesOf(values), 8}, nullptr);
  };
  watch.Input(tensor(fine), "x", "Conv");
  watch.Output(DataType::kFloat, BytesOf(fine), 2, "y", "Conv");
  EXPECT_THAT(lines, ElementsAre());
  for (int i = 0; i < 2; ++i) {
    watch.Input(tensor(large), "x\n", "Conv");
    watch.Output(DataType::kFloat, BytesOf(bad), 2, "y", "");
  }
  EXPECT_THAT(lines, ElementsAre(HasSubstr("1 of 2 values of 'x\\n' are above 65504"),
                                 HasSubstr("1 of 2 values of 'y' are not finite")));
  EXPECT_THAT(lines[0], HasSubstr("policy=refuse:Conv"));
  EXPECT_THAT(lines[1], Not(HasSubstr("policy")));
}

}  // namespace
}  // namespace anemone
