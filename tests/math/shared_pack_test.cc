// Packed constants are shared by id and layout, while someone holds them.
#include "math/core/shared_pack.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "math/conv/conv_state.h"
#include "math/gemm/gemm.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

PackedMatrix Packed(ConstantId id, int64_t k, int64_t n, const std::vector<Half>& values,
                    MatrixOrder order = MatrixOrder::kRowMajor) {
  return PackMatrix(
      k, n, order,
      [&](int64_t first, absl::Span<Half> to) {
        std::copy_n(values.data() + first, to.size(), to.data());
      },
      nullptr, id);
}

TEST(SharedPack, EqualConstantsOfOneLayoutAreOne) {
  const std::vector<Half> values(64 * 32, kHalfOne);
  const PackedMatrix one = Packed({1, 2}, 64, 32, values);
  EXPECT_EQ(&Packed({1, 2}, 64, 32, values).state(), &one.state());
  EXPECT_NE(&Packed({1, 2}, 32, 64, values).state(), &one.state());
  EXPECT_NE(&Packed({1, 3}, 64, 32, values).state(), &one.state());
  EXPECT_NE(&Packed({}, 64, 32, values).state(), &Packed({}, 64, 32, values).state());
}

// A prompt is multiplied by the matrix of the file, a single token by its transpose, as the kernel
// of a convolution.
TEST(SharedPack, AMatrixInRowsIsItsTransposeInColumns) {
  const std::vector<Half> values(64 * 32, kHalfOne);
  const ConstantId id{3, 4};
  const PackedMatrix rows = Packed(id, 64, 32, values);
  const MatrixOrder columns = MatrixOrder::kColumnMajor;
  EXPECT_EQ(&Packed(id.Derived({64}), 64, 32, values, columns).state(), &rows.state());
  EXPECT_NE(&Packed(id, 64, 32, values, columns).state(), &rows.state());
  const ConvShape token{.in_channels = 64, .out_channels = 32, .in_major = true};
  const auto read = [&](int64_t first, absl::Span<Half> to) {
    std::copy_n(values.data() + first, to.size(), to.data());
  };
  const PackedConv conv = PackConv(token, read, {}, nullptr, id);
  EXPECT_EQ(&conv.state().weights->matrix.state(), &rows.state());
}

TEST(SharedPack, ConvolutionsOfAnySizeShareTheirWeights) {
  const std::vector<Half> values(64 * 64 * 9, kHalfOne);
  const auto packed = [&](int64_t side, int64_t kernel, ConstantId id) {
    const ConvShape shape{.in_channels = 64,
                          .in_h = side,
                          .in_w = side,
                          .out_channels = 64,
                          .window = {.kernel_h = kernel, .kernel_w = kernel}};
    return PackConv(
        shape,
        [&](int64_t first, absl::Span<Half> to) {
          std::copy_n(values.data() + first, to.size(), to.data());
        },
        {}, nullptr, id);
  };
  const PackedConv small = packed(40, 3, {5, 6}), large = packed(60, 3, {5, 6});
  EXPECT_EQ(small.state().weights, large.state().weights);
  EXPECT_NE(packed(60, 1, {5, 6}).state().weights, large.state().weights);
}

TEST(SharedPack, IsFreedWithItsLastHolder) {
  int made = 0;
  const auto pack = [&] { return SharedPack<int>({.id = {7, 7}}, [&] { return ++made; }); };
  auto first = pack();
  EXPECT_EQ(pack(), first);
  EXPECT_EQ(made, 1);
  first.reset();
  EXPECT_EQ(*pack(), 2);
}

TEST(SharedPack, ThreadsGetOne) {
  std::vector<std::shared_ptr<const std::vector<int>>> got(8);
  std::vector<std::thread> threads;
  threads.reserve(got.size());
  for (auto& each : got) {
    threads.emplace_back([&each] {
      for (int i = 0; i < 1000; ++i) {  // more keys than are kept
        each = SharedPack<std::vector<int>>({.id = {9, static_cast<uint64_t>(i)}},
                                            [&] { return std::vector<int>(4, i); });
        ASSERT_EQ(each->front(), i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : got) EXPECT_EQ(each, got.front());
}

TEST(ConstantId, DerivedIdsDiffer) {
  const ConstantId id{1, 2};
  EXPECT_NE(id.Derived({1, 2}), id.Derived({2, 1}));
  EXPECT_NE(id.Derived({1}), id.Derived({1, 0}));
  EXPECT_NE(id.Derived({}), id);
  EXPECT_EQ(id.Derived({3}), id.Derived({3}));
  EXPECT_FALSE(ConstantId().Derived({3}).is_known());
}

}  // namespace
}  // namespace anemone::math
