// Weights of a CPU segment: read in place, copied only if necessary, and kept alive.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "fallback/cpu_segment.h"
#include "tests/fallback/graph_builder.h"

namespace anemone {
namespace {

// Anonymous memory of this process: weights in a mapped file are not counted.
int64_t AnonymousKiB() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "RssAnon:") break;
  }
  int64_t kib = 0;
  status >> kib;
  return kib;
}

// Replaces the mapped model file.
class ReplacedFile {
 public:
  explicit ReplacedFile(size_t size) : size_(size), fd_(memfd_create("weights", 0)) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(size)), 0);
    bytes_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    EXPECT_NE(bytes_, MAP_FAILED);
  }
  ~ReplacedFile() {
    munmap(bytes_, size_);
    close(fd_);
  }
  float* floats() const { return static_cast<float*>(bytes_); }
  absl::Span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(bytes_), size_};
  }

 private:
  size_t size_;
  int fd_;
  void* bytes_;
};

// y = weight[index], from a weight of `rows` x 256 in a mapped file.
struct Lookup {
  explicit Lookup(const Tensor& weight) {
    index = b.Tensor("index", DataType::kInt64, {1});
    y = b.Floats("y", {1, weight.dims()[1]});
    b.Add("Gather", {b.Constant("weight", weight), index}, {y});
  }
  float At(const CpuSegment& segment, int64_t row) const {
    const auto out = segment.Run({ToValue(Runtime(), Tensor::Int64s({1}, {row}))}, {{}});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? ToFloats((*out)[0])[0] : -1;
  }
  GraphBuilder b;
  ValueId index;
  ValueId y;
};

TEST(CpuSegmentWeights, ALargeWeightIsReadWhereItIs) {
  constexpr int64_t kRows = 128 * 1024;
  const ReplacedFile file(kRows * 256 * sizeof(float));  // 128 MiB
  file.floats()[5 * 256] = 42;
  const Lookup lookup(Tensor::View(DataType::kFloat, {kRows, 256}, file.bytes(), nullptr));
  const auto runtime = Runtime();
  const int64_t before = AnonymousKiB();
  const auto segment =
      CpuSegment::Create(runtime, lookup.b.graph, {0}, {lookup.index}, {lookup.y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ(lookup.At(**segment, 5), 42);
  EXPECT_LT(AnonymousKiB() - before, 32 * 1024);
  file.floats()[5 * 256] = 43;  // the session reads the file itself
  EXPECT_EQ(lookup.At(**segment, 5), 43);
}

TEST(CpuSegmentWeights, AMatrixIsCopiedOnlyWhenPrepacked) {
  constexpr int64_t kSize = 2048;
  const ReplacedFile file(kSize * kSize * sizeof(float));  // 16 MiB
  GraphBuilder b;
  const ValueId x = b.Floats("x", {1, kSize});
  const ValueId y = b.Floats("y", {1, kSize});
  const Tensor weight = Tensor::View(DataType::kFloat, {kSize, kSize}, file.bytes(), nullptr);
  b.Add("MatMul", {x, b.Constant("weight", weight)}, {y});
  Tensor ones = Tensor::Zeros(DataType::kFloat, {1, kSize});
  ones.mutable_data<float>()[0] = 1;
  for (const bool prepack : {false, true}) {
    file.floats()[0] = 1;
    CpuSegmentOptions options;
    options.session.prepack = prepack;
    const auto segment = CpuSegment::Create(Runtime(), b.graph, {0}, {x}, {y}, options);
    ASSERT_TRUE(segment.ok()) << segment.status();
    file.floats()[0] = 2;
    const auto out = (*segment)->Run({ToValue(Runtime(), ones)}, {{}});
    EXPECT_EQ(ToFloats((*out)[0])[0], prepack ? 1 : 2);
  }
}

TEST(CpuSegmentWeights, AMisalignedWeightIsCopied) {
  std::vector<std::byte> bytes(4 * 256 * sizeof(float) + 1);
  const float number = 9;
  std::memcpy(bytes.data() + 1 + 2 * 256 * sizeof(float), &number, sizeof(number));
  const Lookup lookup(
      Tensor::View(DataType::kFloat, {4, 256}, absl::MakeSpan(bytes).subspan(1), nullptr));
  const auto segment =
      CpuSegment::Create(Runtime(), lookup.b.graph, {0}, {lookup.index}, {lookup.y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ(lookup.At(**segment, 2), 9);
}

TEST(CpuSegmentWeights, KeepsItsWeightsAlive) {
  std::unique_ptr<CpuSegment> segment;
  {
    Tensor weight = Tensor::Zeros(DataType::kFloat, {4, 256});
    weight.mutable_data<float>()[256] = 5;
    const Lookup lookup(weight);
    auto created =
        CpuSegment::Create(Runtime(), lookup.b.graph, {0}, {lookup.index}, {lookup.y}, {});
    ASSERT_TRUE(created.ok()) << created.status();
    segment = *std::move(created);
  }
  const auto out = segment->Run({ToValue(Runtime(), Tensor::Int64s({1}, {1}))}, {{}});
  EXPECT_EQ(ToFloats((*out)[0])[0], 5);
}

// ONNX Runtime folds the transposes into the constant, but must not change ours.
TEST(CpuSegmentWeights, AWeightThatAnOptimizerWantsToChangeStaysAsItIs) {
  GraphBuilder b;
  Tensor weight = Tensor::Zeros(DataType::kFloat, {64, 32});
  weight.mutable_data<float>()[5 * 32 + 7] = 3;
  const ValueId x = b.Floats("x", {32, 64});
  const ValueId turned = b.Floats("turned", {64, 32});
  const ValueId sum = b.Floats("sum", {64, 32});
  const ValueId y = b.Floats("y", {32, 64});
  const Attribute perm{"perm", std::vector<int64_t>{1, 0}};
  b.Add("Transpose", {x}, {turned}, {perm});
  b.Add("Add", {b.Constant("weight", weight), turned}, {sum});
  b.Add("Transpose", {sum}, {y}, {perm});
  const auto segment = CpuSegment::Create(Runtime(), b.graph, {0, 1, 2}, {x}, {y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  const CpuValue zeros = ToValue(Runtime(), Tensor::Zeros(DataType::kFloat, {32, 64}));
  const auto out = (*segment)->Run({zeros}, {{}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(ToFloats((*out)[0])[7 * 64 + 5], 3);
}

// An optimizer rearranges the kernels of a convolution, and must be able to read them.
TEST(CpuSegmentWeights, AWeightThatAnOptimizerReads) {
  constexpr int64_t kChannels = 32;
  Tensor weight = Tensor::Zeros(DataType::kFloat, {kChannels, kChannels, 3, 3});
  for (int64_t c = 0; c < kChannels; ++c) {
    weight.mutable_data<float>()[(c * kChannels + c) * 9 + 4] = 2;  // twice the middle
  }
  GraphBuilder b;
  const ValueId x = b.Floats("x", {1, kChannels, 8, 8});
  const ValueId y = b.Floats("y", {1, kChannels, 8, 8});
  b.Add("Conv", {x, b.Constant("weight", weight)}, {y},
        {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  const auto segment = CpuSegment::Create(Runtime(), b.graph, {0}, {x}, {y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  Tensor in = Tensor::Zeros(DataType::kFloat, {1, kChannels, 8, 8});
  in.mutable_data<float>()[100] = 5;
  const auto out = (*segment)->Run({ToValue(Runtime(), in)}, {{}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(ToFloats((*out)[0])[100], 10);
}

// A constant of a type that the C API does not take is written in the model.
TEST(CpuSegmentWeights, ALargeConstantOfTheNewestTypes) {
  if (Runtime()->version() < "1.31") GTEST_SKIP() << "opset 25 needs ONNX Runtime 1.31";
  Tensor twos = Tensor::Zeros(DataType::kUInt2, {8192});
  twos.mutable_data<uint8_t>()[0] = 0b11'10'01'00;
  GraphBuilder b;
  const ValueId y = b.Floats("y", {8192});
  b.graph.nodes[b.Add("Cast", {b.Constant("twos", twos)}, {y}, {Int("to", 1)})].version = 25;
  const auto segment = CpuSegment::Create(Runtime(), b.graph, {0}, {}, {y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  const auto out = (*segment)->Run({}, {{}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(ToFloats((*out)[0])[3], 3);
}

}  // namespace
}  // namespace anemone
