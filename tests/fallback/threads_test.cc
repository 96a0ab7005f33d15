// One segment with many callers, and many threads that open the runtime.
#include <atomic>
#include <thread>

#include "fallback/cpu_segment.h"
#include "tests/fallback/graph_builder.h"

namespace anemone {
namespace {

constexpr int kThreads = 8;

void OnManyThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(FallbackThreads, OneSegmentRunsForAllAtOnce) {
  GraphBuilder b;
  const ValueId x = b.Floats("x", {-1, 64});
  const ValueId y = b.Floats("y", {-1, 64});
  Tensor identity = Tensor::Zeros(DataType::kFloat, {64, 64});
  for (int i = 0; i < 64; ++i) identity.mutable_data<float>()[i * 65] = 1;
  b.Add("MatMul", {x, b.Constant("w", identity)}, {y});
  const auto runtime = Runtime();
  const auto segment = CpuSegment::Create(runtime, b.graph, {0}, {x}, {y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  std::atomic<int> wrong = 0;
  OnManyThreads([&](int thread) {
    for (int round = 0; round < 50; ++round) {
      Tensor in = Tensor::Zeros(DataType::kFloat, {1 + round % 3, 64});
      in.mutable_data<float>()[63] = static_cast<float>(thread * 100 + round);
      const auto out = (*segment)->Run({ToValue(runtime, in)}, {{}});
      const auto tensor = out.ok() ? (*out)[0].ToTensor() : out.status();
      if (!tensor.ok() || tensor->at<float>(63) != in.at<float>(63)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(FallbackThreads, SegmentsAreMadeAtTheSameTime) {
  std::atomic<int> wrong = 0;
  OnManyThreads([&](int thread) {
    GraphBuilder b;
    const ValueId x = b.Floats("x", {1});
    const ValueId y = b.Floats("y", {1});
    b.Add("Neg", {x}, {y});
    const auto runtime = Runtime(1 + thread % 3);
    const auto segment = CpuSegment::Create(runtime, b.graph, {0}, {x}, {y}, {});
    if (!segment.ok() ||
        !(*segment)->Run({ToValue(runtime, Tensor::Floats({1}, {1}))}, {{}}).ok()) {
      ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace anemone
