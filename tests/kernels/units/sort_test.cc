// Sort, and TopK in forms that ONNX's TopK is not lowered to: lanes that follow the order of other
// lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "tests/kernels/hidden/authored.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

constexpr const char* kAxisNames[] = {"Batch", "Channel", "Height", "Width"};

struct SortCase {
  std::string name;
  std::array<int64_t, 4> dims;  // N, C, H, W
  int sort = 3, vector = 1;     // indices into dims
  std::vector<int64_t> lanes = {0};
  bool descending = false;
  int64_t k = 0;  // K of a TopK; 0: a Sort
};

// Few different values, so that many elements are equal. Includes -0.
Tensor SmallNumbers(const std::array<int64_t, 4>& dims) {
  Tensor x = Tensor::Zeros(DataType::kFloat, {dims.begin(), dims.end()});
  std::mt19937 random(7);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int value = static_cast<int>(random() % 7) - 3;
    x.mutable_data<float>()[i] = value == 0 && random() % 2 ? -0.0f : 0.5f * value;
  }
  return x;
}

// The sorted indices along the sort axis, for the line that contains element `at`.
std::vector<int64_t> OrderAt(const SortCase& c, const std::vector<float>& x,
                             const std::array<int64_t, 4>& strides, int64_t at) {
  std::vector<int64_t> order(c.dims[c.sort]);
  std::iota(order.begin(), order.end(), 0);
  for (auto lane = c.lanes.rbegin(); lane != c.lanes.rend();
       ++lane) {  // the last lane has the least influence
    auto key = [&](int64_t i) {
      return x[at + i * strides[c.sort] + *lane * strides[c.vector]] * (c.descending ? -1 : 1);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return key(a) < key(b); });
  }
  order.resize(c.k == 0 ? order.size() : c.k);
  return order;
}

Tensor Reference(const SortCase& c, const Tensor& tensor, bool indices) {
  std::vector<float> x(tensor.elements());
  for (size_t i = 0; i < x.size(); ++i) x[i] = tensor.at<float>(i);
  std::array<int64_t, 4> strides, made = c.dims, made_strides;
  if (c.k != 0) made[c.sort] = c.k;
  if (indices) made[c.vector] = 1;
  for (int i = 3, next = 1, made_next = 1; i >= 0; --i) {
    strides[i] = next;
    made_strides[i] = made_next;
    next *= static_cast<int>(c.dims[i]);
    made_next *= static_cast<int>(made[i]);
  }
  Tensor y = Tensor::Zeros(DataType::kFloat, {made.begin(), made.end()});
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t line = 0, place = 0, lane = 0;
    for (int axis = 0; axis < 4; ++axis) {
      const int64_t at = i / made_strides[axis] % made[axis];
      (axis == c.sort     ? place
       : axis == c.vector ? lane
                          : line) += axis == c.sort || axis == c.vector ? at : at * strides[axis];
    }
    const int64_t from = OrderAt(c, x, strides, line)[place];
    y.mutable_data<float>()[i] = indices
                                     ? static_cast<float>(from)
                                     : x[line + from * strides[c.sort] + lane * strides[c.vector]];
  }
  return y;
}

Authored UnitOf(const SortCase& c, bool indices, const Tensor& x, const std::string& target) {
  Json keys = {{"SortDimension", kAxisNames[c.sort]},
               {"VectorDimension", kAxisNames[c.vector]},
               {"SortIndices", c.lanes},
               {"Indices", indices}};
  if (c.k == 0) {
    keys["Direction"] = c.descending ? "Descending" : "Ascending";
  } else {
    keys.update({{"Type", c.descending ? "Max" : "Min"}, {"K", c.k}});
  }
  return {c.k == 0 ? "Sort" : "TopK", keys, {InputOf(x)}, {}, target};
}

class SortTest : public testing::TestWithParam<SortCase> {};

TEST_P(SortTest, IsThePlainOrder) {
  const SortCase& c = GetParam();
  const Tensor x = SmallNumbers(c.dims);
  for (bool indices : {false, true}) {
    const Tensor want = Reference(c, x, indices);
    auto got = RunUnit(UnitOf(c, indices, x, "h14"));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->dims, PlaceShape(want.dims()));
    for (int64_t i = 0; i < want.elements(); ++i) {
      ASSERT_EQ(math::ToFloat(got->values[i]), want.at<float>(i))
          << i << (indices ? " of indices" : "");
    }
  }
}

const SortCase kSortCases[] = {
    {.name = "one_lane", .dims = {1, 1, 1, 50}},
    {.name = "one_element", .dims = {1, 3, 1, 1}},
    {.name = "all_channels_follow_one", .dims = {1, 5, 1, 37}, .lanes = {2}},
    {.name = "descending", .dims = {1, 5, 1, 37}, .lanes = {4}, .descending = true},
    {.name = "a_batch_of_planes", .dims = {2, 4, 3, 9}, .lanes = {1}},
    {.name = "along_height_by_a_column",
     .dims = {2, 3, 11, 4},
     .sort = 2,
     .vector = 3,
     .lanes = {3}},
    {.name = "along_channels_by_a_row",
     .dims = {2, 13, 3, 5},
     .sort = 1,
     .vector = 2,
     .lanes = {1},
     .descending = true},
    {.name = "along_the_batch", .dims = {6, 2, 3, 5}, .sort = 0, .vector = 1},
    {.name = "two_lanes", .dims = {1, 5, 2, 40}, .lanes = {3, 0}},
    {.name = "three_lanes_descending",
     .dims = {1, 5, 1, 60},
     .lanes = {1, 4, 2},
     .descending = true},
    {.name = "top_largest", .dims = {1, 5, 1, 37}, .lanes = {2}, .descending = true, .k = 5},
    {.name = "top_smallest", .dims = {1, 5, 1, 37}, .lanes = {2}, .k = 9},
    {.name = "top_of_all", .dims = {1, 2, 1, 12}, .lanes = {1}, .k = 12},
    {.name = "top_one", .dims = {3, 2, 2, 12}, .descending = true, .k = 1},
    {.name = "top_by_two_lanes",
     .dims = {1, 4, 1, 64},
     .lanes = {2, 0},
     .descending = true,
     .k = 20},
    {.name = "top_along_height",
     .dims = {1, 3, 16, 4},
     .sort = 2,
     .vector = 1,
     .lanes = {1},
     .k = 6},
};

INSTANTIATE_TEST_SUITE_P(Sort, SortTest, testing::ValuesIn(kSortCases),
                         [](const auto& info) { return info.param.name; });

TEST(SortTargets, A13RefusesToGenerateCode) {
  const SortCase c{.name = "", .dims = {1, 1, 1, 16}};
  const Tensor x = SmallNumbers(c.dims);
  EXPECT_THAT(RunUnit(UnitOf(c, false, x, "h13")).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, testing::HasSubstr("u")));
}

TEST(SortTargets, IndicesUpTo2047AreExact) {
  Tensor x = Tensor::Zeros(DataType::kFloat, {1, 1, 1, 2048});
  for (int64_t i = 0; i < 2048; ++i)
    x.mutable_data<float>()[i] = static_cast<float>(i * 797 % 2048);
  const SortCase c{.name = "", .dims = {1, 1, 1, 2048}};
  auto y = RunUnit(UnitOf(c, true, x, "h16"));
  ASSERT_TRUE(y.ok()) << y.status();
  for (int64_t i = 0; i < 2048; ++i) {
    EXPECT_EQ(x.at<float>(static_cast<int64_t>(math::ToFloat(y->values[i]))),
              static_cast<float>(i));
  }
}

}  // namespace
}  // namespace anemone
