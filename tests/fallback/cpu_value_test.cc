// Values converted to ONNX Runtime's and back are unchanged, and not copied if possible.
#include "fallback/cpu_value.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "tests/fallback/graph_builder.h"

namespace anemone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CpuValue, ATensorIsAViewBothWays) {
  const Tensor tensor = Tensor::Floats({2, 2}, {1, 2, 3, 4});
  const CpuValue value = ToValue(Runtime(), tensor);
  EXPECT_EQ(value.kind(), CpuValue::Kind::kTensor);
  const Tensor back = *value.ToTensor();
  EXPECT_EQ(back.bytes().data(), tensor.bytes().data());
  EXPECT_THAT(back.dims(), ElementsAre(2, 2));
}

TEST(CpuValue, KeepsAliveWhatItNeeds) {
  Tensor back;
  {
    const CpuValue value = ToValue(Runtime(), Tensor::Floats({3}, {1, 2, 3}));
    back = *value.ToTensor();
  }
  EXPECT_EQ(back.at<float>(2), 3);
}

TEST(CpuValue, MisalignedBytesAreCopied) {
  alignas(8) std::array<std::byte, 9> bytes;
  const float numbers[] = {5, 6};
  std::memcpy(bytes.data() + 1, numbers, sizeof(numbers));
  const Tensor view = Tensor::View(DataType::kFloat, {2}, {bytes.data() + 1, 8}, nullptr);
  const CpuValue value = ToValue(Runtime(), view);
  EXPECT_NE(value.ToTensor()->bytes().data(), view.bytes().data());
  EXPECT_THAT(ToFloats(value), ElementsAre(5, 6));
}

TEST(CpuValue, AMisalignedTableOfAFileIsCopiedPieceByPiece) {
  std::vector<float> numbers((5 << 20) / sizeof(float) * 2 + 3);  // more than two pieces
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const std::string path = testing::TempDir() + "/misaligned_table";
  {
    std::ofstream file(path, std::ios::binary);
    file << 'x';
    file.write(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  }
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto count = static_cast<int64_t>(numbers.size());
  const Tensor view = Tensor::View(DataType::kFloat, {count}, (*file)->bytes().subspan(1), *file);
  const Tensor back = *ToValue(Runtime(), view).ToTensor();
  EXPECT_EQ(back.bytes(), view.bytes());  // the pages are read from the file again
  std::remove(path.c_str());
}

TEST(CpuValue, AFillIsWrittenOut) {
  const float half = 0.5f;
  const Tensor fill = Tensor::Fill(DataType::kFloat, {3},
                                   {reinterpret_cast<const std::byte*>(&half), sizeof(half)});
  EXPECT_THAT(ToFloats(ToValue(Runtime(), fill)), ElementsAre(0.5, 0.5, 0.5));
}

TEST(CpuValue, EveryTypeGoesThroughOrIsRefusedByName) {
  int taken = 0;
  for (int32_t number = 0; number <= kLastDataType; ++number) {
    const DataType type = static_cast<DataType>(number);
    const auto value = CpuValue::FromTensor(Runtime(), Tensor::Zeros(type, {3, 1}));
    if (!CpuValue::Takes(*Runtime(), type)) {
      EXPECT_THAT(value, StatusIs(absl::StatusCode::kUnimplemented,
                                  HasSubstr(std::string(DataTypeName(type)))));
      continue;
    }
    ++taken;
    ASSERT_TRUE(value.ok()) << value.status();
    const auto back = value->ToTensor();
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->type(), type);
    EXPECT_EQ(back->bytes().size(), ByteSize(type, back->dims()));
  }
  // All except undefined, the two complex types, and types that an older ONNX Runtime does not
  // know.
  const bool is_oldest = Runtime()->version().rfind("1.23.", 0) == 0;
  EXPECT_EQ(taken, is_oldest ? 20 : 24);
}

TEST(CpuValue, AFillOfHalfBytesIsPacked) {
  const std::byte three{3};
  const Tensor fill = Tensor::Fill(DataType::kUInt4, {3}, {&three, 1});
  const Tensor back = *ToValue(Runtime(), fill).ToTensor();
  ASSERT_EQ(back.bytes().size(), 2);
  EXPECT_EQ(back.bytes()[0], std::byte{0x33});
}

TEST(CpuValue, EmptyTensorsAndScalars) {
  EXPECT_THAT(ToFloats(ToValue(Runtime(), Tensor::Zeros(DataType::kFloat, {0, 4}))), ElementsAre());
  const Tensor scalar = *ToValue(Runtime(), Tensor::Floats({}, {7})).ToTensor();
  EXPECT_TRUE(scalar.dims().empty());
  EXPECT_EQ(scalar.at<float>(0), 7);
}

TEST(CpuValue, StringsBothWays) {
  const std::vector<std::string> strings = {"", "a", std::string("n\0l", 3), "größer"};
  const CpuValue value = ToValue(Runtime(), Tensor::Strings({2, 2}, strings));
  const Tensor back = *value.ToTensor();
  EXPECT_EQ(back.strings(), strings);
  EXPECT_THAT(back.dims(), ElementsAre(2, 2));
  EXPECT_TRUE(ToValue(Runtime(), Tensor::Strings({0}, {})).ToTensor()->strings().empty());
}

TEST(CpuValue, ASequenceHasElements) {
  const auto runtime = Runtime();
  const std::vector<CpuValue> parts = {ToValue(runtime, Tensor::Floats({1}, {1})),
                                       ToValue(runtime, Tensor::Floats({2}, {2, 3}))};
  const auto sequence = CpuValue::Sequence(runtime, parts);
  ASSERT_TRUE(sequence.ok()) << sequence.status();
  EXPECT_EQ(sequence->kind(), CpuValue::Kind::kSequence);
  const auto elements = sequence->Elements();
  ASSERT_TRUE(elements.ok()) << elements.status();
  ASSERT_EQ(elements->size(), 2);
  EXPECT_THAT(ToFloats((*elements)[1]), ElementsAre(2, 3));
}

TEST(CpuValue, KindsAreNotMixedUp) {
  EXPECT_EQ(CpuValue().kind(), CpuValue::Kind::kNothing);
  EXPECT_THAT(CpuValue().ToTensor(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("want a tensor")));
  EXPECT_THAT(
      ToValue(Runtime(), Tensor::Floats({1}, {1})).Elements(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("want a sequence or a map")));
  EXPECT_THAT(
      CpuValue::Sequence(Runtime(), {CpuValue()}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sequence: want tensors or maps")));
}

TEST(CpuValue, OutputMemoryMustFit) {
  alignas(8) std::array<std::byte, 16> bytes;
  const auto over = [&](DataType type, int64_t size, absl::Span<std::byte> memory) {
    return CpuValue::OverMemory(Runtime(), type, {size}, memory).status();
  };
  EXPECT_TRUE(over(DataType::kFloat, 4, absl::MakeSpan(bytes)).ok());
  EXPECT_THAT(over(DataType::kFloat, 3, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want 12 bytes aligned for float32 3, found 16")));
  EXPECT_THAT(
      over(DataType::kFloat, 3, {bytes.data() + 2, 12}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("output memory: want 12 bytes")));
  EXPECT_THAT(over(DataType::kFloat, int64_t{1} << 62, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overflows")));
}

}  // namespace
}  // namespace anemone
