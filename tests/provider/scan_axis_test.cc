// Slices tensors along an axis and stacks them again.
#include "provider/buckets/scan_axis.h"

#include <gmock/gmock.h>

#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Counting(std::vector<int64_t> dims) {
  Tensor t = Tensor::Zeros(DataType::kInt64, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i) t.mutable_data<int64_t>()[i] = i;
  return t;
}

TEST(ScanAxis, SlicesAreWhatLiesAtAnIndex) {
  const Tensor t = Counting({2, 3, 2});
  EXPECT_THAT(SliceAt(t, 0, 1)->data<int64_t>(), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(SliceAt(t, 1, 2)->data<int64_t>(), ElementsAre(4, 5, 10, 11));
  EXPECT_THAT(SliceAt(t, 2, 0)->data<int64_t>(), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(SliceAt(t, 1, 2)->dims(), ElementsAre(2, 2));
}

TEST(ScanAxis, TheFirstAxisIsNotCopied) {
  const Tensor t = Counting({4, 3});
  EXPECT_EQ(SliceAt(t, 0, 2)->bytes().data(), t.bytes().data() + 6 * sizeof(int64_t));
}

TEST(ScanAxis, StacksUndoSlices) {
  const Tensor t = Counting({3, 4, 2});
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<Tensor> parts;
    parts.reserve(t.dims()[axis]);
    for (int64_t i = 0; i < t.dims()[axis]; ++i) parts.push_back(*SliceAt(t, axis, i));
    const auto stack = StackAt(parts, axis);
    ASSERT_TRUE(stack.ok()) << stack.status();
    EXPECT_EQ(stack->dims(), t.dims());
    EXPECT_EQ(stack->data<int64_t>(), t.data<int64_t>()) << axis;
  }
}

TEST(ScanAxis, StringsAndFillsAreTakenToo) {
  const Tensor words = Tensor::Strings({2, 2}, {"a", "b", "c", "d"});
  EXPECT_THAT(SliceAt(words, 1, 1)->strings(), ElementsAre("b", "d"));
  EXPECT_THAT(StackAt({*SliceAt(words, 1, 1), *SliceAt(words, 1, 0)}, 1)->strings(),
              ElementsAre("b", "a", "d", "c"));
  const int64_t seven = 7;
  const Tensor fill = Tensor::Fill(DataType::kInt64, {5, 2},
                                   {reinterpret_cast<const std::byte*>(&seven), sizeof(seven)});
  EXPECT_TRUE(SliceAt(fill, 0, 4)->is_fill());
  EXPECT_THAT(StackAt({*SliceAt(fill, 0, 4)}, 0)->data<int64_t>(), ElementsAre(7, 7));
}

TEST(ScanAxis, RefusesWhatDoesNotFit) {
  EXPECT_THAT(
      StackAt({Counting({2}), Counting({3})}, 0),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("iterations made it 2 and 3")));
  EXPECT_THAT(SliceAt(Tensor::Zeros(DataType::kInt4, {2, 3}), 0, 1),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("int4")));
}

}  // namespace
}  // namespace anemone
